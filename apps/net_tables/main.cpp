// Writes the tables of nets that simulations use (profiles/).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "simulate/nets/nets.h"
#include "train/app.h"
#include "train/command_line.h"
#include "train/files.h"

using namespace tandem;

int main(int argc, char** argv) {
  return run_app("net_tables", [&] {
    std::string net, out;
    CLI::App app(
        "Prints the parameter tensors of a net in the order of forward, each with its elements and "
        "the\nFLOP of forward and backward for one sample. Without --net: one line per net.");
    set_conventions(app);
    app.add_option("--net", net, fmt::format("{}", fmt::join(net_names(), ", ")))
        ->type_name("NAME");
    app.add_option("--out", out, "Write NAME.net of all nets to this folder instead")
        ->type_name("DIR");
    if (!parse_command_line(app, argc, argv)) return;
    if (!net.empty() && !out.empty()) throw UserError("--net and --out exclude each other");
    if (!net.empty()) {
      fmt::print("{}", to_text(net_named(net)));
      return;
    }
    if (!out.empty() && !std::filesystem::is_directory(out))
      throw UserError("--out: there is no folder {}", out);
    for (const std::string& name : net_names()) {
      const NetTable table = net_named(name);
      if (!out.empty())
        write_file(std::filesystem::path(out) / (name + ".net"), to_text(table));
      else
        fmt::print(
            "{:<13} {:>11} parameters in {:>3} tensors, {:>6.2f} GFLOP forward, {:>6.2f} "
            "backward\n",
            name, table.parameters(), table.tensors.size(), table.forward_flop() / 1e9,
            table.backward_flop() / 1e9);
    }
  });
}
