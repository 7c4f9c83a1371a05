#include "train/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/statistics.h"
#include "dist/codecs/codec_work.h"
#include "dist/strategies.h"
#include "train/json_input.h"
#include "train/option_table.h"

namespace tandem {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMostSamples = 1000;  // long runs of large nets must not fill the memory
constexpr std::size_t kQuantiles = 101;

}  // namespace

void Profiler::before_use(Parameter& parameter) {
  if (!in_iteration_) return hooks_.before_use(parameter);  // a test
  pause();
  if (parameter.trained())
    if (Tensor& tensor = tensor_of(parameter); tensor.seen != number_) {
      tensor.seen = number_;
      tensor.used_at = now();
    }
  hooks_.before_use(parameter);
  resume();
}

void Profiler::on_grad_ready(Parameter& parameter) {
  pause();
  tensor_of(parameter).ready_at = now();
  hooks_.on_grad_ready(parameter);
  resume();
}

Profiler::Tensor& Profiler::tensor_of(const Parameter& parameter) {
  const auto index = static_cast<std::size_t>(parameter.index);
  if (position_.size() <= index) position_.resize(index + 1, kNone);
  if (position_[index] == kNone) {
    position_[index] = tensors_.size();
    tensors_.push_back({.parameter = parameter.index});
  }
  return tensors_[position_[index]];
}

void Profiler::begin_iteration() {
  in_iteration_ = true;
  ++number_;
  computed_ = {};
  resume();
}

void Profiler::pause() { computed_ += Clock::now() - resumed_; }

void Profiler::resume() { resumed_ = Clock::now(); }

void Profiler::end_forward() {
  pause();
  forward_end_ = now();
  resume();
}

void Profiler::end_iteration() {
  pause();
  in_iteration_ = false;
  total_s_ += now();
  if (iterations_++ % every_ == 0) keep(seconds_by_tensor());
}

// A profile has one order. If a net uses its parameters in another order, or finishes them in
// another one than the reverse, some have no time of their own: they count as reached when the one
// before them is.
std::vector<double> Profiler::seconds_by_tensor() const {
  const std::size_t tensors = tensors_.size();
  std::vector<double> seconds(2 * tensors);
  double reached = 0;
  for (std::size_t i = 0; i < tensors; ++i) {
    const double end = i + 1 < tensors ? tensors_[i + 1].used_at : forward_end_;
    const double next = std::max(reached, end);
    seconds[i] = next - reached;
    reached = next;
  }
  for (std::size_t i = tensors; i-- > 0;) {
    const double next = std::max(reached, i > 0 ? tensors_[i].ready_at : now());
    seconds[tensors + i] = next - reached;
    reached = next;
  }
  return seconds;
}

void Profiler::keep(std::vector<double> sample) {
  samples_.push_back(std::move(sample));
  if (samples_.size() < kMostSamples) return;
  for (std::size_t i = 0; 2 * i < samples_.size(); ++i)
    if (i > 0) samples_[i] = std::move(samples_[2 * i]);
  samples_.resize((samples_.size() + 1) / 2);
  every_ *= 2;
}

void Profiler::restart() {
  samples_.clear();
  every_ = 1;
  total_s_ = 0;
  iterations_ = 0;
}

ComputeProfile Profiler::measured() const {
  if (samples_.empty()) return {};
  ComputeProfile measured{.mean_s = total_s_ / static_cast<double>(iterations_)};
  const auto middle = [&](std::size_t column) {
    std::vector<double> seconds;
    for (const std::vector<double>& sample : samples_) seconds.push_back(sample[column]);
    return median(std::move(seconds));
  };
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    measured.tensors.push_back({tensors_[i].parameter, middle(i), middle(tensors_.size() + i)});
  for (const std::vector<double>& sample : samples_)
    measured.iterations_s.push_back(std::reduce(sample.begin(), sample.end()));
  return measured;
}

