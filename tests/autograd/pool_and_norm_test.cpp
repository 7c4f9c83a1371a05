// Pooling and normalisation as operations on a tape: gradients, fused forms, statistics, invalid
// input.
#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/support.h"
#include "tests/tensor/values.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Pool kPools[] = {{2, 2, 0, false}, {3, 2, 1, false}, {3, 2, 0, true}, {2, 3, 1, true}};

// Statistics that nobody looks at.
BatchNorm norm_with(const Var& weight, const Var& bias) {
  const Tensor& w = weight.value;
  return {weight, bias, Tensor::zeros(w.shape(), w.dtype(), w.device()),
          Tensor::zeros(w.shape(), w.dtype(), w.device())};
}

Tensor tensor(const std::vector<double>& values, const Shape& shape) {
  return Tensor::from(values, shape, cpu_device());
}

}  // namespace

TEST_CASE("gradient: max, average and global pooling") {
  for (const Pool& pool : kPools) {
    check_gradients({{2, 5, 6, 3}},
                    [&](Tape& t, const auto& x) { return max_pool(t, x[0], pool); });
    check_gradients({{2, 5, 6, 3}},
                    [&](Tape& t, const auto& x) { return average_pool(t, x[0], pool); });
  }
  for (const Pool& pool : {Pool{3, 1, 1, false, false}, Pool{3, 2, 1, true, false}})
    check_gradients({{2, 5, 6, 3}},
                    [&](Tape& t, const auto& x) { return average_pool(t, x[0], pool); });
  check_gradients({{3, 4, 5, 2}}, [](Tape& t, const auto& x) {
    const Var y = global_average_pool(t, x[0]);
    CHECK(y.value.shape() == Shape{3, 2});
    return y;
  });
}

TEST_CASE("gradient: adaptive pooling, also of images smaller than the output") {
  for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{5, 7}, {3, 4}, {2, 1}, {6, 8}})
    check_gradients({{2, h, w, 3}}, [&](Tape& t, const auto& x) {
      const Var y = adaptive_average_pool(t, x[0], 3, 4);
      CHECK(y.value.shape() == Shape{2, 3, 4, 3});
      return add(t, y, adaptive_average_pool(t, x[0], 3, 4));
    });
  Tape tape;
  tape.begin(Tape::Mode::training, Random(1));
  const Var x{tensor(std::vector<double>(12, 1), {1, 3, 4, 1})};
  CHECK(adaptive_average_pool(tape, x, 3, 4).value.raw() == x.value.raw());  // nothing to do
  CHECK_THROWS_AS(adaptive_average_pool(tape, x, 0, 4), std::logic_error);
}

TEST_CASE("gradient: pooling adds to the gradient of another use") {
  check_gradients({{2, 4, 4, 3}}, [](Tape& t, const auto& x) {
    return add(t, max_pool(t, x[0], {}), average_pool(t, x[0], {}));
  });
  check_gradients({{2, 4, 4, 3}}, [](Tape& t, const auto& x) {
    const Var pooled = max_pool(t, x[0], {});
    return add(t, global_average_pool(t, x[0]), global_average_pool(t, pooled));
  });
}

TEST_CASE("pooling: windows and images that do not fit are refused") {
  Tape tape;
  tape.begin(Tape::Mode::inference);
  const Var x{tensor(std::vector<double>(9), {1, 3, 3, 1})};
  for (const Pool& pool :
       {Pool{4, 1, 0}, Pool{16, 1, 8}, Pool{2, 1, 2}, Pool{2, 0, 0}, Pool{0, 1, 0}})
    CHECK_THROWS_AS(max_pool(tape, x, pool), std::logic_error);
  CHECK_THROWS_AS(average_pool(tape, Var{tensor({1, 2}, {1, 2})}, {}), std::logic_error);
}

