// What all programs do alike with their command line.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tandem {

// Of an option that is given twice, the last one counts; defaults are shown by --help. To be called
// before options are added.
void set_conventions(CLI::App& app);

// Returns false if --help or --version was asked for and shown. Throws UserError, naming the
// option.
bool parse_command_line(CLI::App& app, int argc, char** argv);

// The text in lines that fit beside the options' names in --help.
std::string wrapped(const std::string& text);

}  // namespace tandem
