#include <algorithm>

#include "layers/fork.h"
#include "layers/linear.h"
#include "layers/models/basic_conv.h"
#include "layers/models/image_size.h"
#include "layers/models/models.h"
#include "layers/sequential.h"
#include "layers/simple.h"

namespace tandem {
namespace {

constexpr double kAuxiliaryWeight = 0.4;
constexpr std::int64_t kLeast = 75;  // pixels, so that one is left at the end

constexpr Pool kHalf{.window = 3, .stride = 2};
constexpr Pool kSmooth{.window = 3, .stride = 1, .padding = 1};

// A convolution with torchvision's name.
struct Unit {
  std::string name;
  std::int64_t filters;
  HeightWidth window = 1;
  Convolution convolution = {};
};

// Such that the image keeps its size.
Unit same(const std::string& name, std::int64_t filters, HeightWidth window) {
  return {name, filters, window, {.padding = {window.height / 2, window.width / 2}}};
}
Unit halved(const std::string& name, std::int64_t filters) {
  return {name, filters, 3, {.stride = 2}};
}

// Makes layers one after the other, each with random numbers of its own.
class Maker {
 public:
  Maker(std::int64_t narrow, const Random& random) : narrow_(narrow), random_(random) {}

  // Filters or channels, given those of the paper.
  std::int64_t count(std::int64_t of_paper) const { return of_paper / narrow_; }
  Random next_random() { return random_.split(next_++); }

  std::unique_ptr<Sequential> chain(std::int64_t in, const std::vector<Unit>& units) {
    return chain(std::make_unique<Sequential>(), in, units);
  }
  std::unique_ptr<Sequential> pooled(const Pool& pool, std::int64_t in, const Unit& unit) {
    auto layers = std::make_unique<Sequential>();
    layers->add<AveragePool>("", pool);
    return chain(std::move(layers), in, {unit});
  }

 private:
  std::unique_ptr<Sequential> chain(std::unique_ptr<Sequential> layers, std::int64_t in,
                                    const std::vector<Unit>& units) {
    for (const Unit& unit : units) {
      layers->add<BasicConv>(unit.name, in, count(unit.filters), unit.window, unit.convolution,
                             next_random());
      in = count(unit.filters);
    }
    return layers;
  }

  std::int64_t narrow_;
  Random random_;
  std::uint64_t next_ = 0;
};

// The blocks of Figures 5, 6, 7 and 10 of the paper, as torchvision has them. `in` is the number of
// channels that a block reads.

// 35 x 35 pixels.
std::unique_ptr<Layer> block_a(Maker& make, std::int64_t in, std::int64_t pool_filters) {
  auto fork = std::make_unique<Fork>();
  fork->add("", make.chain(in, {{"branch1x1", 64}}))
      .add("", make.chain(in, {{"branch5x5_1", 48}, same("branch5x5_2", 64, 5)}))
      .add("", make.chain(in, {{"branch3x3dbl_1", 64},
                               same("branch3x3dbl_2", 96, 3),
                               same("branch3x3dbl_3", 96, 3)}))
      .add("", make.pooled(kSmooth, in, {"branch_pool", pool_filters}));
  return fork;
}

// From 35 to 17.
std::unique_ptr<Layer> block_b(Maker& make, std::int64_t in) {
  auto fork = std::make_unique<Fork>();
  fork->add("", make.chain(in, {halved("branch3x3", 384)}))
      .add("", make.chain(in, {{"branch3x3dbl_1", 64},
                               same("branch3x3dbl_2", 96, 3),
                               halved("branch3x3dbl_3", 96)}))
      .add("", std::make_unique<MaxPool>(kHalf));
  return fork;
}

// 17 x 17 pixels. 7×7 filters are a row and a column.
std::unique_ptr<Layer> block_c(Maker& make, std::int64_t in, std::int64_t width) {
  const HeightWidth row{1, 7}, column{7, 1};
  auto fork = std::make_unique<Fork>();
  fork->add("", make.chain(in, {{"branch1x1", 192}}))
      .add("", make.chain(in, {{"branch7x7_1", width},
                               same("branch7x7_2", width, row),
                               same("branch7x7_3", 192, column)}))
      .add("", make.chain(in, {{"branch7x7dbl_1", width},
                               same("branch7x7dbl_2", width, column),
                               same("branch7x7dbl_3", width, row),
                               same("branch7x7dbl_4", width, column),
                               same("branch7x7dbl_5", 192, row)}))
      .add("", make.pooled(kSmooth, in, {"branch_pool", 192}));
  return fork;
}

// From 17 to 8.
std::unique_ptr<Layer> block_d(Maker& make, std::int64_t in) {
  auto fork = std::make_unique<Fork>();
  fork->add("", make.chain(in, {{"branch3x3_1", 192}, halved("branch3x3_2", 320)}))
      .add("", make.chain(in, {{"branch7x7x3_1", 192},
                               same("branch7x7x3_2", 192, {1, 7}),
                               same("branch7x7x3_3", 192, {7, 1}),
                               halved("branch7x7x3_4", 192)}))
      .add("", std::make_unique<MaxPool>(kHalf));
  return fork;
}

// 8 x 8 pixels. 3×3 filters are a row beside a column.
std::unique_ptr<Layer> block_e(Maker& make, std::int64_t in) {
  const auto spread = [&](std::unique_ptr<Sequential> chain, const std::string& name) {
    auto fork = std::make_unique<Fork>();
    fork->add("", make.chain(make.count(384), {same(name + "a", 384, {1, 3})}))
        .add("", make.chain(make.count(384), {same(name + "b", 384, {3, 1})}));
    chain->add("", std::move(fork));
    return chain;
  };
  auto fork = std::make_unique<Fork>();
  fork->add("", make.chain(in, {{"branch1x1", 320}}))
      .add("", spread(make.chain(in, {{"branch3x3_1", 384}}), "branch3x3_2"))
      .add("", spread(make.chain(in, {{"branch3x3dbl_1", 448}, same("branch3x3dbl_2", 384, 3)}),
                      "branch3x3dbl_3"))
      .add("", make.pooled(kSmooth, in, {"branch_pool", 192}));
  return fork;
}

// The auxiliary classifier. It reads 17 x 17 pixels.
class AuxiliaryLogits : public Layer {
 public:
  AuxiliaryLogits(Maker& make, std::int64_t in, std::int64_t classes)
      : convolutions_(make.chain(in, {{"conv0", 128}, {"conv1", 768, kPooled}})),
        last_(make.count(768), classes, Init::xavier_normal, make.next_random()) {}

