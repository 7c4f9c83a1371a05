#include "train/words.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "data/files.h"
#include "train/files.h"
#include "train/json_input.h"

namespace tandem {
namespace {

constexpr std::uint64_t kMostBytes = 64 << 20;

// Whether the whole text is a number of this type.
template <class T>
bool read_number(const std::string& text, T& value) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last;
}

}  // namespace

std::string Words::word(const char* what) {
  std::string word;
  if (!(words_ >> word)) throw UserError("{} is missing", what);
  return word;
}

void Words::expect(const std::string& wanted) {
  if (const std::string found = word(wanted.c_str()); found != wanted)
    throw UserError("{} is not {}", shown(found, 40), wanted);
}

double Words::number(const char* what, double least, double most) {
  const std::string text = word(what);
  double value = 0;
  if (!read_number(text, value) || !(value >= least && value <= most))
    throw UserError("{} must be a number from {} to {}, not {}", what, least, most,
                    shown(text, 40));
  return value;
}

std::int64_t Words::whole(const char* what, std::int64_t most) {
  const std::string text = word(what);
  std::int64_t value = 0;
  if (!read_number(text, value) || value < 1 || value > most)
    throw UserError("{} must be a whole number from 1 to {}, not {}", what, most, shown(text, 40));
  return value;
}

std::string Words::rest() {
  std::string rest;
  std::getline(words_ >> std::ws, rest);
  return rest;
}

bool Words::more() { return !(words_ >> std::ws).eof(); }

void Words::end() {
  if (more()) throw UserError("{} does not belong there", shown(rest(), 40));
}

void read_lines(const std::filesystem::path& path, const LinesFormat& format,
                const std::function<void(const std::string& line)>& take,
                const std::function<void()>& check) {
  if (regular_file_bytes(path) > kMostBytes)
    throw UserError("{}: {} has at most {} bytes", path.string(), format.what, kMostBytes);
  std::istringstream lines(read_file(path));
  std::int64_t number = 0;
  try {
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (number == 1) {
        if (line != format.first_line)
          throw UserError("it does not begin with '{}'", format.first_line);
      } else if (!line.empty() && line[0] != '#') {
        take(line);
      }
    }
    if (number == 0) throw UserError("the file is empty");
    number = 0;
    check();
  } catch (const UserError& e) {
    throw UserError("{}{}: {}", path.string(), number > 0 ? fmt::format(", line {}", number) : "",
                    e.what());
  }
}

}  // namespace tandem
