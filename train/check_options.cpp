#include "train/check_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "dist/codecs/codec_table.h"
#include "dist/compress/compressor.h"
#include "dist/strategies.h"
#include "dist/transport/link_speed.h"
#include "dist/transport/mpi_launch.h"
#include "train/choice.h"
#include "train/option_table.h"
#include "train/slow_worker.h"

namespace tandem {
namespace {

void check_values(const TrainOptions& o) {
  for (const OptionRow& row : option_table()) {
    if (!row.rule || !row.given(o)) continue;
    std::string text = row.text(o);
    if (const std::string complaint = row.rule->complaint(text); !complaint.empty())
      throw UserError("{}: {}", row.name, complaint);
  }
  for (const auto& [name, value] : o.algo_options)
    if (strategies_with(name).empty())
      throw UserError("{} is not an option of any algorithm", name);
}

// An algorithm may allow fewer values than another one that has the same option.
void check_algo_options(const TrainOptions& o) {
  for (const StrategyOption& shared : strategy_options()) {
    const StrategyOption* own = strategy_named(o.algo).option(shared.name);
    const std::int64_t value = option_value(o.algo_options, shared.name);
    const bool has_text =
        shared.choices.empty() || (value >= 0 && value < std::ssize(shared.choices));
    std::string text = has_text ? shared.text(value) : fmt::format("{}", value);
    if (const std::string complaint = rule_of(own ? *own : shared).complaint(text);
        !complaint.empty())
      throw UserError("{}: {}", shared.name, complaint);
  }
}

void settle_ranks(TrainOptions& o) {
  const auto launch = mpi_launch();
  const int ranks = launch ? launch->size : 0;
  const bool open = o.workers == 0;
  if (open) o.workers = launch ? ranks : 1;
  if (o.algo.empty()) o.algo = default_strategy(o.workers).name;
  const StrategyInfo& algo = strategy_named(o.algo);
  const int servers = algo.servers(o.algo_options);
  if (open && launch) o.workers = ranks - servers;
  if (o.workers < 1)
    throw UserError("mpiexec -n {} leaves no process for a worker besides --servers {}", ranks,
                    servers);
  if (launch && o.workers + servers != ranks)
    throw UserError("--workers {}{} does not match the {} processes that mpiexec has started",
                    o.workers, servers ? fmt::format(" with --servers {}", servers) : "", ranks);
  if (launch && o.ranks_per_node > 1 && parse_link(o.link).limited())
    throw UserError(
        "--ranks-per-node {} does not work with --link under mpiexec: processes cannot share an "
        "emulated network card",
        o.ranks_per_node);
  if (!launch && o.ranks_per_node == 0) o.ranks_per_node = 1;
  if (!algo.distributed() && o.workers != 1)
    throw UserError("--workers {} needs a distributed algorithm; --algo {} has one worker",
                    o.workers, o.algo);
  if (o.batch < o.workers)
    throw UserError("--batch {} has less than one sample for each of {} workers", o.batch,
                    o.workers);
  if (o.threads == 0) {
    const int here = launch ? launch->local_size : o.workers + servers;
    o.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / here);
  }
}

void require_on_device(const TrainOptions& o, const std::string& compress) {
  const auto compressor = make_compressor(compressor_in_ring(compress));
  if (o.device != DeviceKind::cpu && compressor->packing() == Packing::ternary)
    throw UserError("--compress {} needs --device cpu: no GPU can pack gradients like this",
                    compress);
}

void require_error_feedback(const TrainOptions& o) {
  const auto codec = parse_compression(o.compress);
  if (o.no_error_feedback && (!codec || !codec->info->error_feedback))
    throw UserError("--no-error-feedback has no effect with --compress {}", o.compress);
}

void check_compression(const TrainOptions& o) {
  const StrategyInfo& algo = strategy_named(o.algo);
  algo.require_possible(o.workers, o.compress, o.algo_options);
  require_on_device(o, o.compress);
  require_error_feedback(o);
  const auto codec = parse_compression(o.compress);
  if (codec && !codec->info->by_block && !o.profile.empty())
    throw UserError("--profile cannot be used with --compress {}: simulations do not know it",
                    o.compress);
}

// Each algorithm by itself, then what auto can do.
TrainOptions check_auto(const TrainOptions& o, Choices choices) {
  if (o.no_error_feedback && choices.compressions.size() > 1)
    throw UserError("--no-error-feedback cannot be used with --compress auto");
  if (choices.compressions.size() == 1) require_error_feedback(o);
  TrainOptions checked = o;
  checked.no_error_feedback = false;
  checked.compress = "none";
  for (std::string& algo : choices.algos) {
    checked.algo = algo;
    checked = check_options(checked);
    algo = checked.algo;
  }
  check_choices(checked, choices);
  for (const std::string& compress : choices.compressions) require_on_device(o, compress);
  if (choices.algos.size() > 1) checked.algo = o.algo;
  checked.compress = o.compress;
  checked.no_error_feedback = o.no_error_feedback;
  return checked;
}

}  // namespace

TrainOptions check_options(TrainOptions o) {
  check_values(o);
  const Choices choices = choices_of(o);
  if (choices.several()) return check_auto(o, choices);
  o.algo = choices.algos.front();
  o.compress = choices.compressions.front();
  settle_ranks(o);
  check_algo_options(o);
  check_compression(o);
  if (o.device == DeviceKind::cpu && o.precision != Precision::fp32)
    throw UserError("--precision {} needs --device cuda", to_string(o.precision));
  if (!o.profile.empty() && o.device != DeviceKind::cpu)
    throw UserError("--profile needs --device cpu: it cannot see when a GPU finishes a parameter");
  if (!o.profile.empty() && strategy_named(o.algo).asynchronous())
    throw UserError(
        "--profile needs an algorithm whose workers wait for each other, such as d-sync; "
        "simulations of all algorithms can use it");
  if (!o.profile.empty() && o.epochs == 0 && o.iterations == 0)
    throw UserError("--profile needs iterations to time; --epochs 0 has none");
  if (const auto slow = parse_slow_rank(o.slow_rank)) {
    if (slow->rank >= o.workers)
      throw UserError("--slow-rank {}: there is no such worker among {}", o.slow_rank, o.workers);
    if (o.device != DeviceKind::cpu)
      throw UserError("--slow-rank needs --device cpu: it cannot delay the work of a GPU");
  }
  if (!o.plan.empty() && !strategy_named(o.algo).keeps_plan)
    throw UserError("--plan has no effect with --algo {}", o.algo);
  if (o.resume == kResumeAuto && o.checkpoint.empty())
    throw UserError("--resume auto needs --checkpoint, which names the folder");
  // With auto, the others are for a run that starts from the beginning.
  const bool resumes = !o.resume.empty() && o.resume != kResumeAuto;
  if (resumes && !o.load.empty()) throw UserError("--load and --resume cannot be used together");
  if (resumes && !o.resume_weights.empty())
    throw UserError("--resume-weights and --resume cannot be used together");
  if (!o.load.empty() && !o.resume_weights.empty())
    throw UserError("--load and --resume-weights cannot be used together");
  if (!o.predict.empty() && o.load.empty() && o.resume_weights.empty())
    throw UserError("--predict needs --load or --resume-weights, for the weights");
  if (!o.predict.empty() && o.workers > 1)
    throw UserError("--predict runs on one worker, not on {}", o.workers);
  if (o.nesterov && o.momentum == 0) throw UserError("--nesterov needs a --momentum above 0");
  return o;
}

}  // namespace tandem
