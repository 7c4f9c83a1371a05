// Checks that docs/results/papers.md has the numbers of the last `make figures`.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support.h"

using namespace tandem::test;

namespace {

// The fields of a line whose fields are all quoted.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t at = 1; at < line.size();) {
    const std::size_t end = line.find('"', at);
    fields.push_back(line.substr(at, end - at));
    at = end + 3;
  }
  return fields;
}

}  // namespace

TEST_CASE("docs: the page about the papers has the numbers of the simulation") {
  const std::string page = read_bytes("docs/results/papers.md");
  int claims = 0;
  for (const char* paper : {"mg-wfbp", "p3", "pipe-sgd"}) {
    std::istringstream csv(read_bytes("docs/results/papers/" + std::string(paper) + "-claims.csv"));
    std::string line;
    std::getline(csv, line);  // the names of the columns
    for (; std::getline(csv, line); ++claims) {
      const std::vector<std::string> f = fields_of(line);
      REQUIRE(f.size() == 7);
      const std::string formula = f[6].empty() ? "" : f[6] + " | ";
      const std::string row =
          "| " + f[2] + " | " + f[3] + " | " + f[4] + " | " + f[5] + " | " + formula;
      CAPTURE(row);
      CHECK(page.find(row) != std::string::npos);
    }
  }
  CHECK(claims > 30);
}

TEST_CASE("paper figures: an unknown paper is refused") {
  const ProgramResult r = run_program("paper_figures", {"--out", "/tmp", "--paper", "p4"});
  CHECK(r.status == 2);
  CHECK(r.err == "paper_figures: --paper must be mg-wfbp, p3 or pipe-sgd, not p4\n");
}
