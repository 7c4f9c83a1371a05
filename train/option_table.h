// The options that every training program shares, in one list. Those of single algorithms are in
// dist/strategies.cpp. The command line (options.cpp), the checks of train() (check_options.cpp),
// the comparison of the ranks (agreement.cpp) and the summary all use this list, so that none of
// them can miss an option. A program does not start if the command line lacks an option of the
// list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "train/options.h"
#include "train/rules.h"

namespace tandem {

// Whether the ranks of a job must agree on an option.
enum class Ranks {
  agree,   // it changes the result or the messages between ranks
  differ,  // it concerns one rank only: its cores, files or timeouts
};

struct OptionRow {
  std::string name;  // "--batch"
  std::variant<bool TrainOptions::*, int TrainOptions::*, std::int64_t TrainOptions::*,
               std::uint64_t TrainOptions::*, double TrainOptions::*, std::string TrainOptions::*,
               std::vector<std::string> TrainOptions::*, DeviceKind TrainOptions::*,
               Precision TrainOptions::*, Switch TrainOptions::*, Schedule::Kind TrainOptions::*>
      member;
  Ranks ranks = Ranks::agree;
  std::optional<Rule> rule = {};  // none: any value is allowed
  // The value that means "not given". The command line does not accept it.
  std::optional<std::string> unset = {};
  // Whether a run that resumes from a checkpoint may have another value. (The ranks agree on it
  // nevertheless.)
  bool may_change = false;

  // The value's name, or the value in plain decimal; "none" if not given; "on" or "off" for
  // a flag.
  std::string text(const TrainOptions& options) const;
  bool given(const TrainOptions& options) const;
};

const std::vector<OptionRow>& option_table();
const OptionRow& option_row(const std::string& name);

// The rule for the value of an option that only some algorithms have. (dist/strategies.cpp lists
// them.)
Rule rule_of(const StrategyOption& option);

// "--skip-bad-images" is skip_bad_images in the summary.
std::string summary_key(const std::string& option);
std::string option_of(const std::string& summary_key);

// The same as OptionRow::text().
std::string text_of(const TrainOptions::Own& own);

}  // namespace tandem
