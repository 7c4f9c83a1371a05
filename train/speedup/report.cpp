#include "train/speedup/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "train/files.h"
#include "train/speedup/figures.h"
#include "train/speedup/html.h"
#include "train/speedup/palette.h"
#include "train/speedup/report_style.h"
#include "train/speedup/timeline.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPaperOverDSync = "2.0–3.2×";
constexpr const char* kPaperOverPsSync = "4.0–5.4×";

// ---- words and numbers

std::string ms(double value) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 1 || value == 0 ? 1 : 2);
}

std::string times(const std::optional<double>& speedup) {
  return speedup ? fmt::format("{:.2f}×", *speedup) : "–";
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string signed_percent(double share) {
  const double rounded = std::round(100 * share);
  return rounded == 0 ? "0 %" : fmt::format("{}{} %", rounded < 0 ? "−" : "+", std::abs(rounded));
}

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

std::string named(const Cell& cell) {
  return fmt::format("<span class=\"swatch\" style=\"background:{}\"></span>{}",
                     algorithm_colour(cell.name), escaped(cell.name));
}

// The values that occur, in their order, with " and " before the last.
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

using Group = std::span<const Cell>;  // of the same workers and link

// Null if none is done.
const Cell* fastest(Group group, std::string_view algo = {}) {
  const Cell* best = nullptr;
  for (const Cell& cell : group)
    if (cell.done() && (algo.empty() || cell.algo == algo) &&
        (!best || cell.iteration_ms() < best->iteration_ms()))
      best = &cell;
  return best;
}

// ---- parts of the page

std::string introduction(const Results& r) {
  return fmt::format(
      R"(<header>
<h1>Wall-clock speedup of Pipe-SGD: {0}</h1>
<p>{0} ({1} parameters, {2}, {3}) is trained by {4}, each for {5} with batches of {6}, {7}, with {8} workers over links of
{9}; what is compared is the time that an iteration takes and the accuracy that comes out.</p>
<nav><a href="#speedup">Speedup</a><a href="#tables">Tables</a><a href="#figures">Figures</a><a href="#timelines">Timelines</a><a href="#reading">How to read this</a><a href="#environment">Environment</a></nav>
</header>
)",
      escaped(r.net), grouped(r.parameters), escaped(r.device), escaped(r.precision),
      listed(r,
             [](const Cell& cell) {
               return fmt::format("<span class=\"name\">{}</span>", escaped(cell.name));
             }),
      counted(r.iterations, "iteration"), r.batch,
      r.repeats == 1 ? "once" : fmt::format("{} times", r.repeats),
      listed(r, [](const Cell& cell) { return std::to_string(cell.workers); }),
      listed(r, [](const Cell& cell) { return escaped(cell.link); }));
}

std::string speedup_summary(const Results& results, const std::vector<Group>& groups) {
  std::string rows;
  for (const Group group : groups) {
    const Cell* best = fastest(group, "pipe-sgd");
    if (!best) continue;
    rows += fmt::format(
        "<tr><td>{}</td><td style=\"text-align:left\">{}</td><td class=\"extra\">{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        place(*best), named(*best), ms(best->iteration_ms()),
        times(results.speedup(*best, "D-Sync")), times(results.speedup(*best, "PS-Sync")));
  }
  if (rows.empty())
    rows = "<tr><td colspan=\"5\">No way of Pipe-SGD has been run to its end.</td></tr>\n";
  return fmt::format(R"(<h2 id="speedup">Speedup</h2>
<p>The fastest way of Pipe-SGD in each setting, and what the paper measured with its best one. The paper
used four machines with a GPU each and Ethernet of 10 Gbit/s; another ratio of computing to communicating gives other
speedups.</p>
<div class="scroll"><table class="summary">
<thead><tr><th>setting</th><th style="text-align:left">fastest</th><th class="extra">iteration, ms</th><th>over D-Sync</th><th>over PS-Sync</th></tr></thead>
<tbody>
{}<tr class="paper"><td>the paper</td><td style="text-align:left">its best setting</td><td class="extra"></td><td>{}</td><td>{}</td></tr>
</tbody></table></div>
)",
                     rows, kPaperOverDSync, kPaperOverPsSync);
}

