#include "speedup/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "speedup/figures.h"
#include "speedup/html.h"
#include "speedup/palette.h"
#include "speedup/reading.h"
#include "speedup/report_style.h"
#include "speedup/table.h"
#include "speedup/timeline.h"
#include "speedup/what_if.h"
#include "speedup/what_if_style.h"
#include "train/files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPaperOverDSync = "2.0–3.2×";
constexpr const char* kPaperOverPsSync = "4.0–5.4×";

// ---- words and numbers

std::string counted(std::int64_t count, const std::string& thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// 1,234,567
std::string grouped(std::int64_t number) {
  if (number < 1000) return std::to_string(number);
  return fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

std::string place(const Cell& cell) {
  return fmt::format("<span class=\"name\">{},</span> <span class=\"name\">link {}</span>",
                     counted(cell.workers, "worker"), escaped(cell.link));
}

// With a star if it was disturbed; the reason is the star's tooltip.
std::string named(const Cell& cell) {
  const std::string why = cell.disturbed();
  return fmt::format("<span class=\"swatch\" style=\"background:{}\"></span>{}{}",
                     algorithm_colour(cell.name), escaped(cell.name),
                     why.empty() ? "" : fmt::format("<abbr title=\"{}\">*</abbr>", escaped(why)));
}

// The different values in order of appearance, with " and " before the last.
template <class Value>
std::string listed(const Results& results, Value&& value) {
  std::vector<std::string> all;
  for (const Cell& cell : results.cells)
    if (const std::string text = value(cell); std::ranges::find(all, text) == all.end())
      all.push_back(text);
  if (all.size() < 2) return all.empty() ? "" : all[0];
  const std::string last = all.back();
  all.pop_back();
  return fmt::format("{} and {}", fmt::join(all, ", "), last);
}

using Group = std::span<const Cell>;  // cells with the same workers and link

// Null if no cell is done.
const Cell* fastest(Group group) {
  const Cell* best = nullptr;
  for (const Cell& cell : group)
    if (cell.done() && (!best || cell.iteration_ms() < best->iteration_ms())) best = &cell;
  return best;
}

// Marks an element that belongs to one setting. The reader chooses which setting is shown.
std::string of_setting(const std::string& setting) {
  return setting.empty() ? "" : fmt::format(" data-setting=\"{}\"", escaped(setting));
}

// ---- parts of the page

std::string simulated_introduction(const Results& r, const std::string& navigation) {
  return fmt::format(
      R"(<header>
<h1>What more workers would do: {0}</h1>
<p>{0} ({1} parameters, batches of {2}) was simulated with {3}, for {4} workers, link {5}. The strategies, rings and servers are
those of a real run; computing takes the time of a profile. {6}</p>
{7}</header>
)",
      escaped(r.net), grouped(r.parameters), batch_text(r),
      listed(r,
             [](const Cell& cell) {
               return fmt::format("<span class=\"name\">{}</span>", escaped(cell.name));
             }),
      listed(r, [](const Cell& cell) { return std::to_string(cell.workers); }),
      listed(r, [](const Cell& cell) { return escaped(cell.link); }), escaped(r.data), navigation);
}

std::string introduction(const Results& r, bool has_what_if) {
  const std::string navigation = fmt::format(
      R"(<nav><a href="#speedup">Speedup</a><a href="#tables">Tables</a>{}<a href="#figures">Figures</a><a href="#timelines">Timelines</a><a href="#reading">How to read this</a><a href="#environment">Environment</a></nav>
)",
      has_what_if ? "<a href=\"#what-if\">What if?</a>" : "");
  if (r.simulated) return simulated_introduction(r, navigation);
  return fmt::format(
      R"(<header>
<h1>Wall-clock speedup of Pipe-SGD: {0}</h1>
<p>{0} ({1} parameters, {2}, {3}) is trained with {4}, {5} each, with batches of {6}. Every algorithm is timed {7} with {8}
workers, link {9}. The report compares the time per iteration and the final accuracy.</p>
{10}</header>
)",
      escaped(r.net), grouped(r.parameters), to_string(r.device), to_string(r.precision),
      listed(r,
             [](const Cell& cell) {
               return fmt::format("<span class=\"name\">{}</span>", escaped(cell.name));
             }),
      counted(r.iterations, "iteration"), batch_text(r),
      r.repeats == 1 ? "once" : fmt::format("{} times", r.repeats),
      listed(r, [](const Cell& cell) { return std::to_string(cell.workers); }),
      listed(r, [](const Cell& cell) { return escaped(cell.link); }), navigation);
}

