// mnist_mlp as tests start it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support.h"

namespace tandem::test {

using Words = std::vector<std::string>;

// Runs mnist_mlp, which must refuse with one line on stderr and status 2; returns the line.
inline std::string refusal(const Words& arguments) {
  const ProgramResult r = run_program("mnist_mlp", arguments);
  CHECK(r.status == 2);
  CHECK(r.err.starts_with("mnist_mlp: "));
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  return r.err;
}

}  // namespace tandem::test
