// Makes the papers' figures again by simulation (docs/results/papers.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "apps/paper_figures/papers.h"
#include "base/error.h"
#include "train/app.h"
#include "train/command_line.h"
#include "train/files.h"
#include "train/json_input.h"

using namespace tandem;

namespace {

std::string claims_csv(const std::vector<Claim>& claims) {
  std::string csv = "paper,figure,claim,theirs,ours,difference,formula\n";
  for (const Claim& c : claims)
    csv += fmt::format("\"{}\",\"{}\",\"{}\",\"{}\",\"{}\",\"{}\",\"{}\"\n", c.paper, c.figure,
                       c.what, c.theirs, c.ours, c.difference, c.formula);
  return csv;
}

void print_claims(const std::vector<Claim>& claims) {
  fmt::print(
      "\n| paper | figure | claim | paper's | ours | difference | formula |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Claim& c : claims)
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", c.paper, c.figure, c.what, c.theirs,
               c.ours, c.difference, c.formula);
}

}  // namespace

int main(int argc, char** argv) {
  return run_app("paper_figures", [&] {
    const std::map<std::string, void (*)(Reproduction&)> papers = {{"ko", ko_figures},
                                                                   {"mg-wfbp", mg_wfbp_figures},
                                                                   {"p3", p3_figures},
                                                                   {"pipe-sgd", pipe_sgd_figures}};
    std::string out;
    std::vector<std::string> chosen;
    CLI::App app(
        "Simulates the figures of the papers that Tandem implements. Draws them with the papers' "
        "numbers\nas points, and prints what each paper claims and what the simulation says.");
    set_conventions(app);
    app.add_option("--out", out, "Folder for figures (SVG, PNG), their data, and the claims")
        ->type_name("DIR")
        ->required();
    app.add_option("--paper", chosen, "Only the figures of some of ko, mg-wfbp, p3 and pipe-sgd")
        ->delimiter(',')
        ->option_text("NAME");
    if (!parse_command_line(app, argc, argv)) return;
    for (const std::string& paper : chosen)
      if (!papers.contains(paper))
        throw UserError("--paper must be some of ko, mg-wfbp, p3 and pipe-sgd, not {}",
                        shown(paper, 40));
    std::filesystem::create_directories(out);

    for (const auto& [name, make] : papers) {
      if (!chosen.empty() && std::ranges::find(chosen, name) == chosen.end()) continue;
      Reproduction reproduction(out);
      make(reproduction);
      print_claims(reproduction.claims());
      write_file(std::filesystem::path(out) / (name + "-claims.csv"),
                 claims_csv(reproduction.claims()));
    }
  });
}
