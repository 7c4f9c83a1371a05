#include <array>
#include <optional>

#include "layers/linear.h"
#include "layers/models/basic_conv.h"
#include "layers/models/image_size.h"
#include "layers/models/models.h"
#include "layers/sequential.h"
#include "layers/simple.h"

namespace tandem {
namespace {

constexpr std::int64_t kLeast = 15;  // pixels, so that one is left after the last pool
constexpr double kAuxiliaryWeight = 0.3;

// Filters of the branches of an inception module: 1×1; 1×1 before 3×3; 1×1 before the second 3×3
// (in the paper 5×5); 1×1 after a max pool.
struct Filters {
  std::int64_t one, reduce3, three, reduce5, five, pool;

  std::int64_t out() const { return one + three + five + pool; }
};

// Four branches, whose channels are concatenated.
class Inception : public Layer {
 public:
  Inception(std::int64_t in, const Filters& f, const Random& random)
      : one_(in, f.one, 1, {}, random.split(0)) {
    const Convolution same{.padding = 1};
    three_.add<BasicConv>("0", in, f.reduce3, 1, Convolution{}, random.split(1))
        .add<BasicConv>("1", f.reduce3, f.three, 3, same, random.split(2));
    five_.add<BasicConv>("0", in, f.reduce5, 1, Convolution{}, random.split(3))
        .add<BasicConv>("1", f.reduce5, f.five, 3, same, random.split(4));
    pool_.add<MaxPool>("0", Pool{.window = 3, .stride = 1, .padding = 1})
        .add<BasicConv>("1", in, f.pool, 1, Convolution{}, random.split(5));
  }

  Var forward(Tape& tape, const Var& x) override {
    const std::array<Var, 4> branches{one_.forward(tape, x), three_.forward(tape, x),
                                      five_.forward(tape, x), pool_.forward(tape, x)};
    return concat(tape, branches);
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    one_.collect(prefix + "branch1.", into);
    three_.collect(prefix + "branch2.", into);
    five_.collect(prefix + "branch3.", into);
    pool_.collect(prefix + "branch4.", into);
  }

 private:
  BasicConv one_;
  Sequential three_, five_, pool_;
};

// Classifies what is in the middle of the net, so that the layers before it get a larger gradient.
class Auxiliary : public Layer {
 public:
  Auxiliary(std::int64_t in, std::int64_t classes, const Random& random) {
    constexpr std::int64_t kPooled = 4, kFilters = 128, kHidden = 1024;
    const Shape flat{kPooled, kPooled, kFilters};
    layers_.add<AdaptiveAveragePool>("pool", kPooled, kPooled)
        .add<BasicConv>("conv", in, kFilters, 1, Convolution{}, random.split(0))
        .add<Flatten>("flatten")
        .add<Linear>("fc1", Linear::Options{.in = flat.count(), .out = kHidden, .image = flat},
                     random.split(1))
        .add<Relu>("relu")
        .add<Dropout>("dropout", 0.7)
        .add<Linear>("fc2", kHidden, classes, Init::xavier_normal, random.split(2));
  }

  Var forward(Tape& tape, const Var& x) override { return layers_.forward(tape, x); }
  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    layers_.collect(prefix, into);
  }

 private:
  Sequential layers_;
};

class GoogLeNet : public Layer {
 public:
  GoogLeNet(std::int64_t channels, std::int64_t classes, const Random& random) : random_(random) {
    const Pool half{.window = 3, .stride = 2, .ceil_mode = true};
    first_.add<BasicConv>("conv1", channels, 64, 7, Convolution{.stride = 2, .padding = 3}, next())
        .add<MaxPool>("maxpool1", half)
        .add<BasicConv>("conv2", 64, 64, 1, Convolution{}, next())
        .add<BasicConv>("conv3", 64, 192, 3, Convolution{.padding = 1}, next())
        .add<MaxPool>("maxpool2", half);
    width_ = 192;
    add(first_, "3a", {64, 96, 128, 16, 32, 32});
    add(first_, "3b", {128, 128, 192, 32, 96, 64});
    first_.add<MaxPool>("maxpool3", half);
    add(first_, "4a", {192, 96, 208, 16, 48, 64});
    aux1_.emplace(width_, classes, next());
    add(second_, "4b", {160, 112, 224, 24, 64, 64});
    add(second_, "4c", {128, 128, 256, 24, 64, 64});
    add(second_, "4d", {112, 144, 288, 32, 64, 64});
    aux2_.emplace(width_, classes, next());
    add(third_, "4e", {256, 160, 320, 32, 128, 128});
    third_.add<MaxPool>("maxpool4", Pool{.window = 2, .stride = 2, .ceil_mode = true});
    add(third_, "5a", {256, 160, 320, 32, 128, 128});
    add(third_, "5b", {384, 192, 384, 48, 128, 128});
    last_.emplace(width_, classes, Init::xavier_normal, next());
  }

  Var forward(Tape& tape, const Var& x) override {
    return finish(tape, second_.forward(tape, first_.forward(tape, x)));
  }

  Var loss(Tape& tape, const Var& x, const Tensor& labels, const CrossEntropy& options) override {
    CrossEntropy auxiliary = options;
    auxiliary.weight *= kAuxiliaryWeight;
    Var y = first_.forward(tape, x);
    Var total = softmax_cross_entropy(tape, aux1_->forward(tape, y), labels, auxiliary);
    y = second_.forward(tape, y);
    total = add_loss(tape, total, aux2_->forward(tape, y), labels, auxiliary);
    return add_loss(tape, total, finish(tape, y), labels, options);
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    for (Sequential* part : {&first_, &second_, &third_}) part->collect(prefix, into);
    aux1_->collect(prefix + "aux1.", into);
    aux2_->collect(prefix + "aux2.", into);
    last_->collect(prefix + "fc.", into);
  }

 private:
  Random next() { return random_.split(layers_++); }

  void add(Sequential& to, const std::string& name, const Filters& filters) {
    to.add<Inception>("inception" + name, width_, filters, next());
    width_ = filters.out();
  }

  static Var add_loss(Tape& tape, const Var& sum, const Var& logits, const Tensor& labels,
                      const CrossEntropy& options) {
    return tandem::add(tape, sum, softmax_cross_entropy(tape, logits, labels, options));
  }

  Var finish(Tape& tape, const Var& x) {
    const Var y = global_average_pool(tape, third_.forward(tape, x));
    return last_->forward(tape, dropout(tape, y, 0.2));
  }

  Random random_;
  std::uint64_t layers_ = 0;           // made so far
  std::int64_t width_ = 0;             // channels of the output so far
  Sequential first_, second_, third_;  // an auxiliary classifier follows the first two
  std::optional<Auxiliary> aux1_, aux2_;
  std::optional<Linear> last_;
};

}  // namespace

std::unique_ptr<Layer> googlenet(const Shape& image, std::int64_t classes, std::uint64_t seed) {
  require_image("GoogLeNet", image, kLeast);
  return std::make_unique<GoogLeNet>(image[2], classes, Random(seed, Purpose::weights));
}

}  // namespace tandem
