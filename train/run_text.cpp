#include "train/run_text.h"

#include <fmt/format.h>

#include "dist/codecs/codec_table.h"
#include "dist/strategies.h"
#include "dist/transport/mpi_launch.h"
#include "train/checkpoint.h"

namespace tandem {

std::string what_runs(const Summary& s, const DataSplit& data, std::int64_t done) {
  const TrainOptions& o = s.options;
  const auto count = [](int n, const char* of) {
    return fmt::format("{} {}{}", n, of, n == 1 ? "" : "s");
  };
  const StrategyInfo& algo = strategy_named(o.algo);
  const int servers = algo.servers(o.algo_options);
  std::string text = fmt::format("data: {}: {} training and {} test images\n", s.data,
                                 data.train->size(), data.test->size());
  for (const std::string& line : data.left_out) text += fmt::format("data: {}\n", line);
  text += fmt::format("model: {}, {} parameters; {}, {}{}, {}{}, batch {}\n", s.net, s.parameters,
                      o.algo, count(o.workers, "worker"),
                      servers > 0 ? " and " + count(servers, "server") : "",
                      o.device == DeviceKind::cpu ? count(o.threads, "thread")
                                                  : fmt::format("cuda {}", to_string(o.precision)),
                      o.workers > 1 ? " each" : "", o.batch);
  if (algo.distributed())
    text += fmt::format(
        "network: {}, link {}{}, compression {}\n", mpi_launch() ? "MPI" : "threads", o.link,
        o.ranks_per_node > 1 ? fmt::format(", {} ranks per node", o.ranks_per_node) : "",
        o.compress);
  if (const auto codec = parse_compression(o.compress)) {
    if (o.device != DeviceKind::cpu && !s.encodes_on_device)
      text += "compression: on the host; gradients come from the GPU as they are\n";
    if (s.plain_elements > 0)
      text += fmt::format("compression: {} of {} elements are sent plain\n", s.plain_elements,
                          s.gradient_count);
    if (codec->info->owns_momentum && o.momentum > 0)
      text += fmt::format("compression: {} applies the momentum before it encodes\n",
                          codec->info->name);
  }
  if (s.warmup > 0)
    text += fmt::format(
        "pipeline: opens after {} iterations of d-sync (--warmup-epochs, --warmup-iterations)\n",
        s.warmup);
  if (algo.asynchronous())
    text +=
        "tests: at the end, of weights that are kept meanwhile; batch norms are measured again\n";
  if (done > 0) text += fmt::format("resume: continues after iteration {}\n", done);
  return text;
}

std::string after_interruption(const TrainOptions& o, std::int64_t iterations) {
  return fmt::format("interrupted after iteration {}{}", iterations,
                     o.checkpoint.empty() ? "; without --checkpoint the run cannot be continued"
                     : checkpoints_in(o.checkpoint).empty()
                         ? "; there is no complete checkpoint to continue from"
                         : fmt::format("; continue with --resume {}", o.checkpoint));
}

}  // namespace tandem
