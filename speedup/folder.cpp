#include "speedup/folder.h"

#include <algorithm>

#include "base/error.h"
#include "speedup/figures.h"
#include "speedup/report.h"
#include "speedup/results_file.h"
#include "speedup/table.h"
#include "train/files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

fs::path created(const fs::path& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) throw UserError("--out: cannot create {}: {}", path.string(), failure.message());
  check_writable("--out", path / "results.json");
  return path;
}

}  // namespace

ResultsFolder::ResultsFolder(const std::string& program, const fs::path& path)
    : path_(created(path)), lock_(path / ".lock") {
  if (lock_.is_held_elsewhere())
    throw UserError(
        "--out: another {} is writing to {}; wait until it ends, or choose another folder", program,
        path.string());
}

bool ResultsFolder::holds_results() const {
  const fs::path file = path_ / "results.json";
  return fs::exists(file) && fs::file_size(file) > 0;
}

Results ResultsFolder::read() const { return read_results(path_ / "results.json"); }

void ResultsFolder::write(const char* file, const std::string& text) const {
  write_file(path_ / file, text);
}

void ResultsFolder::write_meanwhile(const Results& results, WriteFailures& failures) const {
  failures.attempt_meanwhile("results.json", [&] { write("results.json", to_json(results)); });
}

bool ResultsFolder::write_all(const Results& results, WriteFailures& failures) const {
  failures.attempt("results.json", [&] { write("results.json", to_json(results)); });
  failures.attempt("results.csv", [&] { write("results.csv", to_csv(results)); });
  failures.attempt("table.md", [&] { write("table.md", to_markdown(results)); });
  // The report contains the figures.
  return std::ranges::any_of(results.cells, &Cell::done) && failures.attempt("figures", [&] {
    draw_figures(results, path_);
  }) && failures.attempt("report.html", [&] { write("report.html", report_html(results, path_)); });
}

}  // namespace tandem
