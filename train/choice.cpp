#include "train/choose_compression.h"

#include <fmt/format.h>

#include <limits>

#include "dist/codecs/codec_table.h"
#include "dist/launch.h"
#include "dist/schedule/measure.h"
#include "train/length.h"
#include "train/replica.h"
#include "train/start.h"

namespace tandem {

ChosenCompression choose_compression(const Task& task, const DataSplit& data, const TrainOptions& o,
                                     Communication& communication) {
  const std::vector<std::string> allowed = compressions_to_try(o.compress);
  if (allowed.empty()) return {o.compress, ""};
  ChosenCompression chosen;
  double least = std::numeric_limits<double>::infinity();
  const int rank = communication.transport().rank();
  TrainOptions tried = o;
  tried.compress = "none";
  std::optional<Replica> replica;
  together(communication, [&] { replica.emplace(task, data, tried, make_device(o, rank)); });
  for (const std::string& compress : allowed) {
    tried.compress = compress;
    std::unique_ptr<Codec> codec;
    together(communication,
             [&] { codec = make_codec(tried, Length(data, o), replica->parameters(), rank); });
    const auto compressor = make_compressor(compressor_in_ring(compress));
    Spans spans;
    const double seconds = measure_whole_sum({.parameters = replica->parameters(),
                                              .optimizer = replica->optimizer(),
                                              .spans = spans,
                                              .communication = communication,
                                              .compressor = *compressor,
                                              .codec = codec.get(),
                                              .workers = o.workers});
    chosen.text +=
        fmt::format("{}{} {:.2f} ms", chosen.text.empty() ? "" : ", ", compress, 1e3 * seconds);
    if (seconds < least) chosen.compress = compress;
    least = std::min(least, seconds);
  }
  chosen.text = fmt::format("auto: the sum of a gradient takes {}; {} is used\n", chosen.text,
                            chosen.compress);
  return chosen;
}

}  // namespace tandem
