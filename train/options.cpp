#include "train/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <thread>

#include "dist/strategy.h"
#include "dist/transport/link_speed.h"
#include "dist/transport/mpi_launch.h"
#include "tensor/precision.h"
#include "train/command_line.h"
#include "train/validators.h"

namespace tandem {
namespace {

// Bounds keep products of options within 64 bits, and rates within what a float can hold.
constexpr std::uint64_t kMillion = 1'000'000, kBillion = 1'000'000'000;

CLI::Validator positive() {
  return number<double>("a number above 0 and up to 1e30",
                        [](double v) { return v > 0 && v <= 1e30; });
}
CLI::Validator not_negative() {
  return number<double>("a number from 0 to 1e30", [](double v) { return v >= 0 && v <= 1e30; });
}
CLI::Validator below_1() {
  return number<double>("a number from 0 to below 1", [](double v) { return v >= 0 && v < 1; });
}

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

void add_options(CLI::App& app, const AppHelp& about, TrainOptions& o) {
  for (const OwnOption& own : about.own) add_own_option(app, own);

  const auto group = [&app](const char* name) {
    return [&app, name](const char* flag, auto& value, const char* value_name, const char* help) {
      return app.add_option(flag, value, help)->type_name(value_name)->group(name);
    };
  };

  const auto training = group("Training");
  training("--batch", o.batch, "N", "Samples per iteration, over all workers")
      ->transform(whole(1, kBillion));
  training("--epochs", o.epochs, "N",
           "Passes over the training set; samples that do not fill\n"
           "the last batch of an epoch are left out of it.\n"
           "0: only test")
      ->transform(whole(0, kMillion));
  training("--iterations", o.iterations, "N", "Stop after N iterations instead of --epochs")
      ->transform(whole(1, kBillion))
      ->default_str("");
  training("--test-every", o.test_every, "N",
           "Test after every N iterations and at the end.\n"
           "Default: after every epoch")
      ->transform(whole(1, kBillion))
      ->default_str("");
  training("--seed", o.seed, "N", "Decides initial weights, data order and dropout")
      ->transform(whole(0, std::numeric_limits<std::uint64_t>::max()));
  training("--label-smoothing", o.label_smoothing, "X",
           "Share of the target spread evenly over all classes")
      ->transform(below_1());

  const auto optimizer = group("Optimizer (SGD)");
  optimizer("--lr", o.lr, "X", "Learning rate")->transform(positive());
  optimizer("--momentum", o.momentum, "X", "0 for plain SGD")->transform(below_1());
  app.add_flag("--nesterov", o.nesterov, "Nesterov's variant of momentum")
      ->group("Optimizer (SGD)");
  optimizer("--weight-decay", o.weight_decay, "X", "Added to the gradient, times the weight")
      ->transform(not_negative());
  optimizer("--lr-schedule", o.lr_schedule, "NAME",
            "constant; step: multiplied by --lr-step-factor\n"
            "every --lr-step-epochs; cosine: falls to 0 at the end")
      ->check(one_of({"constant", "step", "cosine"}));
  optimizer("--lr-step-epochs", o.lr_step_epochs, "N", "See --lr-schedule")
      ->transform(whole(1, kMillion));
  optimizer("--lr-step-factor", o.lr_step_factor, "X", "See --lr-schedule")->transform(positive());
  optimizer("--lr-warmup-iterations", o.lr_warmup_iterations, "N",
            "Begin with a linear rise to the rate")
      ->transform(whole(0, kBillion));

  const auto workers = group("Workers");
  workers("--algo", o.algo, "NAME",
          "How gradients become updates.\n"
          "single: one worker; d-sync: ring all-reduce after\n"
          "backward; ps-sync: parameter server; pipe-sgd: the\n"
          "all-reduce goes on behind the next iterations.\n"
          "Default: single, or d-sync for several workers")
      ->check(one_of(strategy_names()))
      ->default_str("");
  workers("--workers", o.workers, "N",
          "Model replicas that share every batch, as threads of\n"
          "this process. Where a batch does not divide evenly,\n"
          "the first workers take one sample more; every sample\n"
          "counts alike. Under mpiexec: its processes")
      ->transform(whole(1, 1024));
  workers("--servers", o.servers, "N",
          "Ranks that hold the weights for ps-sync, beside the\n"
          "workers; each has its part of the blocks")
      ->transform(whole(1, 1024));
  workers("--pipe-k", o.pipe_k, "K",
          "pipe-sgd: an update uses the gradients of K iterations\n"
          "before. 1 is d-sync, 2 hides all that can be hidden")
      ->transform(whole(1, 64));
  workers("--warmup-iterations", o.warmup_iterations, "N",
          "pipe-sgd: begin with N iterations of d-sync")
      ->transform(whole(0, kBillion));
  workers("--warmup-epochs", o.warmup_epochs, "N", "The same in epochs; both add up")
      ->transform(whole(0, kMillion));
  workers("--compress", o.compress, "NAME",
          "Gradients on the wire. none: f32; trunc16: the high\n"
          "16 bits of each; quant8: 8 bits, scaled per block")
      ->check(one_of(compressor_names()));
  workers("--link", o.link, "SPEED",
          "Slow the network down to that of real machines: none,\n"
          "1gbe, 10gbe, 25gbe, 100gbe, or RATE[/LATENCY] such as\n"
          "2.5gbit/80us")
      ->check(CLI::Validator(
          [](std::string& text) {
            try {
              parse_link(text);
              return std::string();
            } catch (const UserError& e) {
              return std::string(e.what());
            }
          },
          ""));
  workers("--stall-timeout", o.stall_timeout, "SECONDS",
          "Give up when another rank is silent for so long")
      ->transform(number<double>("a number above 0 and up to 1000000",
                                 [](double v) { return v > 0 && v <= 1e6; }));
  workers("--threads", o.threads, "N",
          "Compute threads per worker; results do not depend on\n"
          "it. Default: this machine's cores over the ranks on it")
      ->transform(whole(1, 1024))
      ->default_str("");

  const auto device = group("Device");
  device("--device", o.device, "NAME",
         "cpu, or cuda: an NVIDIA GPU. Workers of one process and\n"
         "ranks of one machine take its GPUs in turn, and share\n"
         "them where there are fewer")
      ->check(one_of({"cpu", "cuda"}));
  device("--precision", o.precision, "NAME",
         "fp32; tf32: products round f32 to 10 bits of mantissa;\n"
         "bf16: activations and products in 16 bits, weights\n"
         "and all sums in f32. The CPU has fp32")
      ->check(one_of(precision_names()));
  device("--graphs", o.graphs, "on|off",
         "cuda: record a step once and replay it, which spares\n"
         "the host most of its work")
      ->check(one_of({"on", "off"}));
  app.add_flag("--deterministic", o.deterministic,
               "cuda: the same seed gives the same bits every time,\n"
               "somewhat slower. (The CPU always does.)")
      ->group("Device");

  const auto files = group("Files");
  files("--data", o.data, "DIR|synthetic", about.data.c_str())->check(path());
  files("--load", o.load, "FILE", "Begin with these weights (safetensors)")->check(path());
  files("--save", o.save, "FILE", "Write the final weights (safetensors; PyTorch's names)")
      ->check(path());
  files("--metrics", o.metrics, "FILE", "Write loss, rate and times per iteration (JSON lines)")
      ->check(path());
  files("--summary", o.summary, "FILE", "Write the results (one JSON object)")->check(path());
  files("--trace", o.trace, "FILE",
        "Write the timeline of all threads (Chrome's format;\n"
        "open it with ui.perfetto.dev)")
      ->check(path());
  app.add_flag("--quiet", o.quiet, "Print nothing but errors")->group("Files");
}

// "--skip-bad-images" is skip_bad_images in the summary.
std::string key_of(const std::string& option) {
  std::string key = option.substr(2);
  std::ranges::replace(key, '-', '_');
  return key;
}

// Settles who the workers are, and refuses options that the algorithm has no use for.
void check_ranks(TrainOptions& o, const CLI::App& app) {
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  const auto launch = mpi_launch();
  const int ranks = launch ? launch->size : 0;
  if (launch && !given("--workers")) o.workers = ranks;
  if (!given("--algo")) o.algo = o.workers > 1 ? "d-sync" : "single";
  const int servers = o.algo == "ps-sync" ? o.servers : 0;
  if (launch && !given("--workers")) o.workers = ranks - servers;
  if (o.workers < 1)
    throw UserError("mpiexec -n {} is too few for a worker and --servers {}", ranks, servers);
  if (launch && o.workers + servers != ranks)
    throw UserError("--workers {}{} does not fit the {} processes that mpiexec has started",
                    o.workers, servers ? fmt::format(" with --servers {}", servers) : "", ranks);
  if (o.algo == "single" && o.workers != 1)
    throw UserError("--workers {} needs a distributed algorithm; --algo single is one worker",
                    o.workers);
  if (o.batch < o.workers)
    throw UserError("--batch {} is less than a sample for each of {} workers", o.batch, o.workers);

  const std::pair<const char*, std::vector<std::string>> belongs[] = {
      {"--servers", {"ps-sync"}},
      {"--pipe-k", {"pipe-sgd"}},
      {"--warmup-iterations", {"pipe-sgd"}},
      {"--warmup-epochs", {"pipe-sgd"}},
      {"--compress", {"d-sync", "ps-sync", "pipe-sgd"}},
      {"--link", {"d-sync", "ps-sync", "pipe-sgd"}}};
  for (const auto& [option, algos] : belongs)
    if (given(option) && std::find(algos.begin(), algos.end(), o.algo) == algos.end())
      throw UserError("{} means nothing to --algo {}", option, o.algo);

  if (o.threads == 0) {
    const int here = launch ? launch->local_size : o.workers + servers;
    o.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / here);
  }
}

void check_together(TrainOptions& o, const CLI::App& app) {
  check_ranks(o, app);
  if (o.device == "cpu" && o.precision != "fp32")
    throw UserError("--precision {} needs --device cuda", o.precision);
  if (o.device == "cpu" && app.count("--graphs") > 0)
    throw UserError("--graphs means nothing to --device cpu");
  if (o.nesterov && o.momentum == 0) throw UserError("--nesterov needs a --momentum above 0");
  if (o.iterations > 0 && app.count("--epochs") > 0)
    throw UserError("--iterations and --epochs exclude each other");
  const std::pair<const char*, std::string> outputs[] = {
      {"--save", o.save}, {"--summary", o.summary}, {"--metrics", o.metrics}, {"--trace", o.trace}};
  for (const auto& [option, file] : outputs)
    for (const auto& [other, other_file] : outputs)
      if (option != other && !file.empty() && file == other_file && !file.starts_with("/dev/"))
        throw UserError("{} and {} would write to the same file {}", option, other, file);
}

}  // namespace

bool parse_options(int argc, char** argv, const AppHelp& help, TrainOptions& options) {
  CLI::App app(help.about);
  set_conventions(app);
  add_options(app, help, options);
  if (!parse_command_line(app, argc, argv)) return false;
  check_together(options, app);
  for (const OwnOption& own : help.own)
    std::visit([&](const auto* value) { options.own[key_of(own.name)] = *value; }, own.value);
  return true;
}

}  // namespace tandem
