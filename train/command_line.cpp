#include "train/command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nearest_word.h"
#include "dist/strategies.h"
#include "dist/transport/mpi_launch.h"
#include "train/option_table.h"
#include "train/validators.h"
#include "train/version.h"

namespace tandem {
namespace {

// The option that was probably meant; empty if none is close.
std::string nearest_option(const CLI::App& app, const std::string& unknown) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  const std::string nearest = nearest_word(unknown, names);
  return nearest.empty() ? nearest : "--" + nearest;
}

// The first word that belongs to no option; words that look like options come first.
std::optional<std::string> unexpected_word(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  const auto option =
      std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  if (option != words.end()) return *option;
  if (!words.empty()) return words.front();
  return std::nullopt;
}

[[noreturn]] void refuse(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-'))
    throw UserError("unexpected argument \"{}\"; --help lists the options", word);
  const std::string option = word.substr(0, word.find('='));
  const std::size_t letters = option.find_first_not_of('-');
  const std::string nearest =
      letters == std::string::npos ? "" : nearest_option(app, option.substr(letters));
  throw UserError("there is no option {}{}--help lists the options", option,
                  nearest.empty() ? "; " : "; did you mean " + nearest + "? ");
}

}  // namespace

void set_conventions(CLI::App& app) {
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app.get_formatter()->column_width(34);
}

bool parse_command_line(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", version_line,
                       "Print the version and what it was built with, and exit");
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp& help) {
    if (is_first_rank()) app.exit(help);
    return false;
  } catch (const CLI::CallForVersion& version) {
    if (is_first_rank()) app.exit(version);
    return false;
  } catch (const CLI::ArgumentMismatch& e) {  // "--lr: 1 required X missing"
    const std::string message = e.what();
    throw UserError("{} needs a value; --help lists the options",
                    message.substr(0, message.find(':')));
  } catch (const CLI::ParseError& e) {
    // A mistyped option can cause this error, so report it first.
    if (const auto word = unexpected_word(app)) refuse(app, *word);
    throw UserError("{}; --help lists the options", e.what());
  }
}

std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 55;
  std::string lines;
  std::size_t length = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool fits = length + 1 + word.size() <= kWidth;
    if (length > 0) lines += fits ? ' ' : '\n';
    length = length > 0 && fits ? length + 1 + word.size() : word.size();
    lines += word;
  }
  return lines;
}

CLI::Option* add_strategy_option(CLI::App& app, const char* group, const StrategyOption& option,
                                 StrategyOptions& values) {
  std::int64_t& value = values.try_emplace(option.name, option.value).first->second;
  return app
      .add_option_function<std::string>(
          option.name, [&](const std::string& text) { value = option.value_of(text); },
          wrapped(
              fmt::format("{}: {}", fmt::join(strategies_with(option.name), ", "), option.help)))
      ->default_str(option.text(option.value))
      ->type_name(option.value_name)
      ->group(group)
      ->transform(validator(rule_of(option)));
}

}  // namespace tandem
