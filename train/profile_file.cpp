#include "train/profile_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "dist/codecs/codec_table.h"
#include "train/json_input.h"
#include "train/words.h"

namespace tandem {
namespace {

constexpr const char* kFirstLine = "tandem profile 1";
constexpr std::pair<const char*, double HostCost::*> kHostCosts[] = {
    {"check", &HostCost::check},
    {"compress", &HostCost::compress},
    {"decompress", &HostCost::decompress},
    {"add", &HostCost::add},
    {"copy", &HostCost::copy},
    {"update", &HostCost::update}};
constexpr const char* kEncodeSum = "encode-sum";

constexpr double kMostMicroseconds = 1e12, kMostRelative = 1e6, kMostPerElement = 1;
constexpr std::int64_t kMostElements = std::int64_t{1} << 36, kMostBatch = 1'000'000'000;
constexpr std::size_t kMostTensors = 100'000, kMostQuantiles = 10'000;

Profile::Tensor tensor_in(Words& words) {
  Profile::Tensor tensor;
  tensor.name = words.word("a tensor's name");
  tensor.elements = words.whole("its number of elements", kMostElements);
  tensor.forward_s = words.number("forward's time", 0, kMostMicroseconds) / 1e6;
  tensor.backward_s = words.number("backward's time", 0, kMostMicroseconds) / 1e6;
  return tensor;
}

void add_host(Words& words, Profile& profile) {
  const std::string compress = words.word("a compressor");
  if (!wrong_compression(compress).empty())
    throw UserError("there is no compressor {}", shown(compress, 40));
  const auto [host, is_new] = profile.host.try_emplace(compress);
  if (!is_new) throw UserError("it says twice what a host needs for {}", compress);
  for (const auto& [name, cost] : kHostCosts) {
    words.expect(name);
    host->second.*cost = words.number(name, 0, kMostPerElement);
  }
  if (!parse_compression(compress)) return;
  words.expect(kEncodeSum);
  host->second.encode_sum = words.number(kEncodeSum, 0, kMostPerElement);
}

std::vector<double> numbers_in(Words& words) {
  std::vector<double> numbers;
  while (words.more() && numbers.size() < kMostQuantiles)
    numbers.push_back(words.number("a relative time", 1e-6, kMostRelative));
  return numbers;
}

void take_line(const std::string& line, Profile& profile) {
  Words words(line);
  const std::string what = words.word("a word");
  if (what == "net") {
    profile.net = shown(words.rest());
    return;
  }
  if (what == "source") {
    profile.source = shown(words.rest(), 1000);
    return;
  }
  if (what == "batch")
    profile.batch = words.whole("the batch", kMostBatch);
  else if (what == "spread")
    profile.spread = numbers_in(words);
  else if (what == "iteration" && profile.iterations.size() < kMostQuantiles)
    profile.iterations.push_back(numbers_in(words));
  else if (what == "host")
    add_host(words, profile);
  else if (what == "tensor" && profile.tensors.size() < kMostTensors)
    profile.tensors.push_back(tensor_in(words));
  else
    throw UserError("{} begins no line of a profile", shown(what, 40));
  words.end();
}

void check(const Profile& profile) {
  if (profile.tensors.empty()) throw UserError("it has no tensor");
  if (profile.forward_s() + profile.backward_s() <= 0) throw UserError("computing takes no time");
  if (profile.elements() > kMostElements)
    throw UserError("it has more than {} elements", kMostElements);
  for (const std::vector<double>& iteration : profile.iterations)
    if (iteration.empty() || iteration.size() != profile.iterations.front().size())
      throw UserError("its iterations are not all of the same number of workers");
  if (!std::ranges::is_sorted(profile.spread)) throw UserError("the spread is not in order");
}

}  // namespace

std::string to_text(const Profile& p) {
  std::string text =
      fmt::format("{}\nnet {}\nsource {}\nbatch {}\n", kFirstLine, p.net, p.source, p.batch);
  if (!p.spread.empty()) text += fmt::format("spread {:.5g}\n", fmt::join(p.spread, " "));
  for (const std::vector<double>& iteration : p.iterations)
    text += fmt::format("iteration {:.5g}\n", fmt::join(iteration, " "));
  for (const auto& [compress, cost] : p.host) {
    text += "host " + compress;
    for (const auto& [name, member] : kHostCosts)
      text += fmt::format(" {} {:.5g}", name, cost.*member);
    if (parse_compression(compress)) text += fmt::format(" {} {:.5g}", kEncodeSum, cost.encode_sum);
    text += "\n";
  }
  text += "# name, elements, forward and backward in microseconds\n";
  for (const Profile::Tensor& t : p.tensors)
    text += fmt::format("tensor {} {} {:.7g} {:.7g}\n", t.name, t.elements, 1e6 * t.forward_s,
                        1e6 * t.backward_s);
  return text;
}

Profile read_profile(const std::filesystem::path& path) {
  Profile profile;
  read_lines(
      path, {.what = "a profile", .first_line = kFirstLine},
      [&](const std::string& line) { take_line(line, profile); }, [&] { check(profile); });
  return profile;
}

}  // namespace tandem
