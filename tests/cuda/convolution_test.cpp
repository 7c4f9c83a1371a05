// The GPU's convolutions compared with the CPU's, in every precision. Every call is made twice: the
// first chooses an algorithm, the second uses it.
#include "tensor/cuda/convolution/convolution_forms.h"
#include "tensor/cuda/convolution/engine_search.h"
#include "tests/cuda/compare.h"

using namespace tandem;
using namespace tandem::test;
using cuda::ConvolutionCall;
using cuda::ConvolutionForm;
using cuda::Direction;

namespace {

struct Case {
  Shape x, filter;
  Convolution convolution = {};

  Shape y() const {
    return {x[0], convolution.rows(x[1], filter[1]), convolution.columns(x[2], filter[2]),
            filter[0]};
  }
  std::string text() const {
    return fmt::format("x {}, filter {}, stride {}, padding {}, dilation {}, {} groups", x, filter,
                       convolution.stride, convolution.padding, convolution.dilation,
                       convolution.groups);
  }
};

double tolerance(Precision precision) {
  return precision == Precision::fp32 ? kF32Convolution : tolerance_of_products(precision);
}

// Of a sum of as many products.
double typical(std::int64_t products) {
  return std::sqrt(static_cast<double>(std::max<std::int64_t>(1, products))) / 3;
}

void check(const Sides& sides, const Case& c) {
  CAPTURE(name_of(sides.precision));
  CAPTURE(c.text());
  const double near = tolerance(sides.precision);
  const Both x = sides.random(c.x, 1), filter = sides.random(c.filter, 2);
  const Both bias = sides.random_f32({c.filter[0]}, 3), dy = sides.random(c.y(), 4);
  const std::int64_t window = c.filter[1] * c.filter[2] * c.filter[3];
  for (int time = 0; time < 2; ++time) {
    for (const bool with_bias : {false, true}) {
      const Both y = sides.random(c.y(), 5);
      sides.run([&](Backend& b, auto of) {
        b.conv2d(c.convolution, of(x), of(filter), with_bias ? of(bias) : Tensor(), with_bias,
                 of(y));
      });
      check_near(y, near, typical(window));
    }
    for (const bool accumulate : {false, true}) {
      const Both dx = sides.random(c.x, 6), dfilter = sides.random_f32(c.filter, 7);
      sides.run([&](Backend& b, auto of) {
        b.conv2d_data_gradient(c.convolution, of(dy), of(filter), of(dx), accumulate);
        b.conv2d_filter_gradient(c.convolution, of(x), of(dy), of(dfilter), accumulate);
      });
      check_near(dx, near, typical(window));
      check_near(dfilter, near, typical(c.y().count() / c.filter[0]));
    }
  }
}

void check_all(const std::vector<Case>& cases) {
  for (const Precision precision : kPrecisions) {
    const Sides sides(precision);
    for (const Case& c : cases) check(sides, c);
  }
}

// A call on the GPU, made on the CPU already.
struct Trial {
  ConvolutionCall call;
  Both result;
  double typical;
};

// `more` is bias and ReLU, or to accumulate.
Trial trial_of(const Sides& sides, const Case& c, Direction direction, bool more) {
  const Both x = sides.random(c.x, 1), filter = sides.random(c.filter, 2);
  const Both bias = sides.random_f32({c.filter[0]}, 3), dy = sides.random(c.y(), 4);
  Trial trial{{direction, c.convolution, x.gpu, filter.gpu, dy.gpu},
              {},
              typical(c.filter[1] * c.filter[2] * c.filter[3])};
  Both& result = trial.result;
  Backend& cpu = sides.cpu.backend();
  switch (direction) {
    case Direction::forward:
      result = sides.random(c.y(), 5);
      if (more) trial.call.bias = bias.gpu;
      trial.call.relu = more;
      cpu.conv2d(c.convolution, x.cpu, filter.cpu, more ? bias.cpu : Tensor(), more, result.cpu);
      break;
    case Direction::data_gradient:
      result = sides.random(c.x, 6);
      trial.call.accumulate = more;
      cpu.conv2d_data_gradient(c.convolution, dy.cpu, filter.cpu, result.cpu, more);
      break;
    case Direction::filter_gradient:
      result = sides.random_f32(c.filter, 7);
      trial.call.accumulate = more;
      trial.typical = typical(c.y().count() / c.filter[0]);
      cpu.conv2d_filter_gradient(c.convolution, x.cpu, dy.cpu, result.cpu, more);
      break;
  }
  trial.call.output() = result.gpu;
  return trial;
}

// The context has a stream of its own, beside that of the tensors' backend.
template <class F>
void apart(F&& f) {
  cuda::check(cudaDeviceSynchronize(), "waiting for the GPU");
  f();
  cuda::check(cudaDeviceSynchronize(), "waiting for the GPU");
}

void check_forms(const Sides& sides, const Case& c) {
  CAPTURE(name_of(sides.precision));
  CAPTURE(c.text());
  // Deterministic: of every form the first engine that works is as good as any.
  cuda::Context context(0, sides.precision, true);
  cuda::Products products(context);
  for (const Direction direction :
       {Direction::forward, Direction::data_gradient, Direction::filter_gradient})
    for (const bool more : {false, true}) {
      const auto make = [&] { return trial_of(sides, c, direction, more); };
      CAPTURE(cuda::text_of(make().call));
      CAPTURE(more);
      int computed = 0;
      for (const ConvolutionForm& form : cuda::plain_forms(make().call)) {
        CAPTURE(form.channels);
        CAPTURE(form.folded);
        const Trial trial = make();
        std::optional<cuda::dnn::FoundEngine> found;
        apart([&] {
          cuda::execute(context, trial.call, form, [&](const cuda::dnn::Operands& operands) {
            found = cuda::dnn::search_engine(context, cuda::graph_of(trial.call, form), operands);
          });
        });
        if (!found) continue;
        ++computed;
        check_near(trial.result, tolerance(sides.precision), trial.typical);
      }
      CHECK(computed > 0);

      const auto form = cuda::unrolled_form(make().call);
      CHECK(form.has_value() == (direction == Direction::filter_gradient));
      if (!form) continue;
      const cuda::Fold folded = cuda::fold_of_filter(make().call, *form);
      const auto image_bytes = static_cast<std::size_t>(c.y()[1] * c.y()[2] * folded.out_height *
                                                        folded.out_width * folded.out_channels) *
                               bytes_of(sides.dtype);
      for (const std::size_t images : {0, 2, 100}) {
        CAPTURE(images);
        const Trial trial = make();
        apart([&] {
          cuda::execute_unrolled(context, products, trial.call, *form, images * image_bytes);
        });
        check_near(trial.result, tolerance(sides.precision), trial.typical);
      }
    }
}

}  // namespace

