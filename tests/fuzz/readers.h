// Everything in Tandem that reads bytes which others made: data sets, images, weights, checkpoints,
// plans, results, and the command line. `make fuzz` gives each of them random input (fuzzer.cpp).
// `make check` gives them the files in corpus/, whole and damaged (readers_test.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem::test {

struct Reader {
  std::string name;                        // of its folder in corpus/
  void (*read)(const std::string& bytes);  // throws UserError if it refuses them
  std::size_t most_bytes;                  // of an input; longer ones show nothing new
  int most_mb;                             // of memory, in one allocation
};

const std::vector<Reader>& all_readers();

}  // namespace tandem::test
