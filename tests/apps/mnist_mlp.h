// mnist_mlp as tests start it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/data/idx_files.h"
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

// A data set that takes no time to load.
inline std::string few_digits(const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder / "digits");
  write_mnist(folder / "digits", 200, 10);
  return folder / "digits";
}

}  // namespace tandem::test
