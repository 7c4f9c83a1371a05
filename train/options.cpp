#include "train/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "base/error.h"
#include "dist/codecs/codec_table.h"
#include "dist/strategies.h"
#include "train/check_options.h"
#include "train/choice.h"
#include "train/command_line.h"
#include "train/option_table.h"
#include "train/validators.h"

namespace tandem {
namespace {

CLI::Validator path() {
  return CLI::Validator(
      [](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "");
}

void add_own_option(CLI::App& app, const OwnOption& own) {
  const char* group = "This program";
  if (auto* const* flag = std::get_if<bool*>(&own.value)) {
    app.add_flag(own.name, **flag, own.help)->group(group);
    return;
  }
  const auto add = [&](auto& value, bool hidden) {
    CLI::Option* option = app.add_option(own.name, value, own.help);
    option->type_name(own.value_name)->group(group);
    if (hidden) option->default_str("");
    return option;
  };
  if (auto* const* number = std::get_if<std::int64_t*>(&own.value)) {
    CLI::Option* option = add(**number, **number == 0);
    option->transform(
        whole(static_cast<std::uint64_t>(own.least), static_cast<std::uint64_t>(own.most)));
  } else {
    std::string& text = *std::get<std::string*>(own.value);
    add(text, text.empty())->check(own.choices.empty() ? path() : one_of(own.choices));
  }
}

std::string algo_help() {
  std::string names;
  for (const StrategyInfo& info : all_strategies())
    names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", info.name, info.help);
  return wrapped(fmt::format(
      "The algorithm that turns gradients into updates. {}. auto: predict how long an iteration "
      "takes, and use the fastest of LIST, such as auto:merge,pipe-sgd, or of {}. Default: {}, or "
      "{} for several workers",
      names, fmt::join(algorithms_to_try("auto"), ", "), default_strategy(1).name,
      default_strategy(2).name));
}

std::string compression_help() {
  std::string codecs;
  for (const CodecInfo& codec : all_codecs())
    codecs += fmt::format("{}{}: {}", codecs.empty() ? "" : "; ", codec.form, codec.help);
  return wrapped(fmt::format(
      "How gradients are sent. none: f32; trunc16: the high 16 bits of each; quant8: 8 bits, "
      "scaled per block; terngrad-ring: -1, 0 or 1 times a scale, rounded at random again by each "
      "worker of the ring. Encoded once per worker: {}. auto: predict how long an "
      "iteration takes, and use the fastest of LIST, such as auto:none,quant8,topk:0.01, or of {}",
      codecs, fmt::join(compressions_to_try("auto"), ", ")));
}

std::string plan_help() {
  std::vector<std::string> names;
  for (const StrategyInfo& info : all_strategies())
    if (info.keeps_plan) names.push_back(info.name);
  return wrapped(fmt::format(
      "{}: keep the measured plan, which says what is sent together. If FILE exists, use its plan "
      "from the second iteration on and measure nothing; else write the plan to it (JSON). Only "
      "the first rank reads or writes it",
      fmt::join(names, ", ")));
}

// The options under one heading of --help.
class Group {
 public:
  Group(CLI::App& app, TrainOptions& options, const char* name)
      : app_(app), options_(options), name_(name) {}

  void operator()(const char* option, const char* value_name, const char* help) const {
    const OptionRow& row = option_row(option);
    std::visit([&](auto member) { add(row, options_.*member, value_name, help); }, row.member);
  }

 private:
  void add(const OptionRow& row, bool& value, const char*, const char* help) const {
    app_.add_flag(row.name, value, help)->group(name_);
  }
  template <Named E>
  void add(const OptionRow& row, E& value, const char* value_name, const char* help) const {
    app_.add_option_function<std::string>(
            row.name, [&value](const std::string& name) { value = from_string<E>(name).value(); },
            help)
        ->type_name(value_name)
        ->group(name_)
        ->transform(validator(row.rule.value()))
        ->default_str(to_string(value));
  }
  template <class T>
  void add(const OptionRow& row, T& value, const char* value_name, const char* help) const {
    const bool shows_default = row.given(options_);
    CLI::Option* option = app_.add_option(row.name, value, help);
    option->type_name(value_name)
        ->group(name_)
        ->transform(row.rule ? validator(*row.rule) : path());
    if (!shows_default) option->default_str("");
  }

  CLI::App& app_;
  TrainOptions& options_;
  const char* name_;
};

void add_options(CLI::App& app, const AppHelp& about, TrainOptions& o) {
  for (const OwnOption& own : about.own) add_own_option(app, own);

  const Group training(app, o, "Training");
  training("--batch", "N", "Samples per iteration, over all workers");
  training("--epochs", "N",
           "Passes over the training set; an incomplete last batch\n"
           "of an epoch is dropped. 0: only test");
  training("--iterations", "N", "Stop after N iterations instead of --epochs");
  training("--test-every", "N",
           "Test after every N iterations and at the end.\n"
           "Default: after every epoch");
  training("--objective", "",
           "At every test, also compute the loss over the whole\n"
           "training set, without augmentation and dropout");
  training("--seed", "N", "Determines initial weights, data order and dropout");
  training("--label-smoothing", "X", "Share of the target that is spread over all classes");

  const Group optimizer(app, o, "Optimizer (SGD)");
  optimizer("--lr", "X", "Learning rate");
  optimizer("--momentum", "X", "0 for plain SGD");
  optimizer("--nesterov", "", "Nesterov's variant of momentum");
  optimizer("--weight-decay", "X", "X times the weight is added to the gradient");
  optimizer("--lr-schedule", "NAME",
            "constant; step: multiply by --lr-step-factor\n"
            "every --lr-step-epochs; cosine: falls to 0 at the end");
  optimizer("--lr-step-epochs", "N", "See --lr-schedule");
  optimizer("--lr-step-factor", "X", "See --lr-schedule");
  optimizer("--lr-warmup-iterations", "N",
            "Increase the rate linearly over the first N iterations");

  const Group workers(app, o, "Workers");
  workers("--algo", "NAME", algo_help().c_str());
  workers("--workers", "N",
          "Model replicas that share every batch, as threads of\n"
          "this process. If a batch does not divide evenly, the\n"
          "first workers take one sample more; all samples have\n"
          "equal weight. Default: 1; under mpiexec, its processes");
  for (const StrategyOption& option : strategy_options())
    add_strategy_option(app, "Workers", option, o.algo_options);
  workers("--compress", "NAME", compression_help().c_str());
  workers("--no-error-feedback", "",
          "Forget what --compress leaves out. Without this\n"
          "option it is added to the next gradient, which most\n"
          "codecs need to learn well");
  workers("--link", "SPEED",
          "Slow the network down to a real one's speed: none,\n"
          "1gbe, 10gbe, 25gbe, 100gbe, or RATE[/LATENCY] such as\n"
          "2.5gbit/80us");
  workers("--slow-rank", "RANK=SPEED",
          "Let a worker compute more slowly than the others: with\n"
          "3=0.5, rank 3 at half the speed (CPU only)");
  workers("--ranks-per-node", "N",
          "Ranks 0 to N-1 share a node, the next N another one,\n"
          "and so on; servers are the last ranks. With --link, a\n"
          "node has one network card, and messages within a node\n"
          "are not slowed down. Default: 1; under mpiexec, the\n"
          "ranks of a machine");
  workers("--verify-every", "N",
          "Compare the weights of all workers after every N\n"
          "iterations and at the end; the run ends if they\n"
          "differ. 0: never. Default: at every test");
  workers("--stall-timeout", "SECONDS", "Give up when another rank is silent for this long");
  workers("--threads", "N",
          "Compute threads per worker; results do not depend on\n"
          "it. Default: the machine's cores divided by its ranks");

  const Group device(app, o, "Device");
  device("--device", "NAME",
         "cpu, or cuda: an NVIDIA GPU. The workers or ranks of a\n"
         "machine take its GPUs in turn, and share them if there\n"
         "are fewer GPUs");
  device("--precision", "NAME",
         "fp32; tf32: products round f32 to 10 bits of mantissa;\n"
         "bf16: activations and products in 16 bits, weights\n"
         "and all sums in f32. The CPU supports fp32 only");
  device("--graphs", "on|off",
         "cuda: record a step once and replay it, which saves\n"
         "the host most of its work");
  device("--deterministic", "",
         "cuda: the same seed gives the same bits every time, at\n"
         "some cost in speed. (The CPU is always deterministic.)");

  const Group files(app, o, "Files");
  files("--data", "DIR|synthetic", about.data.c_str());
  files("--load", "FILE",
        "Start from these weights (safetensors of F32, F16,\n"
        "BF16 or F64)");
  files("--save", "FILE",
        "Write the final weights (safetensors; PyTorch's names).\n"
        "Here and below, - is standard output; progress output\n"
        "then goes to stderr");
  files("--metrics", "FILE", "Write loss, rate and time of each iteration (JSON lines)");
  files("--csv", "FILE", "The same as a table, for a spreadsheet or a plot");
  files("--summary", "FILE", "Write the results (one JSON object)");
  files("--trace", "FILE",
        "Write the timeline of all threads (Chrome's format;\n"
        "open it with ui.perfetto.dev)");
  files("--profile", "FILE",
        "Write what build/simulate reads: the sizes and times of\n"
        "all parameters, and what communication costs the host");
  files("--plan", "FILE", plan_help().c_str());
  files("--checkpoint", "DIR",
        "Regularly save all that is needed to continue the run\n"
        "to the same bits. Ctrl-C and SIGTERM save, too");
  files("--checkpoint-every", "N", "Save after every N iterations");
  files("--checkpoint-seconds", "S", "Without --checkpoint-every, save every S seconds");
  files("--keep", "N", "How many checkpoints to keep; older ones are removed");
  files("--resume", "DIR|auto",
        "Continue from the newest checkpoint in DIR, which may\n"
        "also be a single one. auto: from the newest in\n"
        "--checkpoint; if there is none, from the beginning");
  files("--resume-weights", "DIR", "Start a new run with the weights of a checkpoint");
  files("--mtbf", "TIME",
        "Mean time between failures, such as 6h. The summary\n"
        "then has the best --checkpoint-seconds");
  files("--predict", "FILE...",
        "Train nothing; print the most probable classes of these\n"
        "images (JPEG, PNG), with the weights of --load or\n"
        "--resume-weights");
  files("--json", "", "With --predict: a JSON object per line");
  files("--timeline", "", "At the end, print two iterations of worker 0 as letters");
  files("--timeline-ms", "MS",
        "Milliseconds per letter of --timeline, to compare runs.\n"
        "Default: the two iterations fill a line");
  files("--quiet", "", "Print only errors");

  for (const OptionRow& row : option_table())
    require(app.get_option_no_throw(row.name) != nullptr, "{} cannot be given", row.name);
}

// Refuses options that were given but have no effect.
void check_use(const TrainOptions& o, const CLI::App& app) {
  const auto given = [&](const std::string& option) { return app.count(option) > 0; };
  const auto refuse_unless = [&](const std::string& option, const auto& means_something) {
    if (given(option) && std::ranges::none_of(choices_of(o).algos, means_something))
      throw UserError("{} has no effect with --algo {}", option, o.algo);
  };
  for (const StrategyOption& option : strategy_options())
    refuse_unless(option.name, [&](const std::string& algo) {
      return strategy_named(algo).has_option(option.name);
    });
  for (const char* option :
       {"--compress", "--link", "--ranks-per-node", "--slow-rank", "--verify-every"})
    refuse_unless(option,
                  [](const std::string& algo) { return strategy_named(algo).distributed(); });
  if (given("--servers") && std::ranges::none_of(choices_of(o).algos, [&](const auto& algo) {
        return strategy_named(algo).servers(o.algo_options) > 0;
      }))
    throw UserError("--servers has no effect without --via servers");
  if (o.device == DeviceKind::cpu && given("--graphs"))
    throw UserError("--graphs has no effect with --device cpu");
  if (o.timeline && o.quiet) throw UserError("--timeline and --quiet cannot be used together");
  if (given("--timeline-ms") && !o.timeline)
    throw UserError("--timeline-ms has no effect without --timeline");
  for (const char* option : {"--checkpoint-every", "--checkpoint-seconds", "--keep", "--mtbf"})
    if (given(option) && o.checkpoint.empty())
      throw UserError("{} has no effect without --checkpoint", option);
  for (const char* option :
       {"--epochs", "--iterations", "--save", "--metrics", "--csv", "--summary", "--trace",
        "--profile", "--timeline", "--checkpoint", "--resume"})
    if (given(option) && !o.predict.empty())
      throw UserError("{} has no effect with --predict", option);
  if (o.json && o.predict.empty()) throw UserError("--json has no effect without --predict");
  if (given("--checkpoint-every") && given("--checkpoint-seconds"))
    throw UserError("--checkpoint-every and --checkpoint-seconds cannot be used together");
  if (given("--iterations") && given("--epochs"))
    throw UserError("--iterations and --epochs cannot be used together");
}

}  // namespace

bool parse_options(int argc, char** argv, const AppHelp& help, TrainOptions& options) {
  CLI::App app(help.about);
  set_conventions(app);
  const StrategyOptions before = options.algo_options;
  add_options(app, help, options);
  if (!parse_command_line(app, argc, argv)) return false;
  // A value that is given must fit the net; the default need not (dist/strategy_options.h).
  for (const StrategyOption& option : strategy_options())
    if (app.count(option.name) == 0 && !before.contains(option.name))
      options.algo_options.erase(option.name);
  options = check_options(options);
  check_use(options, app);
  for (const OwnOption& own : help.own)
    std::visit(
        [&](const auto* value) {
          options.own[summary_key(own.name)] = {*value, own.ranks_differ};
        },
        own.value);
  return true;
}

}  // namespace tandem
