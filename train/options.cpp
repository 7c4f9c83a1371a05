#include "train/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "dist/strategy.h"
#include "tensor/error.h"
#include "train/files.h"

namespace tandem {
namespace {

// A check that refuses with a sentence about the value itself; CLI11 puts the option's name before.
template <class T>
CLI::Validator accept(const std::string& rule, bool (*holds)(T)) {
  return CLI::Validator(
      [rule, holds](std::string& text) {
        T value{};
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && rest == end && holds(value)) return std::string();
        return fmt::format("must be {}, not {}", rule, text);
      },
      "");
}

CLI::Validator at_least_0() {
  return accept<std::int64_t>("a whole number of at least 0",
                              [](std::int64_t v) { return v >= 0; });
}
CLI::Validator at_least_1() {
  return accept<std::int64_t>("a whole number of at least 1",
                              [](std::int64_t v) { return v >= 1; });
}
CLI::Validator positive() {
  return accept<double>("a number above 0", [](double v) { return std::isfinite(v) && v > 0; });
}
CLI::Validator not_negative() {
  return accept<double>("a number of at least 0",
                        [](double v) { return std::isfinite(v) && v >= 0; });
}
CLI::Validator below_1() {
  return accept<double>("a number of at least 0 and below 1",
                        [](double v) { return v >= 0 && v < 1; });
}
CLI::Validator thread_count() {
  return accept<std::int64_t>("a whole number from 1 to 1024",
                              [](std::int64_t v) { return v >= 1 && v <= 1024; });
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  return CLI::Validator(
      [names](std::string& text) {
        for (const std::string& name : names)
          if (text == name) return std::string();
        return fmt::format("must be {}, not {}", fmt::join(names, " or "), text);
      },
      "");
}

void add_options(CLI::App& app, TrainOptions& o) {
  const auto group = [&app](const char* name) {
    return [&app, name](const char* flag, auto& value, const char* value_name, const char* help) {
      return app.add_option(flag, value, help)->type_name(value_name)->group(name);
    };
  };

  const auto training = group("Training");
  training("--batch", o.batch, "N", "Samples per iteration, over all workers")->check(at_least_1());
  training("--epochs", o.epochs, "N",
           "Passes over the training set; samples that do not fill\n"
           "the last batch of an epoch are left out of it.\n"
           "0: only test")
      ->check(at_least_0());
  training("--iterations", o.iterations, "N", "Stop after N iterations instead of --epochs")
      ->check(at_least_1())
      ->default_str("");
  training("--seed", o.seed, "N", "Decides initial weights, data order and dropout")
      ->check(at_least_0());
  training("--label-smoothing", o.label_smoothing, "X",
           "Share of the target spread evenly over all classes")
      ->check(below_1());

  const auto optimizer = group("Optimizer (SGD)");
  optimizer("--lr", o.lr, "X", "Learning rate")->check(positive());
  optimizer("--momentum", o.momentum, "X", "0 for plain SGD")->check(below_1());
  app.add_flag("--nesterov", o.nesterov, "Nesterov's variant of momentum")
      ->group("Optimizer (SGD)");
  optimizer("--weight-decay", o.weight_decay, "X", "Added to the gradient, times the weight")
      ->check(not_negative());
  optimizer("--lr-schedule", o.lr_schedule, "NAME",
            "constant; step: multiplied by --lr-step-factor\n"
            "every --lr-step-epochs; cosine: falls to 0 at the end")
      ->check(one_of({"constant", "step", "cosine"}));
  optimizer("--lr-step-epochs", o.lr_step_epochs, "N", "See --lr-schedule")->check(at_least_1());
  optimizer("--lr-step-factor", o.lr_step_factor, "X", "See --lr-schedule")->check(positive());
  optimizer("--lr-warmup-iterations", o.lr_warmup_iterations, "N",
            "Begin with a linear rise to the rate")
      ->check(at_least_0());

  const auto workers = group("Workers");
  workers("--algo", o.algo, "NAME", "How gradients become updates. single: one worker")
      ->check(one_of(strategy_names()));
  workers("--workers", o.workers, "N", "Model replicas that share the work")->check(thread_count());
  workers("--threads", o.threads, "N",
          "Compute threads per worker; results do not depend on\n"
          "it. Default: this machine's cores over the workers")
      ->check(thread_count())
      ->default_str("");
  workers("--device", o.device, "NAME", "cpu or cuda")->check(one_of({"cpu", "cuda"}));

  const auto files = group("Files");
  files("--data", o.data, "DIR|synthetic",
        "Folder with the data set, or digits drawn by program.\n"
        "Default: what `make data` has put into datasets/");
  files("--load", o.load, "FILE", "Begin with these weights (safetensors)");
  files("--save", o.save, "FILE", "Write the final weights (safetensors; PyTorch's names)");
  files("--metrics", o.metrics, "FILE", "Write loss, rate and times per iteration (JSON lines)");
  files("--summary", o.summary, "FILE", "Write the results (one JSON object)");
  app.add_flag("--quiet", o.quiet, "Print nothing but errors")->group("Files");
}

void check_together(TrainOptions& o, const CLI::App& app) {
  if (o.algo == "single" && o.workers != 1)
    throw UserError("--workers {} needs a distributed algorithm; --algo single is one worker",
                    o.workers);
  if (o.nesterov && o.momentum == 0) throw UserError("--nesterov needs a --momentum above 0");
  if (o.iterations > 0 && app.count("--epochs") > 0)
    throw UserError("--iterations and --epochs exclude each other");
  if (o.threads == 0)
    o.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / o.workers);
  for (const auto& [option, path] : {std::pair{"--save", o.save}, std::pair{"--metrics", o.metrics},
                                     std::pair{"--summary", o.summary}})
    if (!path.empty()) check_writable(option, path);
}

}  // namespace

bool parse_options(int argc, char** argv, const std::string& description, TrainOptions& options) {
  CLI::App app(description);
  app.option_defaults()->always_capture_default();
  app.get_formatter()->column_width(34);
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return false;
  } catch (const CLI::ArgumentMismatch& e) {  // "--lr: 1 required X missing"
    const std::string message = e.what();
    throw UserError("{} needs a value; --help lists the options",
                    message.substr(0, message.find(':')));
  } catch (const CLI::ParseError& e) {
    throw UserError("{}; --help lists the options", e.what());
  }
  check_together(options, app);
  return true;
}

nlohmann::ordered_json to_json(const TrainOptions& o) {
  return {{"algo", o.algo},
          {"workers", o.workers},
          {"threads", o.threads},
          {"device", o.device},
          {"batch", o.batch},
          {"epochs", o.epochs},
          {"iterations", o.iterations},
          {"seed", o.seed},
          {"label_smoothing", o.label_smoothing},
          {"lr", o.lr},
          {"momentum", o.momentum},
          {"nesterov", o.nesterov},
          {"weight_decay", o.weight_decay},
          {"lr_schedule", o.lr_schedule},
          {"lr_step_epochs", o.lr_step_epochs},
          {"lr_step_factor", o.lr_step_factor},
          {"lr_warmup_iterations", o.lr_warmup_iterations},
          {"data", o.data},
          {"load", o.load},
          {"save", o.save},
          {"metrics", o.metrics},
          {"quiet", o.quiet}};
}

}  // namespace tandem
