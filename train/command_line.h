// What all programs do with their command line.
#pragma once

#include <string>

#include "dist/strategy_options.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem {

// If an option is given twice, the last one counts. --help shows defaults. Call this before adding
// options.
void set_conventions(CLI::App& app);

// Returns false after --help or --version, which it has printed. Throws UserError, which names the
// option.
bool parse_command_line(CLI::App& app, int argc, char** argv);

// Adds an option of some algorithms under this heading of --help. Its value goes to `values`, which
// also gets the default.
CLI::Option* add_strategy_option(CLI::App& app, const char* group, const StrategyOption& option,
                                 StrategyOptions& values);

// Breaks the text into lines that fit next to the options' names in --help.
std::string wrapped(const std::string& text);

}  // namespace tandem
