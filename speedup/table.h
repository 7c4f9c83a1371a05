// The results as tables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

std::string to_text(const Results& results);  // for a terminal
std::string to_markdown(const Results& results);
std::string to_csv(const Results& results);  // one line per cell

// The columns of every table of results, and how each number is written. The terminal, table.md,
// the figures and the report all use them.
struct Column {
  std::string group;                              // heading that neighbouring columns share
  std::string title;                              // below the group's heading
  std::string alone;                              // without a group's heading above
  std::function<std::string(const Cell&)> value;  // for a cell that is done
};

// From left to right. The functions keep a reference to the results.
std::vector<Column> columns_of(const Results& results);

// Of the algorithms whose workers do not wait for each other, each once.
std::vector<std::string> asynchronous_names(const Results& results);

// The algorithm's name, with the star if the measurement was disturbed.
std::string marked_name(const Cell& cell, const char* star = "*");

std::string batch_text(const Results& results);                // "100", "32 per worker"
std::string ms_text(double ms);                                // "35.44"
std::string times_text(const std::optional<double>& speedup);  // "2.49×"
std::string percent_text(double share);                        // "96.36%"
std::string target_text(const Results& results);               // "96%"; "–" if there is none
inline constexpr const char* kNoValue = "–";

}  // namespace tandem