TEST_CASE("cuda: convolution: the shapes of first layers in every form") {
  const Case cases[] = {{{3, 31, 29, 3}, {10, 7, 7, 3}, {2, 3}},
                        {{5, 30, 33, 3}, {16, 7, 7, 3}, {2, 3}},
                        {{3, 43, 38, 3}, {24, 11, 11, 3}, {4, 2}},
                        {{3, 43, 38, 1}, {7, 11, 8, 1}, {4, 0}},
                        {{3, 14, 15, 4}, {8, 1, 1, 4}, {3, 0}}};  // windows without overlap
  for (const Precision precision : kPrecisions) {
    const Sides sides(precision);
    for (const Case& c : cases) check_forms(sides, c);
  }
}

TEST_CASE("cuda: convolution: windows and strides and paddings and dilations and groups") {
  std::vector<Case> cases;
  std::int64_t paddings = 0;
  for (const std::int64_t window : {1, 2, 3, 5})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t dilation : {1, 2})
        cases.push_back(
            {{2, 9, 10, 6}, {4, window, window, 3}, {stride, paddings++ % 3, dilation, 2}});
  cases.push_back({{2, 9, 10, 6}, {4, 3, 3, 3}, {1, 5, 1, 2}});  // more padding than window
  check_all(cases);
}

TEST_CASE("cuda: convolution: channels that do and do not fill vectors") {
  check_all({{{3, 7, 6, 1}, {7, 3, 3, 1}, {1, 1}},
             {{3, 7, 6, 3}, {16, 3, 3, 3}, {1, 1}},
             {{3, 7, 6, 8}, {1, 5, 5, 8}, {1, 2}},
             {{3, 7, 6, 16}, {12, 1, 1, 16}},
             {{3, 7, 6, 33}, {40, 3, 3, 33}, {1, 1}},
             {{3, 7, 6, 33}, {7, 5, 5, 33}, {1, 2}}});
}

TEST_CASE("cuda: convolution: the shapes of the nets scaled down") {
  check_all({{{2, 31, 31, 3}, {24, 11, 11, 3}, {4, 2}},  // AlexNet's first
             {{2, 27, 27, 3}, {16, 7, 7, 3}, {2, 3}},    // ResNet's first
             {{3, 31, 29, 3}, {10, 7, 7, 3}, {2, 3}},    // the same, of odd sizes
             {{2, 16, 16, 3}, {32, 5, 5, 3}, {1, 2}},    // the CIFAR net's first
             {{2, 14, 14, 24}, {100, 3, 3, 24}, {2, 1}},
             {{2, 15, 13, 64}, {70, 1, 1, 64}, {2, 0}},  // a shortcut
             {{4, 14, 14, 64}, {64, 3, 3, 64}, {1, 1}}});
}