std::string row(const Results& results, const Cell& cell, bool best) {
  if (!cell.done())
    return fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"failed\" colspan=\"14\">{}</td></tr>\n",
        named(cell), cell.failure.empty() ? "not run" : "failed: " + escaped(cell.failure));
  const Breakdown& b = cell.breakdown;
  const double median = cell.iteration_ms();
  const auto [least, most] = std::ranges::minmax(cell.repeats_ms);
  const auto target = cell.seconds_to(results.target_accuracy);
  std::string html =
      fmt::format("<tr{}><th scope=\"row\">{}</th>", best ? " class=\"best\"" : "", named(cell));
  const auto add = [&](const std::string& value, bool begin = false) {
    html += fmt::format("<td{}>{}</td>", begin ? " class=\"begin\"" : "", value);
  };
  add(ms(median), true);
  add(cell.repeats_ms.size() > 1
          ? fmt::format("<span class=\"soft\">{}–{}</span>", ms(least), ms(most))
          : "–");
  add(ms(b.compute), true);
  add(ms(b.compress));
  add(ms(b.exposed));
  add(ms(b.wait));
  add(ms(b.hidden));
  add(cell.predicted_ms ? ms(*cell.predicted_ms) : "–", true);
  add(cell.predicted_ms ? signed_percent(*cell.predicted_ms / median - 1) : "–");
  add(fmt::format("{:.2f}", cell.bytes_per_iteration / 1e6), true);
  add(times(results.speedup(cell, "PS-Sync")), true);
  add(times(results.speedup(cell, "D-Sync")));
  add(percent(cell.test_accuracy), true);
  add(target                        ? fmt::format("{:.1f} s", *target)
      : results.target_accuracy > 0 ? "not reached"
                                    : "–");
  return html + "</tr>\n";
}

std::string target_name(const Results& results) {
  return results.target_accuracy > 0 ? percent(results.target_accuracy) : "a target";
}

std::string tables(const Results& results, const std::vector<Group>& groups) {
  std::string html = fmt::format(
      "<h2 id=\"tables\">Tables</h2>\n<p>The fastest way of each setting is marked. The paper: {} "
      "over "
      "D-Sync, {} over PS-Sync for its best setting.</p>\n",
      kPaperOverDSync, kPaperOverPsSync);
  for (const Group group : groups) {
    html += fmt::format(R"(<h3>{}</h3>
<div class="scroll"><table class="wide">
<thead>
<tr><th></th><th class="group begin" colspan="2">iteration, ms</th><th class="group begin" colspan="5">what it is spent on, ms</th><th class="group begin" colspan="2">predicted</th><th class="group begin">wire</th><th class="group begin" colspan="2">times as fast as</th><th class="group begin" colspan="2">test accuracy</th></tr>
<tr><th scope="col">algorithm</th><th scope="col" class="begin">median</th><th scope="col">repeats</th><th scope="col" class="begin">compute</th><th scope="col">compress</th><th scope="col">exposed</th><th scope="col">wait</th><th scope="col">hidden</th><th scope="col" class="begin">ms</th><th scope="col">error</th><th scope="col" class="begin">MB</th><th scope="col" class="begin">PS-Sync</th><th scope="col">D-Sync</th><th scope="col" class="begin">final</th><th scope="col">to {}</th></tr>
</thead>
<tbody>
)",
                        place(group[0]), target_name(results));
    for (const Cell& cell : group) html += row(results, cell, &cell == fastest(group));
    html += "</tbody></table></div>\n";
  }
  return html;
}

std::string caption(const std::string& figure) {
  if (figure == "accuracy")
    return "Test accuracy against the time of training (tests not counted). Left: all of it; "
           "right: the "
           "shaded start. The dashed line is the accuracy that the table gives the time to.";
  if (figure == "breakdown")
    return "What a mean iteration of a worker's compute thread is spent on; the final test "
           "accuracy is above "
           "it. The hatched bar beside it is communication that runs at the same time on the other "
           "thread: it costs nothing, and without the pipeline it would come on top.";
  if (figure == "links")
    return "Speedup against the bandwidth of a link: points are measured, lines connect what the "
           "equations predict. Pipe-SGD alone gains most where computing and "
           "communicating take equally long, compression where the network is slow.";
  return "Speedup against the number of workers: points are measured, lines connect what the "
         "equations "
         "predict.";
}

std::string figure_html(const std::string& name, const fs::path& folder) {
  const fs::path file = folder / (name + ".svg");
  if (!fs::exists(file))
    return fmt::format("<p class=\"missing\">{}.svg has not been drawn: it needs gnuplot.</p>\n",
                       name);
  const std::string svg = read_file(file);
  return fmt::format(
      "<figure id=\"{}\"><div class=\"scroll\">{}</div><figcaption>{}</figcaption></figure>\n",
      name, svg.substr(std::min(svg.find("<svg"), svg.size())), caption(name));
}

