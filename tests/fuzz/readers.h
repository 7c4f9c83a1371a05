// What reads bytes that others made: data sets, images, weights, checkpoints, plans, results and
// the command line. `make fuzz` gives each of them random input (fuzzer.cpp). `make check` gives
// them the files in corpus/, whole and damaged (readers_test.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem::test {

struct Reader {
  std::string name;                        // of its folder in corpus/
  void (*read)(const std::string& bytes);  // throws UserError if it refuses them
  std::size_t most_bytes;                  // the longest input to try
  int most_mb;                             // a larger allocation is a finding
};

const std::vector<Reader>& all_readers();

}  // namespace tandem::test
