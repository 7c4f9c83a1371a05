#include "layers/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "layers/linear.h"
#include "layers/models/image_size.h"
#include "layers/models/residual_block.h"
#include "layers/sequential.h"

namespace tandem {
namespace {

struct Layout {
  std::int64_t stem_width, stem_window, stem_stride;
  std::optional<Pool> pool;
  bool bottleneck;
  std::vector<int> blocks;  // per stage; each stage has twice the filters of the one before
};

class ResNet : public Layer {
 public:
  ResNet(const Layout& layout, std::int64_t channels, std::int64_t classes, const Random& random)
      : stem_(channels, layout.stem_width, layout.stem_window, layout.stem_stride, random.split(0)),
        pool_(layout.pool) {
    std::int64_t in = layout.stem_width, width = layout.stem_width;
    for (std::size_t stage = 0; stage < layout.blocks.size(); ++stage, width *= 2) {
      const Random r = random.split(stage + 1);
      auto blocks = std::make_unique<Sequential>();
      for (int i = 0; i < layout.blocks[stage]; ++i) {
        const ResidualBlock::Options options{.in = in,
                                             .width = width,
                                             .stride = stage > 0 && i == 0 ? 2 : 1,
                                             .bottleneck = layout.bottleneck};
        blocks->add<ResidualBlock>(std::to_string(i), options,
                                   r.split(static_cast<std::uint64_t>(i)));
        in = options.out();
      }
      stages_.add("layer" + std::to_string(stage + 1), std::move(blocks));
    }
    last_.emplace(in, classes, Init::xavier_normal, random.split(layout.blocks.size() + 1));
  }

  Var forward(Tape& tape, const Var& x) override {
    Var y = stem_.forward_relu(tape, x);
    if (pool_) y = max_pool(tape, y, *pool_);
    y = stages_.forward(tape, y);
    return last_->forward(tape, global_average_pool(tape, y));
  }

  void collect(const std::string& prefix, std::vector<ParameterSet::Named>& into) override {
    stem_.conv.collect(prefix + "conv1.", into);
    stem_.norm.collect(prefix + "bn1.", into);
    stages_.collect(prefix, into);
    last_->collect(prefix + "fc.", into);
  }

 private:
  ConvNorm stem_;
  std::optional<Pool> pool_;
  Sequential stages_;
  std::optional<Linear> last_;
};

void require_depth(int depth, const std::vector<int>& depths) {
  require(std::ranges::find(depths, depth) != depths.end(), "there is no such ResNet-{}", depth);
}

}  // namespace

std::unique_ptr<Layer> resnet(int depth, const Shape& image, std::int64_t classes,
                              std::uint64_t seed) {
  require_depth(depth, resnet_depths());
  require_image(fmt::format("ResNet-{}", depth), image, 32);
  const std::vector<int> blocks = depth == 18    ? std::vector{2, 2, 2, 2}
                                  : depth == 101 ? std::vector{3, 4, 23, 3}
                                  : depth == 152 ? std::vector{3, 8, 36, 3}
                                                 : std::vector{3, 4, 6, 3};  // 34 and 50
  const Layout layout{.stem_width = 64,
                      .stem_window = 7,
                      .stem_stride = 2,
                      .pool = Pool{.window = 3, .stride = 2, .padding = 1},
                      .bottleneck = depth >= 50,
                      .blocks = blocks};
  return std::make_unique<ResNet>(layout, image[2], classes, Random(seed, Purpose::weights));
}

std::unique_ptr<Layer> cifar_resnet(int depth, const Shape& image, std::int64_t classes,
                                    std::uint64_t seed) {
  require_depth(depth, cifar_resnet_depths());
  require_image(fmt::format("ResNet-{}", depth), image, 8);
  const int n = (depth - 2) / 6;  // 6n + 2 layers: n blocks of two in each of three stages
  const Layout layout{.stem_width = 16,
                      .stem_window = 3,
                      .stem_stride = 1,
                      .pool = {},
                      .bottleneck = false,
                      .blocks = {n, n, n}};
  return std::make_unique<ResNet>(layout, image[2], classes, Random(seed, Purpose::weights));
}

const std::vector<int>& resnet_depths() {
  static const std::vector<int> depths = {18, 34, 50, 101, 152};
  return depths;
}

const std::vector<int>& cifar_resnet_depths() {
  static const std::vector<int> depths = {20, 32, 44, 56, 110};
  return depths;
}

}  // namespace tandem
