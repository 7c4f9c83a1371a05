// Checks that the pages about the papers have the numbers of the last `make figures`.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <utility>
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

TEST_CASE("docs: the pages about the papers have the numbers of the simulation") {
  int claims = 0;
  for (const auto& [paper, of] : {std::pair{"mg-wfbp", "papers"},
                                  {"p3", "papers"},
                                  {"pipe-sgd", "papers"},
                                  {"ko", "async"}}) {
    const std::string about = "docs/results/" + std::string(of), page = read_bytes(about + ".md");
    std::istringstream csv(read_bytes(about + "/" + paper + "-claims.csv"));
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
  CHECK(claims > 50);
}

TEST_CASE("paper figures: an unknown paper is refused") {
  const ProgramResult r = run_program("paper_figures", {"--out", "/tmp", "--paper", "p4"});
  CHECK(r.status == 2);
  CHECK(r.err == "paper_figures: --paper must be some of ko, mg-wfbp, p3 and pipe-sgd, not p4\n");
}