namespace {

// The options that determine how long iterations take.
std::string source_of(const Summary& s) {
  std::string text = s.app;
  const auto add = [&](const std::string& option, const std::string& value) {
    text += fmt::format(" {} {}", option, value);
  };
  const auto add_row = [&](const char* option) { add(option, option_row(option).text(s.options)); };
  const StrategyInfo& algo = strategy_named(s.options.algo);
  for (const char* option : {"--algo", "--workers", "--batch", "--threads"}) add_row(option);
  if (algo.distributed())
    for (const char* option : {"--compress", "--link", "--ranks-per-node"}) add_row(option);
  for (const StrategyOption& option : algo.options)
    add(option.name, option.text(option_value(s.options.algo_options, option.name)));
  for (const auto& [key, own] : s.options.own)
    if (!own.ranks_differ) add(option_of(key), text_of(own));
  return shown(text, 1000);
}

// The mean over the workers, scaled so that all of computing is there: a sum of medians lacks what
// is rare.
std::vector<Profile::Tensor> mean_of(const std::vector<const ComputeProfile*>& workers,
                                     const ParameterSet& parameters) {
  std::vector<Profile::Tensor> mean;
  double all = 0, whole = 0;
  const auto count = static_cast<double>(workers.size());
  for (std::size_t i = 0; i < workers.front()->tensors.size(); ++i) {
    const auto index = static_cast<std::size_t>(workers.front()->tensors[i].parameter);
    const Parameter& parameter = *parameters.all()[index];
    Profile::Tensor& tensor = mean.emplace_back(
        Profile::Tensor{.name = parameter.name, .elements = parameter.shape.count()});
    for (const ComputeProfile* worker : workers) {
      tensor.forward_s += worker->tensors[i].forward_s / count;
      tensor.backward_s += worker->tensors[i].backward_s / count;
    }
    all += tensor.forward_s + tensor.backward_s;
  }
  for (const ComputeProfile* worker : workers) whole += worker->mean_s / count;
  for (Profile::Tensor& tensor : mean) {
    tensor.forward_s *= whole / all;
    tensor.backward_s *= whole / all;
  }
  return mean;
}

std::vector<double> spread_of(const std::vector<const ComputeProfile*>& workers) {
  std::vector<double> relative;
  for (const ComputeProfile* worker : workers) {
    const double mean_s = mean(worker->iterations_s);
    for (const double seconds : worker->iterations_s) relative.push_back(seconds / mean_s);
  }
  std::ranges::sort(relative);
  if (relative.size() <= kQuantiles) return relative;
  std::vector<double> quantiles;
  for (std::size_t i = 0; i < kQuantiles; ++i)
    quantiles.push_back(relative[i * (relative.size() - 1) / (kQuantiles - 1)]);
  return quantiles;
}

// The last iterations, by worker.
std::vector<std::vector<double>> iterations_of(const std::vector<const ComputeProfile*>& workers) {
  constexpr std::size_t kMost = 200, kMostWorkers = 64;
  std::size_t count = workers.front()->iterations_s.size();
  double mean_s = 0;
  for (const ComputeProfile* worker : workers) {
    count = std::min(count, worker->iterations_s.size());
    mean_s += mean(worker->iterations_s) / static_cast<double>(workers.size());
  }
  if (workers.size() == 1 || workers.size() > kMostWorkers) return {};
  std::vector<std::vector<double>> all;
  for (std::size_t i = count - std::min(count, kMost); i < count; ++i) {
    auto& iteration = all.emplace_back();
    for (const ComputeProfile* worker : workers)
      iteration.push_back(worker->iterations_s[i] / mean_s);
  }
  return all;
}

// `alone`: the run's compressor, measured without the run.
HostCost host_cost_of(const Summary& s, const HostWork& alone) {
  HostWork work;
  double at_workers = 0, at_servers = 0;  // seconds of updates
  for (const RankReport& rank : s.ranks) {
    work.check += rank.host.check;
    work.compress += rank.host.compress;
    work.decompress += rank.host.decompress;
    work.add += rank.host.add;
    work.copy += rank.host.copy;
    at_workers += rank.compute(SpanKind::update);
    at_servers += rank.communication(SpanKind::update);
  }
  // What the run has not done, such as sums with a single worker, a simulation of more workers
  // does.
  const auto cost = [](const HostWork::Total& in_the_run, const HostWork::Total& otherwise) {
    return (in_the_run.elements > 0 ? in_the_run : otherwise).per_element();
  };
  // Either every worker updates all weights, or the servers together do.
  const double updated = static_cast<double>(s.timed()) * static_cast<double>(s.gradient_count);
  return {.check = cost(work.check, alone.check),
          .compress = cost(work.compress, alone.compress),
          .decompress = cost(work.decompress, alone.decompress),
          .add = cost(work.add, alone.add),
          .copy = cost(work.copy, alone.copy),
          .update = (at_workers / s.options.workers + at_servers) / updated};
}

// For a compressor that the run did not use: measured without the run, and slowed down as the run
// slowed down its own compressor, which shared the cores with computing.
HostCost host_cost_of_other(const std::string& compressor, const HostCost& own,
                            const HostWork& alone) {
  const HostWork other = measure_host_work(*make_compressor(compressor));
  const auto cost = [](double in_the_run, const HostWork::Total& own_alone,
                       const HostWork::Total& other_alone) {
    const double slower = own_alone.per_element() > 0 ? in_the_run / own_alone.per_element() : 1;
    return std::max(1.0, slower) * other_alone.per_element();
  };
  return {.check = own.check,
          .compress = cost(own.add, alone.add, other.compress),
          .decompress = cost(own.add, alone.add, other.decompress),
          .add = cost(own.add, alone.add, other.add),
          .copy = cost(own.copy, alone.copy, other.copy),
          .update = own.update};
}

// The same for a codec. Its work is measured alone, and slowed down like that of a compressor.
HostCost host_cost_of_codec(const CodecWork& work, const HostCost& own, const HostWork& alone) {
  const double slower =
      alone.add.per_element() > 0 ? std::max(1.0, own.add / alone.add.per_element()) : 1;
  return {.check = own.check,
          .compress = slower * work.encode,
          .decompress = slower * work.decode_sum,
          .add = slower * work.add,
          .copy = own.copy,
          .update = own.update,
          .encode_sum = slower * work.encode_sum};
}

}  // namespace