std::string simulated_summary(const Results& results, const std::vector<Group>& groups) {
  std::string rows;
  for (const Group group : groups)
    if (const Cell* best = fastest(group))
      rows += fmt::format(
          "<tr><td>{}</td><td style=\"text-align:left\">{}</td><td>{}</td><td>{}</td></tr>\n",
          place(*best), named(*best), ms_text(best->iteration_ms()),
          times_text(results.speedup(*best, "D-Sync")));
  return fmt::format(R"(<h2 id="speedup">Speedup</h2>
<p>The fastest algorithm in each setting. Speedups depend on the ratio of computation to communication.</p>
<div class="scroll"><table class="summary">
<thead><tr><th>setting</th><th style="text-align:left">fastest</th><th>iteration, ms</th><th>over D-Sync</th></tr></thead>
<tbody>
{}</tbody></table></div>
)",
                     rows);
}

std::string speedup_summary(const Results& results, const std::vector<Group>& groups) {
  if (results.simulated) return simulated_summary(results, groups);
  std::string rows;
  for (const Group group : groups)
    if (const Cell* best = fastest(group)) {
      const auto seconds = best->seconds_to(results.target_accuracy);
      rows += fmt::format(
          "<tr><td>{}</td><td style=\"text-align:left\">{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td><td>{}</td></tr>\n",
          place(*best), named(*best), ms_text(best->iteration_ms()),
          seconds ? fmt::format("{:.1f}", *seconds) : kNoValue,
          times_text(results.speedup(*best, "D-Sync")),
          times_text(results.speedup_at_same_bits(*best)),
          times_text(results.speedup(*best, "PS-Sync")));
    }
  if (rows.empty()) rows = "<tr><td colspan=\"7\">No cell is finished.</td></tr>\n";
  return fmt::format(R"(<h2 id="speedup">Speedup</h2>
<p>The fastest algorithm in each setting, and the paper's best result. The paper used four machines with a GPU each and
10 Gbit/s Ethernet. Speedups depend on the ratio of computation to communication.</p>
<div class="scroll"><table class="summary">
<thead><tr><th>setting</th><th style="text-align:left">fastest</th><th>iteration, ms</th><th>s to {}</th><th>over D-Sync</th><th>same bits</th><th>over PS-Sync</th></tr></thead>
<tbody>
{}<tr class="paper"><td>the paper</td><td style="text-align:left">its best setting</td><td></td><td></td><td>{}</td><td></td><td>{}</td></tr>
</tbody></table></div>
)",
                     target_text(results), rows, kPaperOverDSync, kPaperOverPsSync);
}

// Lets the reader show one setting at a time. Without JavaScript all are shown.
std::string chooser(const std::vector<Group>& groups) {
  if (groups.size() < 2) return "";
  std::string options;
  for (const Group group : groups)
    options += fmt::format("<option>{}</option>", escaped(group[0].setting()));
  return fmt::format(
      "<p class=\"chooser\"><label>Tables, figures and timelines of <select id=\"setting\">"
      "{}<option value=\"\">all settings</option></select></label></p>\n",
      options);
}

