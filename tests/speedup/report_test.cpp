#include "speedup/report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "speedup/figure_scripts.h"
#include "speedup/figures.h"
#include "speedup/gnuplot.h"
#include "speedup/palette.h"
#include "speedup/table.h"
#include "speedup/timeline.h"
#include "tests/speedup/browser.h"
#include "tests/support.h"
#include "train/files.h"

using namespace tandem;
using namespace tandem::test;
namespace fs = std::filesystem;

namespace {

std::vector<TimelineSpan> example_timeline() {
  std::vector<TimelineSpan> spans;
  for (int rank = 0; rank < 2; ++rank)
    for (int i = 0; i < 2; ++i) {
      const double at = 10. * i + rank;
      spans.push_back({rank, false, false, "wait", at, at + 5, 30 + i});
      spans.push_back({rank, false, false, "forward", at + 5, at + 7, 30 + i});
      spans.push_back({rank, false, false, "backward", at + 7, at + 10, 30 + i});
      spans.push_back({rank, false, true, "communicate", at - 4, at + 5, 28 + i});
      spans.push_back({rank, false, true, "compress", at, at + 0.1, 28 + i});
    }
  return spans;
}

const Algorithm& algorithm(const std::string& name) {
  return *std::ranges::find(all_algorithms(), name, &Algorithm::name);
}

Cell example_cell(const Algorithm& algorithm, int workers, const std::string& link, double ms) {
  Cell cell{.name = algorithm.name,
            .algo = algorithm.algo,
            .compress = algorithm.compress,
            .workers = workers,
            .link = link};
  cell.repeats_ms = {ms, 1.02 * ms, 0.98 * ms};
  cell.median_ms = 0.99 * ms;
  cell.predicted_ms = 1.1 * ms;
  cell.breakdown = {
      .compute = 0.2 * ms, .compress = 0.1 * ms, .exposed = 0.6 * ms, .other = 0.1 * ms};
  if (algorithm.algo == "pipe-sgd") cell.breakdown.hidden = 0.2 * ms;
  cell.bytes_per_iteration = 1e6;
  for (int i = 0; i <= 20; ++i)
    cell.curve.push_back({i * ms / 10, 100 * i, 0.97 - 0.87 * std::exp(-i / 4.)});
  cell.test_accuracy = cell.curve.back().accuracy;
  cell.timeline = example_timeline();
  return cell;
}

// All algorithms with two numbers of workers and over two links; one cell has failed.
Results example_results() {
  Results results{.bench = "mnist_mlp",
                  .net = "MNIST-MLP",
                  .data = "datasets/mnist",
                  .device = DeviceKind::cpu,
                  .precision = Precision::fp32,
                  .batch = 100,
                  .iterations = 2000,
                  .repeats = 3,
                  .parameters = 648010,
                  .seed = 1,
                  .target_accuracy = 0.9,
                  .environment = {.processor = "a processor", .cores = 2, .transport = "threads"}};
  for (const int workers : {2, 4})
    for (const char* link : {"1gbe", "10gbe"}) {
      double ms = 100;
      for (const Algorithm& algorithm : all_algorithms())
        results.cells.push_back(example_cell(algorithm, workers, link, ms *= 0.8));
    }
  Cell& failed = results.cells[2];
  failed = {.name = failed.name, .workers = failed.workers, .link = failed.link};
  failed.failure = "rank 1 said <no> & \"went\"";
  return results;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t times = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
    ++times;
  return times;
}

// What is wrong with the nesting and the attributes of XML; empty if nothing is.
std::string xml_error(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    std::size_t end = at + 1;
    char quote = 0;
    std::set<std::string> attributes;
    std::string word;
    bool ended = false;  // the word, by a blank
    for (; end < xml.size() && (quote || xml[end] != '>'); ++end) {
      const char c = xml[end];
      if (quote) {
        if (c == quote) quote = 0;
        if (c == '<') return "< inside of quotes";
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '=') {
        if (!attributes.insert(word).second) return "two attributes " + word;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ended = true;
      } else {
        word = ended ? std::string(1, c) : word + c;
        ended = false;
      }
    }
    if (end == xml.size()) return "a tag without an end";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n\t/", 1));
    if (name.starts_with('/')) {
      if (open.empty() || "/" + open.back() != name) return "unexpected <" + tag + ">";
      open.pop_back();
    } else if (!tag.ends_with('/') && !name.starts_with('?') && !name.starts_with('!')) {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "no end of " + open.back();
}

}  // namespace

TEST_CASE("timeline: every span is drawn, with its iteration and a tooltip") {
  const Cell cell = example_cell(algorithm("Pipe-SGD"), 2, "1gbe", 10);
  const std::string svg = timeline_svg(cell);
  CHECK(xml_error(svg) == "");
  CHECK(count(svg, "<rect") == cell.timeline.size());
  CHECK(count(svg, ">iteration 29</text>") == 2);
  CHECK(count(svg, "communicate of iteration 28: 9.00 ms") == 2);
  CHECK(count(svg, ">worker 1<") == 1);
  CHECK(count(svg, ">server<") == 0);
  CHECK(timeline_svg(Cell{}) == "");
  CHECK(count(timeline_legend(), "<svg") == 8);
}

TEST_CASE("timeline: worker 0 with all algorithms, on one time scale") {
  std::vector<Cell> cells = {example_cell(algorithm("D-Sync"), 2, "1gbe", 10),
                             example_cell(algorithm("Pipe-SGD"), 2, "1gbe", 10)};
  for (TimelineSpan& span : cells[0].timeline) span.begin *= 2, span.end *= 2;
  const std::string svg = timelines_on_one_scale(cells);
  CHECK(xml_error(svg) == "");
  for (const Cell& cell : cells) CHECK(count(svg, ">" + cell.name + "<") == 1);
  // Worker 1 is not in it.
  CHECK(count(svg, "<rect") == cells[0].timeline.size());
  const auto width_of = [&](const char* title) {
    const std::size_t end = svg.find(title);
    REQUIRE(end != std::string::npos);
    const std::size_t at = svg.rfind("width=\"", end) + 7;
    return std::stod(svg.substr(at));
  };
  CHECK(width_of("backward of iteration 31: 6.00 ms") ==
        doctest::Approx(2 * width_of("backward of iteration 31: 3.00 ms")).epsilon(0.001));
  CHECK(timelines_on_one_scale({}) == "");
}

TEST_CASE("figures: which figures are drawn") {
  using Names = std::vector<std::string>;
  const auto names = [](const Results& results) {
    Names all;
    for (const FigureName& name : figures_of(results)) all.push_back(name.file);
    return all;
  };
  Results results = example_results();
  CHECK(names(results) == Names{"accuracy", "breakdown", "accuracy_2_10gbe", "breakdown_2_10gbe",
                                "accuracy_4_1gbe", "breakdown_4_1gbe", "accuracy_4_10gbe",
                                "breakdown_4_10gbe", "links", "workers"});
  CHECK(figures_of(results)[2].setting == "2 workers, link 10gbe");
  CHECK(figures_of(results)[2].kind == "accuracy");
  CHECK(figures_of(results).back().setting == "");
  std::erase_if(results.cells, [](const Cell& cell) { return cell.workers == 4; });
  CHECK(names(results).back() == "links");
  // Without a limit there is no place on an axis of bandwidth.
  for (Cell& cell : results.cells)
    if (cell.link == "10gbe") cell.link = "none";
  CHECK(names(results) == Names{"accuracy", "breakdown", "accuracy_2_none", "breakdown_2_none"});
  // The gap needs an optimum and objectives, two of them above it.
  results.optimum = 1.5;
  CHECK(names(results).size() == 4);
  results.cells[0].curve[3].objective = 1.7;
  results.cells[0].curve[4].objective = 1.5;
  CHECK(names(results).size() == 4);
  results.cells[0].curve[5].objective = 1.6;
  CHECK(names(results) ==
        Names{"accuracy", "gap", "breakdown", "accuracy_2_none", "breakdown_2_none"});
  for (Cell& cell : results.cells) cell.curve.resize(1);  // no curve
  CHECK(names(results) == Names{"breakdown", "breakdown_2_none"});
  for (Cell& cell : results.cells) cell.failure = "for a reason";
  CHECK(names(results).empty());
  CHECK(names(Results{}).empty());
}

TEST_CASE("figures: predictions between two links are the model's, not a straight line") {
  const auto cell = [](const Algorithm& a, const char* link, double beta) {
    Cell c = example_cell(a, 4, link, 10);
    c.model = ModelInput{.algo = a.algo,
                         .workers = 4,
                         .compute = {.forward = 0.010},
                         .network = {.beta = beta},
                         .gradient_bytes = 1e6,
                         .wire_bytes = 1e6};
    return c;
  };
  Results results{.iterations = 2000, .timed = 2000};
  for (const auto& [link, beta] : {std::pair("1gbe", 8e-9), std::pair("100gbe", 8e-11)})
    for (const char* a : {"D-Sync", "Pipe-SGD"})
      results.cells.push_back(cell(algorithm(a), link, beta));
  const auto figure = links_figure(results);
  REQUIRE(figure);
  // $model_…: Pipe-SGD over D-Sync. 10 ms of computing, and 12 ms of communicating at 1 Gbit/s.
  std::istringstream lines(figure->script.substr(figure->script.find("$model_")));
  std::string line;
  std::getline(lines, line);
  int points = 0;
  double highest = 0;
  for (double gbit, speedup; lines >> gbit >> speedup; ++points) {
    const double communicate = 0.012 / gbit;
    CHECK(speedup ==
          doctest::Approx((0.010 + communicate) / std::max(0.010, communicate)).epsilon(0.001));
    highest = std::max(highest, speedup);
  }
  CHECK(points > 30);
  CHECK(highest > 1.9);  // where both take equally long; it is 1.8 and 1.0 at the ends
}

TEST_CASE("figures: without gnuplot, the message names the package") {
  const TemporaryFolder folder;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  const std::string message =
      message_of<SystemError>([&] { draw_figures(example_results(), folder / "figures"); });
  ::setenv("PATH", path.c_str(), 1);
  CHECK(message ==
        "drawing figures needs gnuplot, which is not installed (Debian's package gnuplot-nox)");
}

TEST_CASE("report: it is complete, escaped and self-contained") {
  const TemporaryFolder folder;
  Results results = example_results();
  results.cells[0].loads = {{.others = 0.5}};
  const std::string html = report_html(results, folder.path());
  CHECK(count(html, "PS-Sync* was disturbed: other programs took 50% of the cores&#39; time.") ==
        1);
  for (const Algorithm& algorithm : all_algorithms())
    CHECK(html.find("</span>" + algorithm.name + "</th>") != std::string::npos);
  CHECK(count(html, "failed: rank 1 said &lt;no&gt; &amp; &quot;went&quot;") == 1);
  CHECK(count(html, "<no>") == 0);
  CHECK(count(html, "<table class=\"wide\">") == 4);
  CHECK(count(html, "class=\"best\"") == 4);
  CHECK(count(html, "2.0–3.2×") == 2);
  // The numbers of the other tables, in the same words.
  std::string cells = html;
  for (const char* begin : {"<td>", "<td class=\"begin\">"})
    for (std::size_t at = 0; (at = cells.find(begin, at)) != std::string::npos;)
      cells.erase(at, std::string(begin).size());
  const std::string all_markdown = to_markdown(results);
  for (const Cell& cell : results.cells) {
    if (!cell.done()) continue;
    std::string row, markdown = "|";
    for (const Column& column : columns_of(results)) {
      row += column.value(cell) + "</td>";
      markdown += fmt::format(" {} |", column.value(cell));
    }
    CHECK(count(cells, row) > 0);
    CHECK(count(all_markdown, markdown) > 0);
  }
  CHECK(count(html, "is missing: drawing it") == figures_of(results).size());
  for (const char* loads : {"src=", "href=\"http", "url(http", "@import", "<link"})
    CHECK(count(html, loads) == 0);
  CHECK(count(html, "href=") == count(html, "href=\"#"));
  CHECK(count(report_html(Results{}, folder.path()), "</html>") == 1);
}

TEST_CASE("report: figures are drawn and a browser shows them") {
  if (!in_path("gnuplot")) {
    MESSAGE("gnuplot is not installed: figures are not tested");
    return;
  }
  const TemporaryFolder folder;
  const fs::path out = folder / "it's out";
  const Results results = example_results();
  draw_figures(results, out);
  for (const FigureName& each : figures_of(results)) {
    const std::string& name = each.file;
    CAPTURE(name);
    const std::string svg = read_bytes(out / (name + ".svg"));
    CHECK(xml_error(svg) == "");
    CHECK(read_bytes(out / (name + ".png")).starts_with("\x89PNG"));
    CHECK(count(svg, "prefers-color-scheme: dark") == 1);
    CHECK(count(svg, "<title>" + name + "_plot_") == 0);
  }
  const std::string accuracy = read_bytes(out / "accuracy.svg");
  const std::string links = read_bytes(out / "links.svg");
  CHECK(count(read_bytes(out / "breakdown.svg"), "slowest repeat</title>") == 1);
  for (const Algorithm& algorithm : all_algorithms()) {
    CAPTURE(algorithm.name);
    const bool failed = algorithm.name == results.cells[2].name;
    CHECK(count(accuracy, "<title>" + algorithm.name + "</title>") == (failed ? 0 : 2));
    const bool is_base = algorithm.name == "D-Sync" || algorithm.name == "PS-Sync";
    CHECK(count(links, "<title>" + algorithm.name + ", measured</title>") == (is_base ? 1 : 2));
  }

  const std::string html = report_html(results, out);
  write_file(out / "report.html", html);
  CHECK(count(html, "<figure id=") == figures_of(results).size());
  CHECK(count(html, "<?xml") == 0);
  CHECK(count(html, "id=\"accuracy_canvas\"") == 1);

  if (browser().empty()) {
    MESSAGE("Chromium is not installed: the report is not opened");
    return;
  }
  // A copy of the report that looks at itself.
  std::string page = html;
  page.insert(page.find("</body>"), R"(<img src="accuracy.svg"><img src="links.png">
<script>addEventListener("load", () => {
  const shown = [...document.querySelectorAll("figure svg")].filter(
      (svg) => svg.getBoundingClientRect().width > 300 && svg.getBoundingClientRect().height > 50);
  const images = [...document.images].filter((image) => image.naturalWidth > 0);
  const root = document.documentElement;
  for (const image of document.images) image.style.display = "none";
  root.dataset.seen = `${shown.length} figures, ${images.length} images, ` +
      (root.scrollWidth > root.clientWidth ? "too wide" : "fits");
});</script>)");
  write_file(out / "page.html", page);
  const ProgramResult result = browse(out / "page.html");
  CAPTURE(result.err);
  CHECK(result.status == 0);
  // Of the first setting, in which one cell failed: two figures, the timelines and all on one
  // scale. Of all settings: links and workers.
  const std::string figures = fmt::format("{} figures", 2 + all_algorithms().size() - 1 + 1 + 2);
  CHECK(count(result.out, "data-seen=\"" + figures + ", 2 images, fits\"") == 1);
  CHECK(count(result.err, "CONSOLE") == 0);
}

TEST_CASE("palette: rows that every table has differ in colour, and other algorithms from them") {
  std::map<std::string, std::string> algo_of;  // by colour
  std::set<std::string> rows;
  for (const Algorithm& a : all_algorithms()) {
    CAPTURE(a.name);
    const std::string colour = algorithm_colour(a.name);
    if (a.by_default) CHECK(rows.insert(colour).second);
    CHECK(algo_of.try_emplace(colour, a.algo).first->second == a.algo);
  }
  CHECK(algorithm_colour("PS-Sync") == kGrey);
  CHECK(algorithm_colour("Pipe-SGD") == "#e69f00");
  CHECK(algorithm_colour("Magic") == kGrey);
}

TEST_CASE("figures: gnuplot shows any text, and runs none of it") {
  CHECK(gnuplot_quoted("a \"b\" \\ `date`\nc") == "\"a \\\"b\\\" \\\\ \\`date\\` c\"");
}