  Var forward(Tape& tape, const Var& x) override {
    constexpr Pool kPool{.window = 5, .stride = 3};
    // Images that are too small for torchvision are averaged to as many pixels as 17 x 17 give.
    const bool small = kPool.positions(std::min(x.value.size(1), x.value.size(2))) < kPooled;
    const Var pooled =
        small ? adaptive_average_pool(tape, x, kPooled, kPooled) : average_pool(tape, x, kPool);
    return last_.forward(tape, global_average_pool(tape, convolutions_->forward(tape, pooled)));
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    convolutions_->collect(prefix, into);
    last_.collect(prefix + "fc.", into);
  }

 private:
  static constexpr std::int64_t kPooled = 5;

  std::unique_ptr<Sequential> convolutions_;
  Linear last_;
};

class InceptionNet : public Layer {
 public:
  InceptionNet(std::int64_t channels, std::int64_t classes, std::int64_t narrow,
               const Random& random) {
    Maker make(narrow, random);
    std::int64_t in = channels;
    const auto convolve = [&](const Unit& unit) {
      body_.add("", make.chain(in, {unit}));
      in = make.count(unit.filters);
    };
    convolve({"Conv2d_1a_3x3", 32, 3, {.stride = 2}});
    convolve({"Conv2d_2a_3x3", 32, 3});
    convolve(same("Conv2d_2b_3x3", 64, 3));
    body_.add<MaxPool>("maxpool1", kHalf);
    convolve({"Conv2d_3b_1x1", 80});
    convolve({"Conv2d_4a_3x3", 192, 3});
    body_.add<MaxPool>("maxpool2", kHalf);
    body_.add("Mixed_5b", block_a(make, make.count(192), 32))
        .add("Mixed_5c", block_a(make, make.count(256), 64))
        .add("Mixed_5d", block_a(make, make.count(288), 64))
        .add("Mixed_6a", block_b(make, make.count(288)))
        .add("Mixed_6b", block_c(make, make.count(768), 128))
        .add("Mixed_6c", block_c(make, make.count(768), 160))
        .add("Mixed_6d", block_c(make, make.count(768), 160))
        .add("Mixed_6e", block_c(make, make.count(768), 192));
    auxiliary_ = std::make_unique<AuxiliaryLogits>(make, make.count(768), classes);
    tail_.add("Mixed_7a", block_d(make, make.count(768)))
        .add("Mixed_7b", block_e(make, make.count(1280)))
        .add("Mixed_7c", block_e(make, make.count(2048)));
    last_ = std::make_unique<Linear>(make.count(2048), classes, Init::xavier_normal,
                                     make.next_random());
  }

  Var forward(Tape& tape, const Var& x) override { return logits(tape, body_.forward(tape, x)); }

  Var loss(Tape& tape, const Var& x, const Tensor& labels, const CrossEntropy& options) override {
    CrossEntropy weighted = options;
    weighted.weight *= kAuxiliaryWeight;
    const Var middle = body_.forward(tape, x);
    const Var auxiliary =
        softmax_cross_entropy(tape, auxiliary_->forward(tape, middle), labels, weighted);
    return add(tape, auxiliary, softmax_cross_entropy(tape, logits(tape, middle), labels, options));
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    body_.collect(prefix, into);
    auxiliary_->collect(prefix + "AuxLogits.", into);
    tail_.collect(prefix, into);
    last_->collect(prefix + "fc.", into);
  }

 private:
  Var logits(Tape& tape, const Var& middle) {
    const Var pooled = global_average_pool(tape, tail_.forward(tape, middle));
    return last_->forward(tape, dropout(tape, pooled, 0.5));
  }

  Sequential body_, tail_;
  std::unique_ptr<AuxiliaryLogits> auxiliary_;
  std::unique_ptr<Linear> last_;
};

}  // namespace

std::unique_ptr<Layer> inception_v3(const Shape& image, std::int64_t classes, std::uint64_t seed,
                                    std::int64_t narrow) {
  require_image("Inception-v3", image, kLeast);
  return std::make_unique<InceptionNet>(image[2], classes, narrow, Random(seed, Purpose::weights));
}

}  // namespace tandem
