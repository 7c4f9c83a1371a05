// The columns that every table of results has, and how each number is written: one text for a
// terminal, table.md, figures and the report.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "speedup/results.h"

namespace tandem {

struct Column {
  std::string group;                              // what it has in common with its neighbours
  std::string title;                              // below the group's name
  std::string alone;                              // without the group's name
  std::function<std::string(const Cell&)> value;  // of a cell that is done
};

// From the left to the right. They refer to the results.
std::vector<Column> columns_of(const Results& results);

// "PS-Sync", with the star if the measurement was disturbed.
std::string marked_name(const Cell& cell, const char* star = "*");

std::string ms_text(double ms);                                // "35.44"
std::string times_text(const std::optional<double>& speedup);  // "2.49×"
std::string percent_text(double share);                        // "96.36%"
std::string target_text(const Results& results);               // "96%"; "–" if there is none
inline constexpr const char* kNoValue = "–";

}  // namespace tandem
