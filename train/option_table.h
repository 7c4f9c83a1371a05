// The options that every training program shares, in one list; those of single algorithms are in
// dist/strategies.cpp. The command line (options.cpp), the
// checks of train() (check_options.cpp), the comparison of the ranks (agreement.cpp) and the
// summary go by it: an option that is in the list is nowhere forgotten, and the command line
// refuses to start with one that is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "train/options.h"
#include "train/rules.h"

namespace tandem {

// What ranks of one job may do with an option.
enum class Ranks {
  agree,   // it influences the result, or what ranks say to each other
  differ,  // it concerns a rank alone: its cores, its files, its patience
};

struct OptionRow {
  std::string name;  // "--batch"
  std::variant<bool TrainOptions::*, int TrainOptions::*, std::int64_t TrainOptions::*,
               std::uint64_t TrainOptions::*, double TrainOptions::*, std::string TrainOptions::*>
      member;
  Ranks ranks = Ranks::agree;
  std::optional<Rule> rule = {};  // none: every value will do
  // The value that means: not given. The command line does not take it.
  std::optional<std::string> unset = {};

  // The value in plain decimal; "none" for what is not given, "on" or "off" for a flag.
  std::string text(const TrainOptions& options) const;
  bool given(const TrainOptions& options) const;
};

const std::vector<OptionRow>& option_table();
const OptionRow& option_row(const std::string& name);

// What the value of an option of some algorithms must be. (Those are listed in
// dist/strategies.cpp.)
Rule rule_of(const StrategyOption& option);

// "--skip-bad-images" is skip_bad_images in the summary.
std::string summary_key(const std::string& option);
std::string option_of(const std::string& summary_key);

// The same as OptionRow::text().
std::string text_of(const TrainOptions::Own& own);

}  // namespace tandem
