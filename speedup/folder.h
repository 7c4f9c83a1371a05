// The folder that the results of a comparison are written to.
#pragma once

#include <filesystem>
#include <string>

#include "speedup/results.h"
#include "train/console.h"
#include "train/file_lock.h"
#include "train/reporting.h"

namespace tandem {

class ResultsFolder {
 public:
  // `program` writes to `path`, which is created if it is missing. Throws UserError if it cannot be
  // written to, or if another program is writing to it.
  ResultsFolder(const std::string& program, const std::filesystem::path& path);

  // Whether it holds results of an earlier run.
  bool holds_results() const;
  // Throws UserError if they are not ours.
  Results read() const;

  // results.json, after every cell.
  void write_meanwhile(const Results& results, WriteFailures& failures) const;
  // All files, after the last cell. Returns whether the report is there.
  bool write_all(const Results& results, WriteFailures& failures) const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path report() const { return path_ / "report.html"; }

 private:
  void write(const char* file, const std::string& text) const;

  std::filesystem::path path_;
  LockFile lock_;  // held while it is open
};

}  // namespace tandem
