// Compares concatenation with obvious loops, for different numbers of threads.
#include <doctest/doctest.h>

#include "tensor/backend.h"
#include "tests/support.h"
#include "tests/tensor/values.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Widths = std::vector<std::int64_t>;
const Widths kWidths[] = {
    {1}, {3, 5}, {64, 96, 16, 32}, {2, 0, 7}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
const Shape kRows[] = {{1}, {0}, {2, 7, 5}, {40, 17, 17}};

Shape with_columns(const Shape& rows, std::int64_t columns) {
  std::vector<std::int64_t> sizes(rows.sizes().begin(), rows.sizes().end());
  sizes.push_back(columns);
  return Shape(sizes);
}

}  // namespace

TEST_CASE("concat: parts lie side by side, and their gradients are copied or added") {
  for (const int threads : {1, 3})
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const Widths& widths : kWidths)
        for (const Shape& rows : kRows) {
          CAPTURE(rows.str());
          const Device device = cpu_device(threads);
          std::vector<Tensor> parts, gradients;
          std::int64_t columns = 0;
          for (const std::int64_t width : widths) {
            const auto seed = static_cast<std::uint64_t>(parts.size());
            parts.push_back(random_tensor(with_columns(rows, width), seed, dtype, device));
            gradients.push_back(parts.back().clone());
            columns += width;
          }
          const Tensor y = Tensor::zeros(with_columns(rows, columns), dtype, device);
          device.backend().concat(parts, y);
          std::vector<std::vector<double>> values;
          for (const Tensor& part : parts) values.push_back(host(part));
          std::vector<double> expected;
          for (std::int64_t row = 0; row < rows.count(); ++row)
            for (std::size_t i = 0; i < parts.size(); ++i)
              expected.insert(expected.end(), values[i].begin() + row * widths[i],
                              values[i].begin() + (row + 1) * widths[i]);
          check_close(y, expected, 0);

          // The first part's gradient is not needed; every other one is added to what is there.
          std::vector<Backend::ConcatPart> into;
          for (std::size_t i = 0; i < parts.size(); ++i)
            into.push_back({widths[i], {i == 0 ? Tensor() : gradients[i], i % 2 == 1}});
          device.backend().concat_gradient(y, into);
          for (std::size_t i = 0; i < parts.size(); ++i) {
            if (i % 2 == 1)
              for (double& value : values[i]) value *= 2;
            check_close(gradients[i], values[i], 0);
          }
        }
}