std::string row(const std::vector<Column>& columns, const Cell& cell, bool best) {
  std::string html =
      fmt::format("<tr{}><th scope=\"row\">{}</th>", best ? " class=\"best\"" : "", named(cell));
  if (!cell.done())
    return html +
           fmt::format("<td class=\"failed\" colspan=\"{}\">{}</td></tr>\n", columns.size(),
                       cell.failure.empty() ? "not run" : "failed: " + escaped(cell.failure));
  std::string_view group;
  for (const Column& c : columns)
    html += fmt::format("<td{}>{}</td>",
                        std::exchange(group, c.group) != c.group ? " class=\"begin\"" : "",
                        escaped(c.value(cell)));
  return html + "</tr>\n";
}

// Two header rows: the groups, and the columns below them.
std::string head(const std::vector<Column>& columns) {
  std::string groups, titles;
  for (auto at = columns.begin(); at != columns.end();) {
    const auto end =
        std::find_if(at, columns.end(), [&](const Column& c) { return c.group != at->group; });
    groups += fmt::format("<th class=\"group begin\" colspan=\"{}\">{}</th>", end - at, at->group);
    for (const auto first = at; at != end; ++at)
      titles += fmt::format("<th scope=\"col\"{}>{}</th>", at == first ? " class=\"begin\"" : "",
                            at->title);
  }
  return fmt::format(
      "<thead>\n<tr><th></th>{}</tr>\n<tr><th scope=\"col\">algorithm</th>{}</tr>\n</thead>\n",
      groups, titles);
}

std::string tables(const Results& results, const std::vector<Group>& groups) {
  std::string html =
      "<h2 id=\"tables\">Tables</h2>\n<p>The fastest algorithm of each setting is marked.";
  if (!results.simulated)
    html += fmt::format(" The paper's best setting: {} over D-Sync, {} over PS-Sync.",
                        kPaperOverDSync, kPaperOverPsSync);
  html += "</p>\n";
  const std::vector<Column> columns = columns_of(results);
  for (const Group group : groups) {
    html +=
        fmt::format("<div{}><h3>{}</h3>\n<div class=\"scroll\"><table class=\"wide\">\n{}<tbody>\n",
                    of_setting(group[0].setting()), place(group[0]), head(columns));
    for (const Cell& cell : group) html += row(columns, cell, &cell == fastest(group));
    html += "</tbody></table></div>\n";
    std::string disturbed;
    for (const Cell& cell : group)
      if (cell.done() && !cell.disturbed().empty())
        disturbed += fmt::format("<li>{}* was disturbed: {}.</li>\n", escaped(cell.name),
                                 escaped(cell.disturbed()));
    if (!disturbed.empty()) html += fmt::format("<ul class=\"missing\">\n{}</ul>\n", disturbed);
    html += "</div>\n";
  }
  return html;
}

std::string caption(const std::string& kind, bool simulated) {
  if (kind == "accuracy")
    return "Test accuracy by training time, without the time of tests, on a logarithmic scale; and "
           "by iteration, which shows what stale or compressed gradients cost. The dashed line is "
           "the target accuracy of the table.";
  if (kind == "gap")
    return "The loss over the whole training set minus its minimum, which a long run has found, by "
           "time and by iteration.";
  if (kind == "breakdown" && simulated)
    return "What the workers' compute threads spend an iteration on. The hatched bar is "
           "communication "
           "on the other thread, in parallel: it costs no time.";
  if (kind == "breakdown")
    return "What a worker's compute thread spends a mean iteration on. The labels are the mean "
           "time and the final test accuracy. The whisker reaches from the fastest to the slowest "
           "repeat. The hatched bar is communication on the other thread, in parallel: it costs no "
           "time, but without the pipeline it would add to the bar.";
  const char* points = simulated ? "Points are simulated; open circles are measured (--measured)."
                                 : "Points are measured, with the range of the repeats. Lines are "
                                   "predictions; between two "
                                   "measured settings the costs are interpolated.";
  if (kind == "links")
    return fmt::format(
        "Speedup by link bandwidth. {} Pipe-SGD alone gains most where computation and "
        "communication take equally long, compression where the network is slow.",
        points);
  return fmt::format("Speedup by number of workers. {}", points);
}

