#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"

namespace tandem {
namespace {

constexpr int kSize = 28;

struct Point {
  double x, y;  // the unit square, y downwards
};
using Stroke = std::vector<Point>;

// The pen strokes of each digit.
const std::array<std::vector<Stroke>, 10>& strokes() {
  static const std::array<std::vector<Stroke>, 10> kStrokes = {{
      {{{.50, .10},
        {.32, .18},
        {.24, .38},
        {.24, .62},
        {.32, .82},
        {.50, .90},
        {.68, .82},
        {.76, .62},
        {.76, .38},
        {.68, .18},
        {.50, .10}}},
      {{{.34, .26}, {.54, .10}, {.54, .90}}},
      {{{.26, .30},
        {.32, .16},
        {.50, .10},
        {.68, .16},
        {.74, .32},
        {.66, .50},
        {.26, .90},
        {.76, .90}}},
      {{{.26, .18},
        {.48, .10},
        {.68, .18},
        {.70, .36},
        {.46, .48},
        {.72, .60},
        {.72, .78},
        {.50, .90},
        {.26, .82}}},
      {{{.62, .90}, {.62, .10}, {.22, .66}, {.80, .66}}},
      {{{.72, .10},
        {.32, .10},
        {.28, .46},
        {.52, .40},
        {.72, .52},
        {.74, .72},
        {.56, .90},
        {.26, .84}}},
      {{{.66, .10},
        {.42, .24},
        {.28, .50},
        {.28, .76},
        {.46, .90},
        {.68, .84},
        {.74, .66},
        {.60, .50},
        {.40, .52},
        {.28, .66}}},
      {{{.24, .10}, {.76, .10}, {.44, .90}}},
      {{{.50, .48},
        {.30, .36},
        {.32, .16},
        {.50, .10},
        {.68, .16},
        {.70, .36},
        {.50, .48},
        {.26, .64},
        {.30, .84},
        {.50, .90},
        {.70, .84},
        {.74, .64},
        {.50, .48}}},
      {{{.72, .34},
        {.60, .48},
        {.38, .48},
        {.26, .32},
        {.34, .14},
        {.54, .10},
        {.70, .18},
        {.72, .34},
        {.68, .66},
        {.54, .90}}},
  }};
  return kStrokes;
}

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  double t = length2 > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2 : 0;
  t = std::clamp(t, 0.0, 1.0);
  const double ex = a.x + t * dx - p.x, ey = a.y + t * dy - p.y;
  return std::sqrt(ex * ex + ey * ey);
}

// How one image deviates from these strokes.
struct Distortion {
  explicit Distortion(Random& random)
      : scale(random.uniform(0.75, 1.05)),
        slant(random.uniform(-0.25, 0.25)),
        shift{random.uniform(-0.09, 0.09), random.uniform(-0.09, 0.09)},
        pen(random.uniform(0.9, 1.9)) {
    // A rotation by up to 20°, from the tangent of half its angle, which needs no trigonometry and
    // is the same on every platform.
    const double t = random.uniform(-0.176, 0.176);
    cosine = (1 - t * t) / (1 + t * t);
    sine = 2 * t / (1 + t * t);
  }

  Point operator()(Point p) const {  // to pixels
    const double y = (p.y - 0.5) * scale;
    const double x = (p.x - 0.5) * scale - slant * y;
    return {(0.5 + shift.x + cosine * x - sine * y) * kSize,
            (0.5 + shift.y + sine * x + cosine * y) * kSize};
  }

  double scale, slant;
  Point shift;
  double pen;  // half the stroke's width in pixels
  double cosine, sine;
};

void draw_segment(Point a, Point b, double pen, std::span<double> ink) {
  const auto pixel = [](double v) { return std::clamp(static_cast<int>(v), 0, kSize - 1); };
  const double reach = pen + 1;
  for (int y = pixel(std::min(a.y, b.y) - reach); y <= pixel(std::max(a.y, b.y) + reach); ++y)
    for (int x = pixel(std::min(a.x, b.x) - reach); x <= pixel(std::max(a.x, b.x) + reach); ++x) {
      const double distance = distance_to_segment({x + 0.5, y + 0.5}, a, b);
      double& value = ink[static_cast<std::size_t>(y * kSize + x)];
      value = std::max(value, std::clamp(pen + 0.5 - distance, 0.0, 1.0));
    }
}

void draw_digit(int digit, Random random, std::span<std::uint8_t> pixels) {
  const Distortion distort(random);
  std::array<double, kSize * kSize> ink{};
  for (const Stroke& stroke : strokes()[static_cast<std::size_t>(digit)]) {
    std::vector<Point> way;
    for (Point p : stroke)  // an unsteady hand
      way.push_back(
          distort({p.x + random.uniform(-0.03, 0.03), p.y + random.uniform(-0.03, 0.03)}));
    for (std::size_t i = 1; i < way.size(); ++i) draw_segment(way[i - 1], way[i], distort.pen, ink);
  }
  const double strength = random.uniform(0.6, 1.0);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const double value = strength * ink[i] + random.uniform(-0.15, 0.15);
    pixels[i] = static_cast<std::uint8_t>(255 * std::clamp(value, 0.0, 1.0));
  }
}

}  // namespace

std::shared_ptr<const InMemoryDataset> synthetic_digits(std::int64_t count, std::uint64_t seed) {
  const Random random(seed, Purpose::drawing);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * kSize * kSize);
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::uint8_t>(i % 10);
    draw_digit(labels[i], random.split(i),
               std::span(pixels).subspan(i * kSize * kSize, kSize * kSize));
  }
  return std::make_shared<InMemoryDataset>(Shape{kSize, kSize, 1}, 10, std::move(pixels),
                                           std::move(labels));
}

}  // namespace tandem
