// Checks that each room includes only itself and the rooms to its left (README.md has the picture).
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {}},
    {"tensor", {"base"}},
    {"autograd", {"base", "tensor"}},
    {"layers", {"base", "tensor", "autograd"}},
    {"data", {"base", "tensor"}},
    {"dist", {"base", "tensor", "autograd"}},
    {"train", {"base", "tensor", "autograd", "layers", "data", "dist"}},
    {"speedup", {"base", "tensor", "autograd", "layers", "data", "dist", "train"}},
    {"simulate", {"base", "tensor", "autograd", "layers", "data", "dist", "train", "speedup"}},
};

bool is_source(const std::filesystem::path& path) {
  static const std::set<std::string> kSource = {".h", ".cpp", ".cu", ".cuh"};
  return kSource.contains(path.extension());
}

}  // namespace

TEST_CASE("make: no room includes a room to its right") {
  const std::regex include(R"re(#include "([a-z_]+)/)re");
  std::size_t includes = 0;
  for (const auto& [room, allowed] : kMayInclude)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(room)) {
      if (!is_source(entry.path())) continue;
      const std::string text = read_bytes(entry.path());
      for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end;
           ++match, ++includes) {
        const std::string included = (*match)[1];
        CAPTURE(entry.path().string());
        CAPTURE(included);
        CHECK((included == room || allowed.contains(included)));
      }
    }
  CHECK(includes > 500);  // the expression still finds them
}

TEST_CASE("make: only tensor/cuda includes CUDA's headers, only the transport MPI's") {
  const std::regex include(R"re(#include <(cuda|cublas|cudnn|mpi)[^>]*>)re");
  for (const auto& [room, allowed] : kMayInclude)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(room)) {
      if (!is_source(entry.path())) continue;
      const std::string path = entry.path();
      const std::string text = read_bytes(path);
      std::smatch match;
      if (!std::regex_search(text, match, include)) continue;
      CAPTURE(path);
      CHECK(path.starts_with(match[1] == "mpi" ? "dist/transport/" : "tensor/cuda/"));
    }
}