Profile profile_of(const Summary& s, const ParameterSet& parameters) {
  const int workers = s.options.workers;
  Profile profile{.net = shown(s.net),
                  .source = source_of(s),
                  .batch = (s.options.batch + workers - 1) / workers};
  std::vector<const ComputeProfile*> measured;
  for (const RankReport& rank : s.ranks)
    if (!rank.computing_by_tensor.tensors.empty()) measured.push_back(&rank.computing_by_tensor);
  if (measured.empty() || s.timed() == 0) return profile;
  profile.tensors = mean_of(measured, parameters);
  profile.spread = spread_of(measured);
  profile.iterations = iterations_of(measured);
  const std::string in_ring = compressor_in_ring(s.options.compress);
  const HostWork alone = measure_host_work(*make_compressor(in_ring));
  const HostCost own = host_cost_of(s, alone);
  for (const std::string& compressor : compressor_names())
    profile.host[compressor] =
        compressor == in_ring ? own : host_cost_of_other(compressor, own, alone);
  const auto take_codec = [&](const std::string& text) {
    if (const auto choice = parse_compression(text); choice && choice->info->by_block)
      profile.host[text] = host_cost_of_codec(measure_codec_work(*choice), own, alone);
  };
  for (const CodecInfo& codec : all_codecs())
    for (const std::string& text : codec.examples) take_codec(text);
  take_codec(s.options.compress);
  return profile;
}

}  // namespace tandem
