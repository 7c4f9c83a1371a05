// How tests start programs under mpiexec.
#pragma once

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support.h"

namespace tandem::test {

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline const bool kHasMpi = !std::string(TANDEM_MPIEXEC).empty();
inline const bool kHasOpenMpi =
    std::string(TANDEM_MPIEXEC).find("oversubscribe") != std::string::npos;
inline const bool kHasMpich = kHasMpi && !kHasOpenMpi;

inline Words under_mpiexec(int ranks, const std::string& program, const Words& arguments) {
  Words words;
  std::istringstream launcher(TANDEM_MPIEXEC);
  for (std::string word; launcher >> word;) words.push_back(word);
  words.insert(words.end(), {"-n", std::to_string(ranks), path_of_program(program)});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// Leaves out what Open MPI itself says, between two lines of dashes. It comes before the program's
// own words or after them.
inline ProgramResult without_notices(ProgramResult r) {
  const std::string dashes = fmt::format("{:-<74}\n", "");
  for (std::size_t begin; (begin = r.err.find(dashes)) != std::string::npos;) {
    const std::size_t end = r.err.find(dashes, begin + dashes.size());
    if (end == std::string::npos) break;
    r.err.erase(begin, end + dashes.size() - begin);
  }
  return r;
}

}  // namespace tandem::test
