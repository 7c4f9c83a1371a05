// Text files of ours that people may write too: a first line that says what they are, then one fact
// per line. Lines that begin with # are comments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

namespace tandem {

// The words of one line, taken from left to right. Whatever is wrong is a UserError, which names
// neither the file nor the line.
class Words {
 public:
  explicit Words(const std::string& line) : words_(line) {}

  std::string word(const char* what);
  void expect(const std::string& wanted);
  double number(const char* what, double least, double most);
  std::int64_t whole(const char* what, std::int64_t most);  // from 1 on
  std::string rest();                                       // of the line
  bool more();
  void end();  // there may be no more

 private:
  std::istringstream words_;
};

struct LinesFormat {
  const char* what;        // "a profile"
  const char* first_line;  // "tandem profile 1"
};

// Calls `take` with every line but the first, comments and empty ones; then `check`. Adds the file
// and the line to their UserErrors. Throws UserError too if the file is of another kind, or larger
// than all of ours.
void read_lines(const std::filesystem::path& path, const LinesFormat& format,
                const std::function<void(const std::string& line)>& take,
                const std::function<void()>& check);

}  // namespace tandem
