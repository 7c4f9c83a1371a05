#include "dist/timing/profile.h"

namespace tandem {
namespace {

template <class T>
T total(const std::vector<Profile::Tensor>& tensors, T Profile::Tensor::*member) {
  T sum = 0;
  for (const Profile::Tensor& tensor : tensors) sum += tensor.*member;
  return sum;
}

}  // namespace

std::int64_t Profile::elements() const { return total(tensors, &Tensor::elements); }
double Profile::forward_s() const { return total(tensors, &Tensor::forward_s); }
double Profile::backward_s() const { return total(tensors, &Tensor::backward_s); }

}  // namespace tandem
