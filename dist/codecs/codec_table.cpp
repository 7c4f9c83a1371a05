#include "dist/codecs/codec_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/nearest_word.h"
#include "base/words.h"
#include "dist/compress/compressor.h"

namespace tandem {
namespace {

std::vector<CodecInfo> make_codec_table() {
  const auto ratio = [](CodecInfo info) {
    info.value_name = "RATIO";
    info.least = 0;
    info.most = 1;
    info.above_least = true;
    info.error_feedback = true;
    return info;
  };
  return {
      {.name = "terngrad",
       .form = "terngrad[:CLIP]",
       .help = "three levels per element, rounded at random",
       .value_name = "CLIP",
       .least = 0,
       .most = 1000,
       .by_default = 2.5,
       .examples = {"terngrad"},
       .make = make_terngrad},
      {.name = "qsgd",
       .form = "qsgd:BITS",
       .help = "levels of 2 to 8 bits, rounded at random",
       .value_name = "BITS",
       .least = 2,
       .most = 8,
       .whole = true,
       .examples = {"qsgd:2", "qsgd:4", "qsgd:8"},
       .make = make_qsgd},
      {.name = "onebit",
       .form = "onebit",
       .help = "a sign per element, and two means per block",
       .error_feedback = true,
       .examples = {"onebit"},
       .make = make_onebit},
      ratio({.name = "topk",
             .form = "topk:RATIO",
             .help = "the largest elements of each block",
             .examples = {"topk:0.01", "topk:0.001"},
             .make = make_topk}),
      ratio({.name = "randomk",
             .form = "randomk:RATIO",
             .help = "random elements, the same on all workers",
             .examples = {"randomk:0.01", "randomk:0.1"},
             .make = make_randomk}),
      ratio({.name = "dgc",
             .form = "dgc[:RATIO[:CLIP]]",
             .help = "Deep Gradient Compression: the largest sums of past gradients",
             .by_default = 0.001,
             .second_name = "CLIP",
             .owns_momentum = true,
             .examples = {"dgc:0.01", "dgc:0.001"},
             .make = make_dgc}),
      {.name = "powersgd",
       .form = "powersgd:RANK",
       .help = "matrices of low rank",
       .value_name = "RANK",
       .least = 1,
       .most = 1024,
       .whole = true,
       .error_feedback = true,
       .by_block = false,
       .examples = {"powersgd:2", "powersgd:4"},
       .make = make_powersgd},
  };
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end || !std::isfinite(number)) return {};
  return number;
}

std::string range_of(const CodecInfo& c) {
  if (c.whole) return fmt::format("a whole number from {} to {}", c.least, c.most);
  if (c.above_least) return fmt::format("a number above {} and up to {}", c.least, c.most);
  return fmt::format("a number from {} to {}", c.least, c.most);
}

bool allowed(const CodecInfo& c, double value) {
  return value <= c.most && (c.above_least ? value > c.least : value >= c.least) &&
         (!c.whole || value == std::floor(value));
}

}  // namespace

const std::vector<CodecInfo>& all_codecs() {
  static const std::vector<CodecInfo> kTable = make_codec_table();
  return kTable;
}

std::vector<std::string> compression_forms() {
  std::vector<std::string> forms = compressor_names();
  for (const CodecInfo& codec : all_codecs()) forms.push_back(codec.form);
  forms.emplace_back("auto[:LIST]");
  return forms;
}

std::optional<CodecChoice> parse_compression(const std::string& text) {
  const auto shown = [](const std::string& word) { return word.empty() ? "empty" : word.c_str(); };
  if (std::ranges::count(compressor_names(), text) > 0) return {};
  const std::vector<std::string> words = words_of(text, ':');
  const auto codec = std::ranges::find(all_codecs(), words[0], &CodecInfo::name);
  if (codec == all_codecs().end()) {
    std::vector<std::string> names = compressor_names();
    for (const CodecInfo& c : all_codecs()) names.push_back(c.name);
    const std::string nearest = nearest_word(words[0], names);
    throw UserError("must be one of {}, not {}{}", fmt::join(compression_forms(), ", "),
                    shown(text),
                    nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
  }
  const std::size_t most_words = codec->value_name.empty() ? 1 : codec->second_name.empty() ? 2 : 3;
  if (words.size() > most_words) throw UserError("must be written {}, not {}", codec->form, text);
  CodecChoice choice{.info = &*codec, .value = codec->by_default.value_or(0), .second = 0};
  if (words.size() > 1) {
    const auto value = number_of(words[1]);
    if (!value || !allowed(*codec, *value))
      throw UserError("{} of {} must be {}, not {}", codec->value_name, codec->form,
                      range_of(*codec), shown(words[1]));
    choice.value = *value;
  } else if (!codec->value_name.empty() && !codec->by_default) {
    throw UserError("{} needs a number; it is written {}", text, codec->form);
  }
  if (words.size() > 2) {
    const auto second = number_of(words[2]);
    if (!second || *second < 0)
      throw UserError("{} of {} must be a number of 0 or more, not {}", codec->second_name,
                      codec->form, shown(words[2]));
    choice.second = *second;
  }
  return choice;
}

std::vector<std::string> compressions_to_try(const std::string& text) {
  const auto choices = auto_list(text);
  if (!choices) return {};
  if (choices->empty()) return {"none", "trunc16", "quant8"};
  for (const std::string& one : *choices) parse_compression(one);
  return *choices;
}

std::string wrong_compression(const std::string& text) {
  if (auto_list(text)) return fmt::format("must name one compression, not {}", text);
  try {
    parse_compression(text);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

std::string compressor_in_ring(const std::string& text) {
  return parse_compression(text) ? "none" : text;
}

bool owns_momentum(const std::string& text) {
  const auto codec = parse_compression(text);
  return codec && codec->info->owns_momentum;
}

}  // namespace tandem
