#include "speedup/results.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/statistics.h"
#include "dist/strategies.h"

namespace tandem {

const std::vector<Algorithm>& all_algorithms() {
  static const std::vector<Algorithm> kAll = [] {
    std::vector<Algorithm> all;
    for (const StrategyInfo& info : all_strategies())
      if (const SpeedupRows& rows = info.rows; !rows.label.empty())
        for (const std::string& compress : rows.compressors)
          all.push_back({row_name(rows.label, compress), info.name, compress, rows.by_default});
    return all;
  }();
  return kAll;
}

std::string row_name(const std::string& label, const std::string& compress) {
  if (compress == "none") return label;
  return label + "+" + (compress == "trunc16" ? "T" : compress == "quant8" ? "Q" : compress);
}

std::vector<Algorithm> rows_of(std::span<const Cell> cells) {
  std::vector<Algorithm> rows = all_algorithms();
  for (const Cell& cell : cells) {
    if (std::ranges::find(rows, cell.name, &Algorithm::name) != rows.end()) continue;
    const auto last =
        std::ranges::find(rows.rbegin(), rows.rend(), cell.algo, &Algorithm::algo).base();
    rows.insert(last, {cell.name, cell.algo, cell.compress, false});
  }
  return rows;
}

std::string workers_text(int workers) {
  return fmt::format("{} worker{}", workers, workers == 1 ? "" : "s");
}

std::string Cell::setting() const {
  return fmt::format("{}, link {}", workers_text(workers), link);
}

double Cell::iteration_ms() const { return mean(repeats_ms); }

std::optional<double> Cell::spread_ms() const {
  if (repeats_ms.size() < 2) return {};
  const auto [least, most] = std::ranges::minmax(repeats_ms);
  return (most - least) / 2;
}

namespace {

// The accuracy that a test and the two after it have all reached.
double lasting(std::span<const CurvePoint> curve, std::size_t test) {
  constexpr std::size_t kInARow = 3;
  const auto tests = curve.subspan(test, std::min(kInARow, curve.size() - test));
  return std::ranges::min(tests, {}, &CurvePoint::accuracy).accuracy;
}

}  // namespace

std::optional<double> Cell::seconds_to(double accuracy) const {
  if (accuracy <= 0) return {};
  for (std::size_t i = 0; i < curve.size(); ++i)
    if (lasting(curve, i) >= accuracy) return curve[i].wall_s;
  return {};
}

double Cell::reached() const {
  double most = 0;
  for (std::size_t i = 0; i < curve.size(); ++i) most = std::max(most, lasting(curve, i));
  return most;
}

double Results::samples(int workers) const {
  return batch_per_worker > 0 ? static_cast<double>(batch_per_worker) * workers
                              : static_cast<double>(batch);
}

std::vector<std::span<const Cell>> Results::settings() const {
  std::vector<std::span<const Cell>> all;
  for (auto begin = cells.begin(); begin != cells.end();) {
    const auto end = std::find_if(begin, cells.end(), [&](const Cell& c) {
      return c.workers != begin->workers || c.link != begin->link;
    });
    all.emplace_back(begin, end);
    begin = end;
  }
  return all;
}

namespace {

// D-Sync with the same compression, workers and link; null if there is none.
const Cell* d_sync_like(const Results& results, const Cell& cell) {
  return results.beside(cell, row_name("D-Sync", cell.compress));
}

}  // namespace

void Results::extrapolate() {
  if (!extrapolates()) return;
  for (Cell& cell : cells) {
    if (!cell.done()) continue;
    const Cell* d_sync = d_sync_like(*this, cell);
    const double closed_ms = (d_sync ? *d_sync : cell).iteration_ms();
    for (CurvePoint& point : cell.curve) {
      const auto closed = std::min(point.iteration, cell.warmup);
      point.wall_s = (static_cast<double>(closed) * closed_ms +
                      static_cast<double>(point.iteration - closed) * cell.iteration_ms()) /
                     1e3;
    }
  }
}

const Cell* Results::beside(const Cell& cell, std::string_view algorithm) const {
  const auto found = std::ranges::find_if(cells, [&](const Cell& other) {
    return other.name == algorithm && other.workers == cell.workers && other.link == cell.link &&
           other.done();
  });
  return found == cells.end() ? nullptr : &*found;
}

std::optional<double> Results::speedup(const Cell& cell, std::string_view over) const {
  const Cell* other = beside(cell, over);
  if (!other || !cell.done()) return {};
  return other->iteration_ms() / cell.iteration_ms();
}

std::optional<double> Results::speedup_at_same_bits(const Cell& cell) const {
  const Cell* d_sync = d_sync_like(*this, cell);
  if (!d_sync) return {};
  return speedup(cell, d_sync->name);
}

}  // namespace tandem