std::string figures(const Results& results, const fs::path& folder) {
  std::string html = "<h2 id=\"figures\">Figures</h2>\n";
  for (const std::string& name : figures_of(results)) html += figure_html(name, folder);
  return html;
}

std::string timelines(const Results& results) {
  std::string html;
  for (const Cell& cell : results.cells)
    if (!cell.timeline.empty())
      html += fmt::format(
          "<figure><h3>{} <span class=\"soft\">({})</span></h3><div "
          "class=\"scroll\">{}</div></figure>\n",
          named(cell), place(cell), timeline_svg(cell));
  if (html.empty()) html = "<p>None was recorded.</p>\n";
  return R"(<h2 id="timelines">Timelines</h2>
<p>Two iterations, when all is warm, of a training of their own. Each rank has two threads: the upper row computes, the lower one
communicates. With D-Sync the rows take turns. With Pipe-SGD the lower row is busy with an earlier iteration while the upper
one computes: compare the numbers. Each picture has its own scale of time. Point at a span to read its length.</p>
)" + timeline_legend() +
         html;
}

std::string reading(const Results& results) {
  return fmt::format(R"(<h2 id="reading">How to read this</h2>
<p>A parameter server (PS-Sync) moves all gradients and weights through one network card. D-Sync adds the gradients up in a
ring of workers, so that no card carries more than the others, but each iteration does one thing after the other:</p>
<p><code>update + compute + communicate</code> <span class="soft">(Eq. 2)</span></p>
<p>Pipe-SGD updates with the gradients of an earlier iteration, so that computing and communicating run at the same time
and only the longer of the two counts:</p>
<p><code>max(update + compute, communicate)</code> <span class="soft">(Eq. 4)</span></p>
<p>Hence it gains most, a factor of two, where both take equally long. Compression makes communication shorter: +T sends 16
instead of 32 bits of a number, +Q sends 8.</p>
<dl>
<dt>iteration</dt><dd>Median time of an iteration; of several repeats the median, with the fastest and the slowest of them.</dd>
<dt>compute</dt><dd>Loading data, forward, backward and update.</dd>
<dt>compress</dt><dd>Compressing and adding up, where the compute thread waits for it.</dd>
<dt>exposed</dt><dd>Communication that the compute thread waits for, with what this waits for slower workers.</dd>
<dt>wait</dt><dd>All else that it waits for: handing over to the other thread, waking up.</dd>
<dt>hidden</dt><dd>Communication and compression behind the computation. It is not a part of the iteration's time; the other four are.
They are means, so that their sum can differ from the median.</dd>
<dt>predicted</dt><dd>The iteration by the paper's equations 2 (D-Sync) and 5 (Pipe-SGD), and for PS-Sync by equation 2 with what a server's card takes, from measured times of computing and a calibrated network. The error
is that of the prediction: +10 % says that it predicted a slower iteration than was measured.</dd>
<dt>MB</dt><dd>Sent by all ranks together in an iteration, in millions of bytes.</dd>
<dt>times as fast as</dt><dd>The other algorithm's iteration divided by this one's, among as many workers and over the same link.</dd>
<dt>to {}</dt><dd>Seconds of training, its start included, until the first test with that accuracy. Old or compressed gradients can need
more iterations; this column counts them in.</dd>
</dl>
<p>More in the documentation that comes with the program: <code>docs/05-overlap.md</code> goes through the paper's argument,
<code>docs/emulated-link.md</code> says what a link such as <code>1gbe</code> is, <code>docs/results</code> has more measurements.</p>
)",
                     target_name(results));
}

std::string environment(const Results& r) {
  const Environment& e = r.environment;
  std::string html = "<h2 id=\"environment\">Environment</h2>\n<dl>\n";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
  };
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
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Speedup of Pipe-SGD: {}</title>
<style>{}</style>
</head>
<body>
{}<main>
{}{}{}{}{}{}</main>
</body>
</html>
)",
                     escaped(results.net), kReportStyle, introduction(results),
                     speedup_summary(results, groups), tables(results, groups),
                     figures(results, figures_folder), timelines(results), reading(results),
                     environment(results));
}

}  // namespace tandem
