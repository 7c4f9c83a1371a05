// The table of all codecs, and the texts by which --compress names them: "topk:0.01". To add one,
// write a file with its formula and its make_…() function, and add an entry to the table in
// codec_table.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/codecs/codec.h"

namespace tandem {

struct CodecInfo;

// A codec with its numbers, as a user chooses it.
struct CodecChoice {
  const CodecInfo* info;
  double value = 0, second = 0;  // what follows the colons, or the defaults
};

struct CodecInfo {
  std::string name;
  std::string form;  // how it is written: "topk:RATIO"
  std::string help;  // a few words for --help
  // What may follow the colon. Without a default it must be given.
  std::string value_name = "";
  double least = 0, most = 0;
  bool above_least = false;  // the least value itself is not allowed
  bool whole = false;
  std::optional<double> by_default = {};
  std::string second_name = "";  // a second value, not negative; 0 by default
  // Whether its paper has error feedback. --no-error-feedback turns it off.
  bool error_feedback = false;
  // Whether it applies the momentum itself, before encoding. The optimizer then leaves that out.
  bool owns_momentum = false;
  // Whether it encodes block by block. Then servers can decode a part of the gradient, and
  // algorithms that cut the gradient differently get the same bits.
  bool by_block = true;
  std::vector<std::string> examples = {};  // that benchmarks and profiles measure
  std::unique_ptr<Codec> (*make)(const CodecChoice& choice, const CodecContext& context);
};

const std::vector<CodecInfo>& all_codecs();
// What --compress accepts, for --help: "none, trunc16, …, topk:RATIO, …".
std::vector<std::string> compression_forms();

// Nothing if the text names a compressor of the ring (compress/compressor.h). Throws UserError if
// it names neither, or has wrong numbers.
std::optional<CodecChoice> parse_compression(const std::string& text);
// If the text is "auto" or "auto:" and a list with commas: the compressions to choose from. Else
// none.
std::vector<std::string> compressions_to_try(const std::string& text);
// Why the text does not name one compression, for a user; empty if it does.
std::string wrong_compression(const std::string& text);
// The compressor that works in the ring and in stagings: `none` if the text names a codec.
std::string compressor_in_ring(const std::string& text);
// Whether the text names a codec that applies the momentum itself.
bool owns_momentum(const std::string& text);

// Each is implemented in the file of the same name.
std::unique_ptr<Codec> make_terngrad(const CodecChoice& choice, const CodecContext& context);
std::unique_ptr<Codec> make_qsgd(const CodecChoice& choice, const CodecContext& context);
std::unique_ptr<Codec> make_onebit(const CodecChoice& choice, const CodecContext& context);
std::unique_ptr<Codec> make_topk(const CodecChoice& choice, const CodecContext& context);
std::unique_ptr<Codec> make_randomk(const CodecChoice& choice, const CodecContext& context);
std::unique_ptr<Codec> make_dgc(const CodecChoice& choice, const CodecContext& context);
std::unique_ptr<Codec> make_powersgd(const CodecChoice& choice, const CodecContext& context);

}  // namespace tandem
