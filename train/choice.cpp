#include "train/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "dist/codecs/codec_table.h"
#include "dist/launch.h"
#include "dist/schedule/measure.h"
#include "dist/strategies.h"
#include "dist/transport/collectives.h"
#include "train/interruption.h"
#include "train/length.h"
#include "train/replica.h"
#include "train/run_text.h"
#include "train/start.h"
#include "train/worker.h"

namespace tandem {
namespace {

// Whether the text is auto without a list.
bool is_open(const std::string& text) {
  const auto list = auto_list(text);
  return list && list->empty();
}

// Why this algorithm cannot be used with this compression; empty if it can.
std::string impossible(const TrainOptions& o, const std::string& algo,
                       const std::string& compress) {
  try {
    strategy_named(algo).require_possible(o.workers, compress, o.algo_options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

class Predictions {
 public:
  Predictions(const Task& task, const DataSplit& data, const TrainOptions& o,
              const Choices& choices, Communication& communication)
      : task_(task), data_(data), o_(o), choices_(choices), communication_(communication) {
    o_.trace.clear();
    o_.timeline = false;
    measured_ = *trial(trial_strategy().name, "none").merge;
  }

  // The seconds of an iteration, by algorithm and compression in turn; NaN: impossible.
  std::vector<double> all() {
    std::vector<double> seconds(choices_.algos.size() * choices_.compressions.size(),
                                std::numeric_limits<double>::quiet_NaN());
    for (std::size_t c = 0; c < choices_.compressions.size(); ++c) {
      const std::string& compress = choices_.compressions[c];
      if (c > 0 || compress != "none") measure_cost(compress);  // the trial has measured "none"
      for (std::size_t a = 0; a < choices_.algos.size(); ++a)
        if (impossible(o_, choices_.algos[a], compress).empty())
          seconds[a * choices_.compressions.size() + c] = seconds_with(choices_.algos[a], compress);
    }
    return seconds;
  }

 private:
  double seconds_with(const std::string& algo, const std::string& compress) {
    const StrategyInfo& info = strategy_named(algo);
    if (info.forecast) return info.forecast(measured_, o_.algo_options);
    return trial(algo, compress).predicted_s.value();
  }

  // The first iterations of a run, until the algorithm has made its plan.
  CommunicationPlan trial(const std::string& algo, const std::string& compress) {
    o_.algo = algo;
    o_.compress = compress;
    o_.epochs = 0;
    o_.iterations = strategy_named(algo).measures_until;
    const Length length(data_, o_);
    const auto compressor = make_compressor(compressor_in_ring(compress));
    std::optional<Worker> worker;
    together(communication_, [&] {
      worker.emplace(task_, data_, o_, length, *compressor, communication_);
      for (const std::string& one : choices_.algos)
        strategy_named(one).require_fitting(o_.algo_options, worker->parameters());
    });
    try {
      Strategy& strategy = worker->strategy();
      for (std::int64_t t = 1; t <= length.iterations; ++t) {
        if (const int signal = Interruptible::signal(); signal != 0)
          throw Interrupted(signal, after_interruption(o_, 0));
        worker->begin(t, t == 1);
        const Batch batch = worker->next_batch();
        strategy.before_step(t);
        worker->forward_and_backward(batch);
        strategy.after_backward(t);
      }
      strategy.finish();
      return strategy.plan();
    } catch (const SaidElsewhere&) {
      throw;
    } catch (const OutOfMemory& e) {
      communication_.stop(e.what());
      worker->explain(e);
    } catch (const std::exception& e) {
      communication_.stop(e.what());  // pending communication uses the worker
      throw;
    }
  }

  void measure_cost(const std::string& compress) {
    const int rank = communication_.transport().rank();
    o_.algo = choices_.algos.front();
    o_.compress = compress;
    const auto compressor = make_compressor(compressor_in_ring(compress));
    std::optional<Replica> replica;
    std::unique_ptr<Codec> codec;
    together(communication_, [&] {
      replica.emplace(task_, data_, o_, make_device(o_, rank));
      codec = make_codec(o_, Length(data_, o_), replica->parameters(), rank);
    });
    Spans spans;
    const double all_ready = measured_.cost.all_ready;
    measured_.cost = measure_sum_cost({.parameters = replica->parameters(),
                                       .optimizer = replica->optimizer(),
                                       .spans = spans,
                                       .communication = communication_,
                                       .compressor = *compressor,
                                       .codec = codec.get(),
                                       .workers = o_.workers});
    measured_.cost.all_ready = all_ready;
  }

  const Task& task_;
  const DataSplit& data_;
  TrainOptions o_;
  const Choices& choices_;
  Communication& communication_;
  MergePlan measured_;
};

// The first worker decides, because arithmetic may differ between machines.
void take_those_of_first(Communication& communication, int workers, std::vector<double>& seconds) {
  communication.call([&] {
    const auto own = std::as_writable_bytes(std::span(seconds));
    Bytes bytes(own.begin(), own.end());
    broadcast(communication.transport(), workers, bytes);
    std::ranges::copy(bytes, own.begin());
  });
}

std::string table_of(const Choices& choices, const std::vector<double>& seconds) {
  std::size_t first = 0;
  for (const std::string& algo : choices.algos) first = std::max(first, algo.size());
  const auto width = [](const std::string& compress) {
    return std::max<std::size_t>(9, compress.size() + 2);
  };
  std::string text = "auto: milliseconds per iteration, predicted from a trial\n";
  text += fmt::format("auto: {:<{}}", "", first);
  for (const std::string& compress : choices.compressions)
    text += fmt::format("{:>{}}", compress, width(compress));
  auto next = seconds.begin();
  for (const std::string& algo : choices.algos) {
    text += fmt::format("\nauto: {:<{}}", algo, first);
    for (const std::string& compress : choices.compressions) {
      const double ms = 1e3 * *next++;
      text += fmt::format("{:>{}}", ms >= 0 ? fmt::format("{:.2f}", ms) : "-", width(compress));
    }
  }
  return text + "\n";
}

}  // namespace

// auto without a list leaves out what fits nothing that the user names.
Choices choices_of(const TrainOptions& o) {
  Choices choices{algorithms_to_try(o.algo), compressions_to_try(o.compress)};
  if (choices.algos.empty()) choices.algos = {o.algo};
  if (choices.compressions.empty()) choices.compressions = {o.compress};
  TrainOptions with = o;
  with.workers = std::max(2, o.workers);  // perhaps not known yet
  const auto fits = [&](const std::string& algo, const std::string& compress) {
    return find_strategy(algo) && impossible(with, algo, compress).empty();
  };
  const Choices all = choices;
  if (is_open(o.algo))
    std::erase_if(choices.algos, [&](const std::string& algo) {
      return std::ranges::none_of(all.compressions,
                                  [&](const std::string& one) { return fits(algo, one); });
    });
  if (is_open(o.compress))
    std::erase_if(choices.compressions, [&](const std::string& compress) {
      return std::ranges::none_of(all.algos,
                                  [&](const std::string& one) { return fits(one, compress); });
    });
  return choices.algos.empty() || choices.compressions.empty() ? all : choices;
}

void check_choices(const TrainOptions& o, const Choices& choices) {
  const char* const option = choices.algos.size() > 1 ? "--algo auto" : "--compress auto";
  for (const std::string& algo : choices.algos) {
    const StrategyInfo& info = strategy_named(algo);
    if (!info.sums_gradients() || info.servers(o.algo_options) > 0)
      throw UserError(
          "{} needs algorithms that sum gradients without servers, such as d-sync, not {}", option,
          algo);
  }
  if (o.workers < 2) throw UserError("{} needs at least 2 workers, not {}", option, o.workers);
  const auto require_one = [](const auto& others, const auto& why) {
    std::string last;
    for (const std::string& other : others)
      if (last = why(other); last.empty()) return;
    throw UserError("{}", last);
  };
  for (const std::string& algo : choices.algos)
    require_one(choices.compressions,
                [&](const std::string& compress) { return impossible(o, algo, compress); });
  for (const std::string& compress : choices.compressions) {
    require_one(choices.algos,
                [&](const std::string& algo) { return impossible(o, algo, compress); });
    if (!impossible(o, trial_strategy().name, compress).empty())
      throw UserError("{} cannot predict --compress {}: parts of the gradient cannot be encoded",
                      option, compress);
  }
  for (const auto& [used, other] : {std::pair{!o.checkpoint.empty(), "--checkpoint"},
                                    {!o.resume.empty(), "--resume"},
                                    {!o.profile.empty(), "--profile"},
                                    {!o.plan.empty(), "--plan"}})
    if (used)
      throw UserError(
          "{} cannot be used with {}: it may choose differently next time; name what it has chosen",
          option, other);
}

Chosen choose(const Task& task, const DataSplit& data, const TrainOptions& o,
              const Choices& choices, Communication& communication) {
  Chosen chosen{choices.algos.front(), choices.compressions.front(), ""};
  if (!choices.several() || Length(data, o).iterations == 0) return chosen;
  constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
  const auto count_from = [&](std::int64_t iteration) {
    communication.call([&] {
      communication.transport().count_bytes(iteration != kNever);
      communication.spans().count_from(iteration);
    });
  };
  count_from(kNever);
  std::vector<double> seconds = Predictions(task, data, o, choices, communication).all();
  take_those_of_first(communication, o.workers, seconds);
  count_from(0);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (seconds[i] < least) {
      least = seconds[i];
      chosen.algo = choices.algos[i / choices.compressions.size()];
      chosen.compress = choices.compressions[i % choices.compressions.size()];
    }
  chosen.text = table_of(choices, seconds) +
                fmt::format("auto: uses {} with --compress {}\n", chosen.algo, chosen.compress);
  return chosen;
}

}  // namespace tandem