TEST_CASE("gradient: local response normalisation") {
  for (const LocalResponseNorm& norm :
       {LocalResponseNorm{}, LocalResponseNorm{5, 2, 0.75, 1}, LocalResponseNorm{4, 1, 0.6, 2}})
    check_gradients({{2, 2, 3, 7}},
                    [&](Tape& t, const auto& x) { return local_response_norm(t, x[0], norm); });
  check_gradients({{3, 7}}, [&](Tape& t, const auto& x) {
    return add(t, local_response_norm(t, x[0], {3, 1}), relu(t, x[0]));
  });
}

TEST_CASE("gradient: batch norm alone, with ReLU, with a residual and ReLU") {
  const std::vector<Shape> inputs = {{2, 3, 3, 5}, {5}, {5}, {2, 3, 3, 5}};
  check_gradients({inputs[0], inputs[1], inputs[2]}, [](Tape& t, const auto& x) {
    return batch_norm(t, x[0], norm_with(x[1], x[2]));
  });
  check_gradients({inputs[0], inputs[1], inputs[2]}, [](Tape& t, const auto& x) {
    return batch_norm_relu(t, x[0], norm_with(x[1], x[2]));
  });
  check_gradients(inputs, [](Tape& t, const auto& x) {
    return batch_norm_add_relu(t, x[0], x[3], norm_with(x[1], x[2]));
  });
}

TEST_CASE("gradient: batch norm with a fixed input, weight, bias or residual") {
  const Device device = cpu_device();
  const auto fixed = [&](const Shape& shape, std::uint64_t seed) {
    return Var{random_tensor(shape, seed, Dtype::f64, device)};
  };
  const Shape image{3, 2, 2, 4};
  const Var x = fixed(image, 21), w = fixed({4}, 22), b = fixed({4}, 23);
  check_gradients(
      {image}, [&](Tape& t, const auto& v) { return batch_norm_relu(t, v[0], norm_with(w, b)); });
  check_gradients({{4}, {4}}, [&](Tape& t, const auto& v) {
    return batch_norm_relu(t, x, norm_with(v[0], v[1]));
  });
  check_gradients({image, {4}}, [&](Tape& t, const auto& v) {
    return batch_norm_add_relu(t, v[0], x, norm_with(w, v[1]));
  });
  check_gradients({image}, [&](Tape& t, const auto& v) {
    return batch_norm_add_relu(t, x, v[0], norm_with(w, b));
  });
}

TEST_CASE("gradient: batch norm where values are used more than once") {
  const Shape image{3, 2, 2, 4};
  // The residual is the input; weight and bias are one.
  check_gradients({image, {4}}, [](Tape& t, const auto& v) {
    return batch_norm_add_relu(t, v[0], v[0], norm_with(v[1], v[1]));
  });
  // Another operation has left gradients for the input, the residual or both before.
  check_gradients({image, image, {4}, {4}}, [](Tape& t, const auto& v) {
    const Var y = batch_norm_add_relu(t, v[0], v[1], norm_with(v[2], v[3]));
    return add(t, add(t, y, relu(t, v[1])), relu(t, v[0]));
  });
  check_gradients({image, image, {4}, {4}}, [](Tape& t, const auto& v) {
    const Var y = batch_norm_add_relu(t, v[0], v[1], norm_with(v[2], v[3]));
    return batch_norm_relu(t, add(t, y, v[1]), norm_with(v[2], v[3]));
  });
}

