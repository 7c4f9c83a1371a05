#include "train/profile_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "data/files.h"
#include "dist/compress/compressor.h"
#include "train/files.h"
#include "train/json_input.h"

namespace tandem {
namespace {

constexpr std::uint64_t kMostBytes = 64 << 20;
constexpr const char* kFirstLine = "tandem profile 1";
constexpr std::pair<const char*, double HostCost::*> kHostCosts[] = {
    {"check", &HostCost::check},
    {"compress", &HostCost::compress},
    {"decompress", &HostCost::decompress},
    {"add", &HostCost::add},
    {"copy", &HostCost::copy},
    {"update", &HostCost::update}};

// The words of one line, taken from left to right.
class Words {
 public:
  explicit Words(const std::string& line) : words_(line) {}

  std::string word(const char* what) {
    std::string word;
    if (!(words_ >> word)) throw UserError("{} is missing", what);
    return word;
  }
  void expect(const std::string& wanted) {
    if (const std::string found = word(wanted.c_str()); found != wanted)
      throw UserError("{} is not {}", shown(found, 40), wanted);
  }
  double number(const char* what, double least, double most) {
    const std::string text = word(what);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() ||
        !(value >= least && value <= most))
      throw UserError("{} must be a number from {} to {}, not {}", what, least, most,
                      shown(text, 40));
    return value;
  }
  std::int64_t whole(const char* what, std::int64_t most) {
    const std::string text = word(what);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
      throw UserError("{} must be a whole number from 1 to {}, not {}", what, most,
                      shown(text, 40));
    return value;
  }
  std::string rest() {
    std::string rest;
    std::getline(words_ >> std::ws, rest);
    return rest;
  }
  bool more() { return !(words_ >> std::ws).eof(); }
  void end() {
    if (more()) throw UserError("{} does not belong there", shown(rest(), 40));
  }

 private:
  std::istringstream words_;
};

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
  const std::string compressor = words.word("a compressor");
  if (std::ranges::find(compressor_names(), compressor) == compressor_names().end())
    throw UserError("there is no compressor {}", shown(compressor, 40));
  const auto [host, is_new] = profile.host.try_emplace(compressor);
  if (!is_new) throw UserError("it says twice what a host needs for {}", compressor);
  for (const auto& [name, cost] : kHostCosts) {
    words.expect(name);
    host->second.*cost = words.number(name, 0, kMostPerElement);
  }
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
    while (words.more() && profile.spread.size() < kMostQuantiles)
      profile.spread.push_back(words.number("a quantile", 1e-6, kMostRelative));
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
  if (!std::ranges::is_sorted(profile.spread)) throw UserError("the spread is not in order");
}

}  // namespace

std::string to_text(const Profile& p) {
  std::string text =
      fmt::format("{}\nnet {}\nsource {}\nbatch {}\n", kFirstLine, p.net, p.source, p.batch);
  if (!p.spread.empty()) text += fmt::format("spread {:.5g}\n", fmt::join(p.spread, " "));
  for (const auto& [compressor, cost] : p.host) {
    text += "host " + compressor;
    for (const auto& [name, member] : kHostCosts)
      text += fmt::format(" {} {:.5g}", name, cost.*member);
    text += "\n";
  }
  text += "# name, elements, forward and backward in microseconds\n";
  for (const Profile::Tensor& t : p.tensors)
    text += fmt::format("tensor {} {} {:.7g} {:.7g}\n", t.name, t.elements, 1e6 * t.forward_s,
                        1e6 * t.backward_s);
  return text;
}

Profile read_profile(const std::filesystem::path& path) {
  if (regular_file_bytes(path) > kMostBytes)
    throw UserError("{}: a profile has at most {} bytes", path.string(), kMostBytes);
  std::istringstream lines(read_file(path));
  Profile profile;
  std::int64_t number = 0;
  try {
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (number == 1) {
        if (line != kFirstLine) throw UserError("it does not begin with '{}'", kFirstLine);
      } else if (!line.empty() && line[0] != '#') {
        take_line(line, profile);
      }
    }
    if (number == 0) throw UserError("the file is empty");
    number = 0;
    check(profile);
  } catch (const UserError& e) {
    throw UserError("{}{}: {}", path.string(), number > 0 ? fmt::format(", line {}", number) : "",
                    e.what());
  }
  return profile;
}

}  // namespace tandem
