#include "dist/schedule/merge.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>

#include "base/error.h"

namespace tandem {

Groups each_alone(const Layers& layers) { return Groups(layers.size(), 1); }

Groups all_together(const Layers& layers) {
  return layers.empty() ? Groups() : Groups{layers.size()};
}

Groups of_size(const Layers& layers, double bytes) {
  Groups groups;
  double filled = bytes;
  for (const TimedLayer& layer : layers) {
    if (filled >= bytes) groups.push_back(0), filled = 0;
    ++groups.back();
    filled += layer.bytes;
  }
  return groups;
}

// Alg. 1 of the paper, in our order: its layer l - 1 is the one after layer l. Its line 13 compares
// the duration tc, where the theorem has the start time τc; this is the theorem.
Groups by_theorem_1(const Layers& layers, const SumCost& cost) {
  Groups groups;
  double free = 0;      // when the network has sent all earlier groups
  double start = 0;     // when the open group could be sent
  double bytes = 0;     // of the open group
  bool merges = false;  // whether the group is still open
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!merges) groups.push_back(0), bytes = 0, start = free;
    ++groups.back();
    bytes += layers[i].bytes;
    start = std::max(start, layers[i].ready);
    merges = i + 1 < layers.size() && layers[i + 1].ready - start < cost.a;
    if (!merges) free = start + cost(bytes);
  }
  return groups;
}

// Dynamic programming. done[j] is the earliest time at which the first j layers can be summed. The
// last of their groups has layers i … j-1: it begins when the layers before it are summed and its
// last layer is ready.
Groups optimal(const Layers& layers, const SumCost& cost) {
  const std::size_t n = layers.size();
  std::vector<double> done(n + 1, 0), before(n + 1, 0);  // before: bytes of the first j layers
  std::vector<std::size_t> first(n + 1, 0);              // of the last group
  double ready = 0;
  for (std::size_t j = 1; j <= n; ++j) {
    before[j] = before[j - 1] + layers[j - 1].bytes;
    ready = std::max(ready, layers[j - 1].ready);
    done[j] = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < j; ++i) {
      const double time = std::max(done[i], ready) + cost(before[j] - before[i]);
      if (time < done[j]) done[j] = time, first[j] = i;
    }
  }
  Groups groups;
  for (std::size_t j = n; j > 0; j = first[j]) groups.push_back(j - first[j]);
  std::ranges::reverse(groups);
  const Groups one = all_together(layers);
  return finish_time(layers, one, cost) <= finish_time(layers, groups, cost) ? one : groups;
}

double finish_time(const Layers& layers, const Groups& groups, const SumCost& cost) {
  double done = 0, ready = 0;
  std::size_t i = 0;
  for (const std::size_t size : groups) {
    double bytes = 0;
    for (const std::size_t end = i + size; i < end; ++i) {
      require(i < layers.size(), "the groups have more than {} layers", layers.size());
      bytes += layers[i].bytes;
      ready = std::max(ready, layers[i].ready);
    }
    const bool all = groups.size() == 1 && cost.all > 0;
    if (all && cost.all_ready > 0) ready = cost.all_ready;
    done = std::max(done, ready) + (all ? cost.all : cost(bytes));
  }
  require(i == layers.size(), "the groups have {} layers of {}", i, layers.size());
  return done;
}

double MergePlan::predicted_s(const Groups& by) const {
  double last = 0, all = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    all += layers[i].bytes;
    if (i >= layers.size() - by.back()) last += layers[i].bytes;
  }
  return finish_time(layers, by, cost) + update_s * last / all;
}

// The best line has its largest error at three of the times: above, below and above them, or the
// other way round. So it is a multiple of the line through the outer two. Otherwise a or b is 0.
SumCost fit(const std::vector<SumTime>& times) {
  SumCost best;
  double least = std::numeric_limits<double>::infinity();
  // The best multiple of a line is as far above one of the times as it is below another.
  const auto consider = [&](const SumCost& line) {
    if (line.a < 0 || line.b < 0) return;
    double low = std::numeric_limits<double>::infinity(), high = 0;  // the line, by the times
    for (const auto& [bytes, seconds] : times) {
      low = std::min(low, line(bytes) / seconds);
      high = std::max(high, line(bytes) / seconds);
    }
    const double error = (high - low) / (high + low), scale = 2 / (high + low);
    if (error < least - 1e-12) best = {.a = scale * line.a, .b = scale * line.b}, least = error;
  };
  consider({.a = 1});
  consider({.b = 1});
  for (const SumTime& x : times)
    for (const SumTime& y : times) {
      if (x.bytes >= y.bytes) continue;
      const double b = (y.seconds - x.seconds) / (y.bytes - x.bytes);
      consider({.a = x.seconds - b * x.bytes, .b = b});
    }
  return best;
}

void MergePlan::visit(State& state) {
  std::vector<double> ready, bytes, sizes(groups.begin(), groups.end());
  std::string text;  // a name per line
  for (const TimedLayer& layer : layers) {
    ready.push_back(layer.ready);
    bytes.push_back(layer.bytes);
  }
  for (const std::string& name : names) text += name + '\n';
  state("plan: layers per message", sizes);
  state("plan: seconds until each layer is ready", ready);
  state("plan: bytes of each layer", bytes);
  state("plan: names", text);
  state("plan: a", cost.a);
  state("plan: b", cost.b);
  state("plan: long messages", cost.long_bytes);
  state("plan: b of long messages", cost.long_b);
  state("plan: seconds of one message", cost.all);
  state("plan: seconds of backward before it", cost.all_ready);
  state("plan: seconds of the update", update_s);
  state("plan: file", file);

  names.clear();
  std::istringstream lines(text);
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  const auto fits = [&](double size) {
    return size >= 1 && size <= static_cast<double>(ready.size()) && size == std::floor(size);
  };
  if (ready.size() != bytes.size() || ready.size() != names.size() ||
      !std::ranges::all_of(sizes, fits) ||
      std::accumulate(sizes.begin(), sizes.end(), 0.0) != static_cast<double>(ready.size()))
    throw UserError("the saved plan does not have all layers in its messages");
  groups.assign(sizes.begin(), sizes.end());
  layers.clear();
  for (std::size_t i = 0; i < ready.size(); ++i) layers.push_back({ready[i], bytes[i]});
}

}  // namespace tandem