TEST_CASE("cuda: convolution: deep and large and non-square ones") {
  check_all({{{40, 6, 6, 300}, {80, 1, 1, 300}},
             {{1, 9, 10, 300}, {40, 3, 3, 300}, {1, 1}},
             {{2, 8, 9, 260}, {33, 3, 3, 260}, {1, 0}},
             {{1, 9, 9, 96}, {60, 3, 3, 32}, {1, 1, 1, 3}},
             {{2, 40, 41, 64}, {64, 3, 3, 64}, {1, 1}},
             {{2, 12, 13, 40}, {48, 5, 5, 40}, {1, 2}},
             {{1, 12, 11, 8}, {8, 3, 2, 8}, {1, 1}}});
}

TEST_CASE("cuda: convolution: windows, strides and paddings that differ in height and width") {
  check_all({{{2, 17, 17, 32}, {40, 1, 7, 32}, {.padding = {0, 3}}},
             {{2, 17, 17, 32}, {40, 7, 1, 32}, {.padding = {3, 0}}},
             {{2, 8, 9, 48}, {24, 1, 3, 48}, {.padding = {0, 1}}},
             {{2, 8, 9, 48}, {24, 3, 1, 48}, {.padding = {1, 0}}},
             {{2, 13, 12, 3}, {8, 3, 5, 3}, {.stride = 2, .padding = {1, 2}}},
             {{2, 13, 12, 3}, {8, 3, 3, 3}, {.stride = {2, 3}, .padding = 1}},
             {{1, 12, 11, 8}, {8, 5, 2, 8}, {.stride = {3, 1}, .padding = {1, 2}}}});
}

TEST_CASE("cuda: convolution: windows larger than the image and single pixels and no images") {
  check_all({{{2, 1, 1, 4}, {4, 3, 3, 4}, {1, 1}},
             {{2, 2, 3, 4}, {4, 5, 5, 4}, {1, 2}},
             {{1, 4, 4, 2}, {2, 1, 1, 2}, {5, 0}},  // most pixels are never read
             {{0, 4, 4, 2}, {2, 3, 3, 2}, {1, 1}}});
}

TEST_CASE("cuda: convolution: shapes drawn at random") {
  std::vector<Case> cases;
  Random random(4);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  while (cases.size() < 10) {
    Case c;
    c.convolution = {1 + below(3), below(4), 1 + below(2), 1 + below(2)};
    c.x = {1 + below(4), 1 + below(30), 1 + below(30), c.convolution.groups * (1 + below(40))};
    c.filter = {c.convolution.groups * (1 + below(40)), 1 + below(5), 1 + below(5),
                c.x[3] / c.convolution.groups};
    if (c.y().count() > 0) cases.push_back(c);
  }
  check_all(cases);
}

TEST_CASE("cuda: convolution: later workers use the earlier choice") {
  const Case c{{2, 10, 10, 12}, {20, 3, 3, 12}, {1, 1}};
  for (const Precision precision : kPrecisions)
    for (int worker = 0; worker < 3; ++worker) check(Sides(precision), c);
}

TEST_CASE("cuda: convolution: deterministic ones give the same bits every time") {
  const Case cases[] = {{{8, 16, 16, 3}, {16, 3, 3, 3}, {1, 1}},
                        {{8, 16, 16, 32}, {32, 3, 3, 32}, {1, 1}},
                        {{8, 16, 16, 32}, {64, 1, 1, 32}, {2, 0}}};
  for (const Precision precision : kPrecisions)
    for (const Case& c : cases) {
      CAPTURE(name_of(precision));
      CAPTURE(c.text());
      std::vector<float> first;
      for (int worker = 0; worker < 2; ++worker) {
        const Sides sides(precision, true);
        check(sides, c);
        const Both x = sides.random(c.x, 1), filter = sides.random(c.filter, 2);
        const Both dy = sides.random(c.y(), 4), y = sides.random(c.y(), 5);
        const Both dx = sides.random(c.x, 6), dfilter = sides.random_f32(c.filter, 7);
        Backend& b = sides.gpu.backend();
        for (int time = 0; time < 3; ++time) {
          b.conv2d(c.convolution, x.gpu, filter.gpu, Tensor(), false, y.gpu);
          b.conv2d_data_gradient(c.convolution, dy.gpu, filter.gpu, dx.gpu, false);
          b.conv2d_filter_gradient(c.convolution, x.gpu, dy.gpu, dfilter.gpu, false);
          std::vector<float> all = floats(y.gpu);
          for (const Tensor& t : {dx.gpu, dfilter.gpu}) {
            const auto values = floats(t);
            all.insert(all.end(), values.begin(), values.end());
          }
          if (first.empty()) first = all;
          CHECK(all == first);
        }
      }
    }
}
