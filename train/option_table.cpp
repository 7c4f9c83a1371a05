#include "train/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/words.h"
#include "dist/codecs/codec_table.h"
#include "dist/strategies.h"
#include "dist/transport/link_speed.h"
#include "train/slow_worker.h"

namespace tandem {
namespace {

// Bounds keep products of options within 64 bits, and rates within what a float can hold.
constexpr std::uint64_t kMillion = 1'000'000, kBillion = 1'000'000'000;

Rule positive() {
  return rules::number("a number above 0 and up to 1e30",
                       [](double v) { return v > 0 && v <= 1e30; });
}
Rule not_negative() {
  return rules::number("a number from 0 to 1e30", [](double v) { return v >= 0 && v <= 1e30; });
}
Rule below_1() {
  return rules::number("a number from 0 to below 1", [](double v) { return v >= 0 && v < 1; });
}

// Seconds, or a number with a unit. Becomes seconds.
Rule duration_rule() {
  return {"a time such as 90s, 30m, 6h or 2d", [](std::string& text) {
            constexpr std::pair<char, double> kUnits[] = {
                {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
            double factor = 1;
            std::string number = text;
            for (const auto& [unit, seconds] : kUnits)
              if (text.ends_with(unit)) {
                factor = seconds;
                number.pop_back();
              }
            if (!positive().holds(number)) return false;
            double count = 0;
            std::from_chars(number.data(), number.data() + number.size(), count);
            number = fmt::format("{}", factor * count);
            if (!positive().holds(number)) return false;
            text = number;
            return true;
          }};
}

Rule algorithm() {
  const Rule one = rules::one_of(strategy_names());
  return {.must_be = one.must_be + " or auto[:LIST]", .holds = [one](std::string& text) {
            const auto list = auto_list(text);
            if (!list) return one.holds(text);
            return std::ranges::all_of(*list,
                                       [](const std::string& s) { return find_strategy(s); });
          }};
}

// Empty if the text names a compression, or a list to choose from.
std::string wrong_compressions(const std::string& text) {
  try {
    return compressions_to_try(text).empty() ? wrong_compression(text) : "";
  } catch (const UserError& e) {
    return e.what();
  }
}

Rule compression() {
  return {.must_be = "",
          .holds = [](std::string& text) { return wrong_compressions(text).empty(); },
          .what_is_wrong = wrong_compressions};
}

Rule link() {
  return {kLinkForms, [](std::string& text) {
            try {
              parse_link(text);
              return true;
            } catch (const UserError&) {
              return false;
            }
          }};
}

std::vector<OptionRow> make_table() {
  using rules::one_of, rules::whole;
  using O = TrainOptions;
  constexpr auto kDiffer = Ranks::differ;
  // The ranks compare options in this order. Options that determine others come first.
  return {
      {.name = "--algo", .member = &O::algo, .rule = algorithm(), .unset = ""},
      {.name = "--workers", .member = &O::workers, .rule = whole(1, 1024), .unset = "0"},
      {.name = "--compress", .member = &O::compress, .rule = compression()},
      {.name = "--no-error-feedback", .member = &O::no_error_feedback},
      {.name = "--link", .member = &O::link, .rule = link(), .may_change = true},
      {.name = "--slow-rank",
       .member = &O::slow_rank,
       .rule = Rule{"RANK=SPEED, such as 3=0.5, with a speed from 0.001 to 1",
                    [](std::string& text) { return parse_slow_rank(text).has_value(); }},
       .unset = "",
       .may_change = true},
      {.name = "--ranks-per-node",
       .member = &O::ranks_per_node,
       .rule = whole(1, 1024),
       .unset = "0",
       .may_change = true},
      {.name = "--verify-every",
       .member = &O::verify_every,
       .rule = whole(0, kBillion),
       .unset = fmt::format("{}", kAtEveryTest),
       .may_change = true},
      {.name = "--stall-timeout",
       .member = &O::stall_timeout,
       .ranks = kDiffer,
       .rule = rules::number("a number above 0 and up to 1000000",
                             [](double v) { return v > 0 && v <= 1e6; })},
      {.name = "--threads",
       .member = &O::threads,
       .ranks = kDiffer,
       .rule = whole(1, 1024),
       .unset = "0"},
      {.name = "--device", .member = &O::device, .rule = one_of(names_of<DeviceKind>())},
      {.name = "--precision", .member = &O::precision, .rule = one_of(names_of<Precision>())},
      {.name = "--graphs", .member = &O::graphs, .ranks = kDiffer, .rule = one_of({"on", "off"})},
      {.name = "--deterministic", .member = &O::deterministic},
      {.name = "--batch", .member = &O::batch, .rule = whole(1, kBillion)},
      {.name = "--epochs", .member = &O::epochs, .rule = whole(0, kMillion)},
      {.name = "--iterations", .member = &O::iterations, .rule = whole(1, kBillion), .unset = "0"},
      {.name = "--test-every", .member = &O::test_every, .rule = whole(1, kBillion), .unset = "0"},
      {.name = "--objective", .member = &O::objective},
      {.name = "--seed",
       .member = &O::seed,
       .rule = whole(0, std::numeric_limits<std::uint64_t>::max())},
      {.name = "--label-smoothing", .member = &O::label_smoothing, .rule = below_1()},
      {.name = "--lr", .member = &O::lr, .rule = positive()},
      {.name = "--momentum", .member = &O::momentum, .rule = below_1()},
      {.name = "--nesterov", .member = &O::nesterov},
      {.name = "--weight-decay", .member = &O::weight_decay, .rule = not_negative()},
      {.name = "--lr-schedule",
       .member = &O::lr_schedule,
       .rule = one_of(names_of<Schedule::Kind>())},
      {.name = "--lr-step-epochs", .member = &O::lr_step_epochs, .rule = whole(1, kMillion)},
      {.name = "--lr-step-factor", .member = &O::lr_step_factor, .rule = positive()},
      {.name = "--lr-warmup-iterations",
       .member = &O::lr_warmup_iterations,
       .rule = whole(0, kBillion)},
      // Paths may differ between machines. The contents must not: the ranks compare data and
      // initial weights.
      {.name = "--data", .member = &O::data, .ranks = kDiffer},
      {.name = "--load", .member = &O::load, .ranks = kDiffer},
      {.name = "--save", .member = &O::save, .ranks = kDiffer},
      {.name = "--metrics", .member = &O::metrics, .ranks = kDiffer},
      {.name = "--csv", .member = &O::csv, .ranks = kDiffer},
      {.name = "--summary", .member = &O::summary, .ranks = kDiffer},
      {.name = "--trace", .member = &O::trace, .ranks = kDiffer},
      {.name = "--profile", .member = &O::profile, .ranks = kDiffer},
      {.name = "--plan", .member = &O::plan, .ranks = kDiffer},
      {.name = "--checkpoint", .member = &O::checkpoint, .unset = "", .may_change = true},
      {.name = "--checkpoint-every",
       .member = &O::checkpoint_every,
       .rule = whole(1, kBillion),
       .unset = "0",
       .may_change = true},
      {.name = "--checkpoint-seconds",
       .member = &O::checkpoint_seconds,
       .rule = positive(),
       .may_change = true},
      {.name = "--keep", .member = &O::keep, .rule = whole(1, kMillion), .may_change = true},
      {.name = "--resume", .member = &O::resume, .unset = "", .may_change = true},
      {.name = "--resume-weights", .member = &O::resume_weights, .ranks = kDiffer, .unset = ""},
      {.name = "--mtbf",
       .member = &O::mtbf,
       .ranks = kDiffer,
       .rule = duration_rule(),
       .unset = "0"},
      {.name = "--predict", .member = &O::predict, .ranks = kDiffer, .unset = ""},
      {.name = "--json", .member = &O::json, .ranks = kDiffer},
      {.name = "--timeline", .member = &O::timeline, .ranks = kDiffer},
      {.name = "--timeline-ms",
       .member = &O::timeline_ms,
       .ranks = kDiffer,
       .rule = rules::number("a number from 0.001 to 1000000",
                             [](double v) { return v >= 1e-3 && v <= 1e6; }),
       .unset = "0"},
      {.name = "--quiet", .member = &O::quiet, .ranks = kDiffer},
  };
}

template <class T>
std::string plain(const T& value) {
  if constexpr (Named<T>)
    return to_string(value);
  else
    return fmt::format("{}", value);
}
std::string plain(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}
std::string plain(bool value) { return value ? "on" : "off"; }

}  // namespace

std::string OptionRow::text(const TrainOptions& options) const {
  if (!given(options)) return "none";
  return std::visit([&](auto field) { return plain(options.*field); }, member);
}

bool OptionRow::given(const TrainOptions& options) const {
  return !unset || std::visit([&](auto field) { return plain(options.*field) != *unset; }, member);
}

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> kTable = make_table();
  return kTable;
}

Rule rule_of(const StrategyOption& option) {
  if (!option.choices.empty()) return rules::one_of(option.choices);
  if (option.decimal()) {
    const double least = option.number(option.least), most = option.number(option.most);
    return rules::number(fmt::format("a number from {:f} to {}", least, most),
                         [=](double v) { return v >= least && v <= most; });
  }
  return rules::whole(static_cast<std::uint64_t>(option.least),
                      static_cast<std::uint64_t>(option.most));
}

const OptionRow& option_row(const std::string& name) {
  const auto found = std::ranges::find(option_table(), name, &OptionRow::name);
  require(found != option_table().end(), "{} is not in the table of options", name);
  return *found;
}

std::string summary_key(const std::string& option) {
  std::string key = option.substr(2);
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string option_of(const std::string& summary_key) {
  std::string option = "--" + summary_key;
  std::ranges::replace(option, '_', '-');
  return option;
}

std::string text_of(const TrainOptions::Own& own) {
  return std::visit([](const auto& value) { return plain(value); }, own.value);
}

}  // namespace tandem
