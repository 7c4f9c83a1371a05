#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace tandem {
namespace {

constexpr int kSize = 32;

using Colour = std::array<double, 3>;  // 0 … 1

struct Point {
  double x, y;
};

// Shapes have about the size of the unit circle. The result is roughly the distance to the edge,
// negative inside.
double box(Point p, double half_width, double half_height) {
  return std::max(std::abs(p.x) - half_width, std::abs(p.y) - half_height);
}
double disc(Point p, double radius) { return std::sqrt(p.x * p.x + p.y * p.y) - radius; }
double triangle(Point p) { return std::max(p.y - 0.6, 0.87 * std::abs(p.x) - 0.5 * p.y - 0.5); }

double distance_to_edge(int shape, Point p) {
  switch (shape) {
    case 0:
      return disc(p, 0.85);
    case 1:
      return box(p, 0.75, 0.75);
    case 2:
      return triangle(p);
    case 3:
      return std::abs(disc(p, 0.7)) - 0.22;  // ring
    case 4:
      return std::min(box(p, 0.9, 0.28), box(p, 0.28, 0.9));  // cross
    case 5:
      return box(p, 0.95, 0.4);  // bar
    case 6:
      return std::abs(box(p, 0.68, 0.68)) - 0.2;  // frame
    case 7:
      return std::max(disc({p.x, p.y - 0.4}, 1.0), p.y - 0.4);  // half disc
    case 8:
      return std::min(box({p.x + 0.5, p.y}, 0.3, 0.85), box({p.x, p.y - 0.55}, 0.8, 0.3));  // L
    default:
      return std::min(disc({p.x - 0.48, p.y}, 0.42), disc({p.x + 0.48, p.y}, 0.42));  // two
  }
}

// The fully saturated colour at `hue`, which wraps around at 1.
Colour colour_of(double hue) {
  const double h = 6 * (hue - std::floor(hue));
  const auto ramp = [](double v) { return std::clamp(v, 0.0, 1.0); };
  return {ramp(std::abs(h - 3) - 1), ramp(2 - std::abs(h - 2)), ramp(2 - std::abs(h - 4))};
}

Colour faded(const Colour& colour, double saturation, double brightness) {
  Colour out{};
  for (std::size_t c = 0; c < 3; ++c)
    out[c] = brightness * (1 - saturation + saturation * colour[c]);
  return out;
}

// The appearance of a class.
struct Look {
  Look(int label, int classes)
      : shape(classes == 100 ? label % 10 : label % 5),
        striped((classes == 100 ? label / 10 : label / 5) % 2 == 1),
        hue(classes == 100 ? label / 20 / 5.0 : 0),
        hue_spread(classes == 100 ? 0.12 : 0.5) {}

  int shape;
  bool striped;
  double hue, hue_spread;
};

// An object's position, rotation and size.
struct Place {
  Place(Random& random, double smallest, double largest, double reach)
      : centre{kSize * (0.5 + random.uniform(-reach, reach)),
               kSize * (0.5 + random.uniform(-reach, reach))},
        radius(random.uniform(smallest, largest)),
        squeeze(random.uniform(0.8, 1.25)) {
    // A rotation by up to 30°, from the tangent of half its angle, which needs no trigonometry and
    // is the same on every platform.
    const double t = random.uniform(-0.268, 0.268);
    cosine = (1 - t * t) / (1 + t * t);
    sine = 2 * t / (1 + t * t);
  }

  Point operator()(int x, int y) const {  // a pixel in the object's coordinates
    const double dx = (x + 0.5 - centre.x) / radius, dy = (y + 0.5 - centre.y) / radius;
    return {(cosine * dx + sine * dy) * squeeze, (cosine * dy - sine * dx) / squeeze};
  }

  Point centre;
  double radius, squeeze;  // pixels; ratio of width to height
  double cosine, sine;
};

struct Canvas {
  std::array<Colour, kSize * kSize> pixels;

  // Paints where `distance`, in pixels, is negative; edges are soft.
  void blend(int x, int y, double distance, const Colour& colour) {
    const double cover = std::clamp(0.5 - distance, 0.0, 1.0);
    Colour& pixel = pixels[static_cast<std::size_t>(y * kSize + x)];
    for (std::size_t c = 0; c < 3; ++c) pixel[c] += cover * (colour[c] - pixel[c]);
  }
};

Colour any_colour(Random& random) {
  const double hue = random.uniform(), saturation = random.uniform(0.1, 0.8);
  return faded(colour_of(hue), saturation, random.uniform(0.2, 0.9));
}

void paint_background(Canvas& canvas, Random& random) {
  const Colour from = any_colour(random), to = any_colour(random);
  const double across = random.uniform(), down = 1 - across;
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x) {
      const double t = (across * x + down * y) / kSize;
      for (std::size_t c = 0; c < 3; ++c)
        canvas.pixels[static_cast<std::size_t>(y * kSize + x)][c] = from[c] + t * (to[c] - from[c]);
    }
}

void paint(Canvas& canvas, int shape, const Place& place, const Colour& colour,
           const Colour& stripes) {
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x) {
      const Point p = place(x, y);
      if (std::abs(p.x) > 2 || std::abs(p.y) > 2) continue;
      const double phase = 1.6 * (p.x + p.y);
      const bool in_stripe = phase - std::floor(phase) < 0.5;
      canvas.blend(x, y, distance_to_edge(shape, p) * place.radius, in_stripe ? stripes : colour);
    }
}

void draw_object(const Look& look, Random random, std::span<std::uint8_t> out) {
  Canvas canvas;
  paint_background(canvas, random);
  for (std::uint64_t clutter = random.below(4); clutter > 0; --clutter) {
    const Colour colour = any_colour(random);
    const auto shape = static_cast<int>(random.below(10));
    paint(canvas, shape, Place(random, 2, 4, 0.5), colour, colour);
  }
  const double hue = look.hue + random.uniform(-look.hue_spread, look.hue_spread);
  const double light = random.uniform(0.6, 1.0);
  const Colour colour = faded(colour_of(hue), random.uniform(0.6, 1.0), light);
  const Colour dark = faded(colour, 1, look.striped ? 0.4 : 1);
  paint(canvas, look.shape, Place(random, 7, 13, 0.15), colour, dark);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double value = canvas.pixels[i / 3][i % 3] + random.uniform(-0.12, 0.12);
    out[i] = static_cast<std::uint8_t>(255 * std::clamp(value, 0.0, 1.0));
  }
}

}  // namespace

std::shared_ptr<const InMemoryDataset> synthetic_objects(std::int64_t count, int classes,
                                                         std::uint64_t seed) {
  require(classes == 10 || classes == 100, "objects are drawn in 10 or 100 classes, not {}",
          classes);
  constexpr std::size_t kImage = kSize * kSize * 3;
  const Random random(seed, Purpose::drawing);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * kImage);
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::uint8_t>(i % static_cast<std::size_t>(classes));
    draw_object(Look(labels[i], classes), random.split(i),
                std::span(pixels).subspan(i * kImage, kImage));
  }
  return std::make_shared<InMemoryDataset>(Shape{kSize, kSize, 3}, classes, std::move(pixels),
                                           std::move(labels));
}

}  // namespace tandem