TEST_CASE("batch norm: fused forms give the same as separate operations") {
  const Device device = cpu_device(2);
  const Shape image{4, 7, 5, 19};
  for (const bool with_residual : {false, true}) {
    const auto result = [&](bool fused) {
      const auto parameter = [](const Shape& shape, std::uint64_t seed) {
        const auto values = random_values(shape.count(), seed);
        return std::make_unique<Parameter>(shape, std::vector<float>(values.begin(), values.end()));
      };
      const auto x = parameter(image, 1), r = parameter(image, 2), w = parameter({19}, 3),
                 b = parameter({19}, 4);
      const ParameterSet set({{"x", x.get()}, {"r", r.get()}, {"w", w.get()}, {"b", b.get()}},
                             device);
      Tape tape;
      tape.begin(Tape::Mode::training);
      const Var vx = tape.use(*x), vr = tape.use(*r);
      const BatchNorm norm = norm_with(tape.use(*w), tape.use(*b));
      Var y;
      if (fused)
        y = with_residual ? batch_norm_add_relu(tape, vx, vr, norm)
                          : batch_norm_relu(tape, vx, norm);
      else if (with_residual)
        y = relu(tape, add(tape, batch_norm(tape, vx, norm), vr));
      else
        y = relu(tape, batch_norm(tape, vx, norm));
      auto all = host(y.value);
      if (!with_residual) y = add(tape, y, vr);  // so that everything has a gradient
      const Tensor labels = Tensor::from(std::vector<std::int32_t>(4, 3), {4}, device);
      tape.backward(softmax_cross_entropy(tape, flatten(tape, y), labels), set);
      for (const Parameter* p : set.all())
        for (const double v : host(p->gradient)) all.push_back(v);
      return all;
    };
    CHECK(result(true) == result(false));  // the same arithmetic in the same order
  }
}

TEST_CASE("batch norm: PyTorch's numbers in training and inference, and running statistics") {
  // torch.nn.BatchNorm2d(2) of PyTorch 1.13 with these weights, of x[i] = (7·i mod 41 - 20) / 4.
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) values.push_back((i * 7 % 41 - 20) / 4.0);
  const Var x{tensor(values, {1, 2, 3, 2})};
  const BatchNorm norm{Var{tensor({1.5, -0.5}, {2})}, Var{tensor({0.25, 1}, {2})},
                       tensor({0, 0}, {2}), tensor({1, 1}, {2})};
  Tape tape;
  tape.begin(Tape::Mode::training);
  check_close(batch_norm(tape, x, norm).value,
              {-1.65091, 1.633637, 0.184451, 1.02185, 2.019813, 0.410062, -1.519813, 1.589938,
               0.315549, 0.97815, 2.15091, 0.366363},
              1e-6);
  check_close(norm.running_mean, {-0.1375, 0.0375}, 1e-12);
  check_close(norm.running_variance, {1.881875, 1.881875}, 1e-12);

  const std::vector<double> expected = {-5.066849, 2.198227,  -1.239811, 0.922548,
                                        2.587227,  -0.353131, -4.793489, 2.107107,
                                        -0.966451, 0.831428,  2.860587,  -0.444251};
  tape.begin(Tape::Mode::inference);
  check_close(batch_norm(tape, x, norm).value, expected, 1e-6);
  check_close(norm.running_mean, {-0.1375, 0.0375}, 1e-12);  // inference leaves them alone
  check_close(norm.running_variance, {1.881875, 1.881875}, 1e-12);

  auto rectified = expected, added = expected;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    rectified[i] = std::max(expected[i], 0.0);
    added[i] = std::max(expected[i] + values[i], 0.0);
  }
  check_close(batch_norm_relu(tape, x, norm).value, rectified, 1e-6);
  check_close(batch_norm_add_relu(tape, x, x, norm).value, added, 1e-6);
}

TEST_CASE("batch norm: one value per channel suffices for inference but not for training") {
  const Var x{tensor({1, 2, 3}, {1, 1, 1, 3})}, w{tensor({1, 1, 1}, {3})};
  const BatchNorm norm = norm_with(w, w);
  Tape tape;
  tape.begin(Tape::Mode::training);
  CHECK(message_of<UserError>([&] { batch_norm(tape, x, norm); }).find("one value per channel") !=
        std::string::npos);
  tape.begin(Tape::Mode::inference);
  CHECK(batch_norm(tape, x, norm).value.shape() == x.value.shape());
  CHECK_THROWS_AS(batch_norm_add_relu(tape, x, w, norm), std::logic_error);
  CHECK_THROWS_AS(batch_norm(tape, Var{tensor({1, 2}, {1, 2})}, norm), std::logic_error);
}
