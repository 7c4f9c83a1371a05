#include "speedup/table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/speedup/comparison.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("speedup: tables show the measurements, and why a cell failed") {
  Results r = plan().begin();
  finish(r.cells[0], {40});
  finish(r.cells[1], {10, 14, 12});
  r.cells[1].loads[1].others = 0.3;
  r.cells[2].failure = "out of \"luck\"";
  r.target_accuracy = 0.5;
  const std::string text = to_text(r), markdown = to_markdown(r), csv = to_csv(r);
  for (const std::string& table : {text, markdown}) {
    CAPTURE(table);
    for (const char* part :
         {"12.00", "±2.00", "8.00", "3.33×", "90.00%", "s to 50%", "failed: out of \"luck\"",
          "not run yet", "2 workers, link none", "4.0-5.4×",
          "* D-Sync, 4 workers, link 1gbe, was disturbed: other programs took 30%"})
      CHECK(table.find(part) != std::string::npos);
  }
  CHECK(
      markdown.find("| PS-Sync | 40.00 | – | 8.00 | 0.5 | 90.00% | 1.00× | 0.30× | 0.30× | 1.00 | "
                    "2.00 | 3.00 | 4.00 | 5.00 | 9.00 | 7.00 |") != std::string::npos);
  CHECK(markdown.find("| D-Sync\\* | 12.00 | ±2.00 |") != std::string::npos);
  CHECK(text.find("D-Sync* ") != std::string::npos);
  CHECK(std::ranges::count(csv, '\n') == 1 + 28);
  CHECK(csv.find("4,1gbe,D-Sync,12,2,8,0.5,0.9,3.33") != std::string::npos);
  CHECK(csv.find("\"other programs took 30% of the cores' time\"") != std::string::npos);
  CHECK(csv.find("\"out of \"\"luck\"\"\"") != std::string::npos);
  // As many fields in every line.
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) CHECK(std::ranges::count(line, ',') == 19);

  r.cells[1].predicted_ms.reset();  // there is no model for it
  CHECK(to_markdown(r).find("| 5.00 | – | 7.00 |") != std::string::npos);
}