std::string figure_html(const FigureName& name, const fs::path& folder, bool simulated) {
  const fs::path file = folder / (name.file + ".svg");
  if (!fs::exists(file))
    return fmt::format("<p class=\"missing\"{}>{}.svg is missing: drawing it needs gnuplot.</p>\n",
                       of_setting(name.setting), name.file);
  const std::string svg = read_file(file);
  return fmt::format(
      "<figure id=\"{}\"{}><div class=\"scroll\">{}</div><figcaption>{}</figcaption></figure>\n",
      name.file, of_setting(name.setting), svg.substr(std::min(svg.find("<svg"), svg.size())),
      caption(name.kind, simulated));
}

std::string figures(const Results& results, const fs::path& folder) {
  std::string html = "<h2 id=\"figures\">Figures</h2>\n";
  for (const FigureName& name : figures_of(results))
    html += figure_html(name, folder, results.simulated);
  return html;
}

std::string timelines(const Results& results, const std::vector<Group>& groups) {
  std::string html;
  const auto add = [&html](const std::string& title, const Cell& of, const std::string& svg) {
    if (!svg.empty())
      html += fmt::format(
          "<figure{}><h3>{} <span class=\"soft\">({})</span></h3><div "
          "class=\"scroll\">{}</div></figure>\n",
          of_setting(of.setting()), title, place(of), svg);
  };
  for (const Group group : groups) {
    add("All algorithms, worker 0, on one time scale", group[0], timelines_on_one_scale(group));
    for (const Cell& cell : group) add(named(cell), cell, timeline_svg(cell));
  }
  if (html.empty()) html = "<p>No timeline was recorded.</p>\n";
  return std::string("<h2 id=\"timelines\">Timelines</h2>\n<p>Two iterations") +
         (results.simulated ? " of the simulation"
                            : " from a separate run of twelve: the pair whose time is closest to "
                              "the mean") +
         R"(. Each rank has two threads. The
upper row computes, the lower one communicates. With D-Sync the rows take turns. With Pipe-SGD the lower row handles an
earlier iteration while the upper one computes: compare the numbers. In the first picture all algorithms share one time
scale; the others have their own. Point at a span to read its length.</p>
)" + timeline_legend() +
         html;
}

std::string environment(const Results& r) {
  const Environment& e = r.environment;
  std::string html = "<h2 id=\"environment\">Environment</h2>\n<dl>\n";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
  };
  add("Tandem", e.tandem);
  add("processor", e.processor);
  add("cores", e.cores > 0 ? std::to_string(e.cores) : "");
  add("memory", e.memory);
  add("GPU", e.gpu.empty() ? "none" : e.gpu);
  add("system", e.system);
  add("versions", e.versions);
  add("transport", e.transport);
  html += fmt::format("<dt>links</dt><dd>{}</dd>\n",
                      listed(r, [](const Cell& cell) { return escaped(cell.link); }));
  add("data", r.data);
  add("seed", std::to_string(r.seed));
  add("date", e.date);
  html += fmt::format("<dt>command</dt><dd><code>{}</code></dd>\n", escaped(e.command));
  return html + "</dl>\n";
}

}  // namespace

std::string report_html(const Results& results, const fs::path& figures_folder) {
  const std::vector<Group> groups = results.settings();
  const std::string what_if = what_if_html(results);
  const bool has_what_if = !what_if.empty();
  return fmt::format(
      R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}: {}</title>
<style>{}{}</style>
</head>
<body>
{}<main>
{}{}{}{}{}{}{}{}</main>
<script>{}{}</script>
</body>
</html>
)",
      results.simulated ? "Simulation" : "Speedup of Pipe-SGD", escaped(results.net), kReportStyle,
      has_what_if ? kWhatIfStyle : "", introduction(results, has_what_if),
      speedup_summary(results, groups), chooser(groups), tables(results, groups), what_if,
      figures(results, figures_folder), timelines(results, groups), reading_html(results),
      environment(results), kReportScript, has_what_if ? kWhatIfScript : "");
}

}  // namespace tandem
