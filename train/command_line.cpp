#include "train/command_line.h"

#include <CLI/CLI.hpp>
#include <string>

#include "dist/transport/mpi_launch.h"
#include "tensor/error.h"
#include "train/version.h"

namespace tandem {

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
    throw UserError("{}; --help lists the options", e.what());
  }
}

}  // namespace tandem
