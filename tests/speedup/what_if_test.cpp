#include "speedup/what_if.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "speedup/palette.h"
#include "speedup/report.h"
#include "tests/json.h"
#include "tests/speedup/browser.h"
#include "tests/support.h"
#include "train/files.h"

using namespace tandem;
using namespace tandem::test;
using Json = nlohmann::json;

namespace {

// A number that says which cell it is of, and that grows with the workers.
double example_ms(int workers, std::size_t link, std::size_t algorithm) {
  return 10. * static_cast<double>(algorithm + 1) + static_cast<double>(link) + workers / 100.;
}

const std::vector<std::string> kNames = {"Pipe-SGD+Q", "PS-Sync", "D-Sync"};

Results example(const std::vector<int>& workers, const std::vector<std::string>& links) {
  Results results{.net = "MNIST-MLP", .batch = 120};
  for (const int w : workers)
    for (std::size_t link = 0; link < links.size(); ++link)
      for (const Algorithm& a : all_algorithms()) {
        const auto at = std::ranges::find(kNames, a.name);
        if (at == kNames.end()) continue;
        Cell cell{.name = a.name, .algo = a.algo, .compress = a.compress};
        cell.workers = w;
        cell.link = links[link];
        cell.repeats_ms = {example_ms(w, link, static_cast<std::size_t>(at - kNames.begin()))};
        results.cells.push_back(std::move(cell));
      }
  return results;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  REQUIRE(from != std::string::npos);
  const std::size_t to = text.find(end, from + begin.size());
  REQUIRE(to != std::string::npos);
  return text.substr(from + begin.size(), to - from - begin.size());
}

Json data_of(const std::string& html) {
  return json_of(
      between(html, "<script type=\"application/json\" id=\"what-if-data\">", "</script>"));
}

std::vector<std::string> texts(const Json& data, std::size_t axis, const char* which) {
  std::vector<std::string> all;
  for (const Json& value : data["axes"][axis]["values"]) all.push_back(value[which]);
  return all;
}

bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// The line of the slider's input.
std::string input(const std::string& html, const std::string& name) {
  return between(html, "<input type=\"range\" id=\"what-if-" + name + "\"", ">");
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("what if: the section needs three finished settings") {
  CHECK(what_if_html(Results{}) == "");
  CHECK(what_if_html(example({4}, {"1gbe"})) == "");
  CHECK(what_if_html(example({2, 4}, {"1gbe"})) == "");
  // By two names, but one.
  CHECK(what_if_html(example({2, 4}, {"1gbe", "1000mbit/0.05ms"})) == "");
  CHECK(what_if_html(example({2, 4}, {"1gbe", "10gbe"})) != "");
  CHECK(what_if_html(example({1, 2, 4}, {"1gbe"})) != "");

  Results results = example({1, 2, 4}, {"1gbe"});
  for (Cell& cell : results.cells)
    if (cell.workers == 2) cell.failure = "no luck";
  CHECK(what_if_html(results) == "");
  results = example({1, 2, 4}, {"1gbe"});
  results.batch = 0;  // unknown
  CHECK(what_if_html(results) == "");

  const TemporaryFolder folder;
  for (const bool present : {false, true}) {
    CAPTURE(present);
    const std::string html =
        report_html(example({2, 4}, {"1gbe", present ? "10gbe" : "1gbit/50us"}), folder.path());
    for (const char* part : {"<h2 id=\"what-if\">", "href=\"#what-if\"", ".sliders", "what-if-data",
                             "#what-if=", "<noscript>"})
      CHECK(has(html, part) == present);
  }
}

TEST_CASE("what if: the data has every finished cell") {
  Results results = example({16, 2, 8}, {"none", "10gbit/80us", "2.5gbit/80us", "10gbit/1.5ms"});
  results.cells[0].failure = "no luck";
  const std::string html = what_if_html(results);
  const Json data = data_of(html);
  CHECK(texts(data, 0, "tick") == Texts{"2", "8", "16"});
  CHECK(texts(data, 1, "tick") == Texts{"2.5 Gbit/s", "10 Gbit/s", "no limit"});
  CHECK(texts(data, 2, "tick") == Texts{"0 µs", "80 µs", "1.5 ms"});
  CHECK(texts(data, 0, "label") == Texts{"2 workers", "8 workers", "16 workers"});
  REQUIRE(data["algorithms"].size() == 3);
  for (const Json& a : data["algorithms"])
    CHECK(a["colour"] == algorithm_colour(a["name"].get<std::string>()));
  CHECK(data["cells"].size() == results.cells.size() - 1);
  // 8 workers over 10 Gbit/s with 1.5 ms, the last of the links.
  const auto q = std::ranges::find(data["algorithms"], "Pipe-SGD+Q",
                                   [](const Json& a) { return a["name"].get<std::string>(); });
  const Json cell = {q - data["algorithms"].begin(), 1, 1, 2, example_ms(8, 3, 0)};
  CHECK(std::ranges::count(data["cells"], cell) == 1);
  for (const Json& value : data["axes"][0]["values"]) CHECK(value["samples"] == 120);
  CHECK(has(html, "The workers divide a batch of 120 among them."));

  results.batch_per_worker = 32;
  const std::string grown = what_if_html(results);
  CHECK(data_of(grown)["axes"][0]["values"][2]["samples"] == 16 * 32);
  CHECK(has(grown, "Every worker has a batch of 32"));
}

TEST_CASE("what if: a slider with one value is hidden, and one that follows another") {
  const auto is_hidden = [](const std::string& html, const std::string& name) {
    const bool disabled = has(input(html, name), " disabled");
    const std::size_t at = html.rfind("<div class=\"slider\"", html.find("id=\"what-if-" + name));
    CHECK(html.substr(at).starts_with("<div class=\"slider\" hidden>") == disabled);
    return disabled;
  };
  const std::string all = what_if_html(example({2, 4}, {"1gbit/1us", "1gbit/2us", "2gbit/1us"}));
  for (const char* name : {"workers", "bandwidth", "latency"}) CHECK_FALSE(is_hidden(all, name));
  CHECK(has(input(all, "workers"), "min=\"0\" max=\"1\" step=\"1\""));

  const std::string workers = what_if_html(example({2, 4, 8}, {"1gbe"}));
  CHECK_FALSE(is_hidden(workers, "workers"));
  CHECK(is_hidden(workers, "bandwidth"));
  CHECK(is_hidden(workers, "latency"));

  const std::string latency = what_if_html(example({2}, {"1gbit/1us", "1gbit/2us", "1gbit/3us"}));
  CHECK(is_hidden(latency, "workers"));
  CHECK(is_hidden(latency, "bandwidth"));
  CHECK_FALSE(is_hidden(latency, "latency"));

  // Each of these links has a latency of its own.
  const std::string links = what_if_html(example({2}, {"1gbe", "10gbe", "none"}));
  CHECK(is_hidden(links, "workers"));
  CHECK_FALSE(is_hidden(links, "bandwidth"));
  CHECK(is_hidden(links, "latency"));
  CHECK(texts(data_of(links), 1, "shown") ==
        Texts{"1 Gbit/s, 50 µs", "10 Gbit/s, 30 µs", "no limit, 0 µs"});
}

TEST_CASE("what if: no text ends the script") {
  Results results = example({1, 2, 4}, {"1gbe"});
  const std::string name = "</script><!--<script>alert(1)</script>\xff";
  for (Cell& cell : results.cells)
    if (cell.name == "D-Sync") cell.name = name;
  const std::string html = what_if_html(results);
  CHECK_FALSE(has(html, "<!--"));
  CHECK_FALSE(has(html, "<script>"));
  const Json data = data_of(html);
  CHECK(std::ranges::any_of(data["algorithms"], [](const Json& a) {
    return a["name"].get<std::string>().starts_with("</script><!--<script>alert(1)</script>");
  }));
}

TEST_CASE("what if: in a browser, sliders choose what is drawn") {
  if (browser().empty()) {
    MESSAGE("Chromium is not installed: the sliders are not tried");
    return;
  }
  const TemporaryFolder folder;
  Results results = example({1, 2, 4, 8, 16}, {"1gbit/50us", "10gbit/50us", "10gbit/5us"});
  results.batch_per_worker = 32;
  const auto page = folder / "report.html";
  write_file(page, report_html(results, folder.path()));
  const auto shown = [&](const std::string& hash) {
    const ProgramResult result = browse(page, hash);
    CAPTURE(result.err);
    CHECK(result.status == 0);
    CHECK_FALSE(has(result.err, "CONSOLE"));
    return result.out;
  };
  const auto answer = [](const std::string& dom) {
    return between(between(dom, "<output id=\"what-if-answer\"", "</output>") + "<", ">", "<");
  };
  const auto bars = [](const std::string& dom) {
    return between(dom, "<svg id=\"what-if-bars\"", "</svg>");
  };

  const std::string fast = shown("#what-if=3,1,1");
  CHECK(answer(fast) ==
        "8 workers, 10 Gbit/s, 50 µs latency: Pipe-SGD+Q is the fastest with 11.08 ms per "
        "iteration, 23,105 samples/s.");
  CHECK(has(bars(fast),
            "aria-label=\"Milliseconds per iteration: Pipe-SGD+Q 11.08, PS-Sync 21.08, "
            "D-Sync 31.08\""));
  CHECK(has(bars(fast), ">11.08 ms – fastest</text>"));
  CHECK(has(fast, "aria-valuetext=\"8 workers\""));
  // Three curves with a point for each number of workers, and the ideal line.
  const std::string curves = between(fast, "<svg id=\"what-if-curves\"", "</svg>");
  CHECK(
      has(curves, "<title>D-Sync, 16 workers, 10 Gbit/s, 50 µs latency: 16,431 samples/s</title>"));
  std::size_t circles = 0;
  for (std::size_t at = 0; (at = curves.find("<circle", at)) != std::string::npos; ++at) ++circles;
  CHECK(circles == 3 * 5);
  CHECK(has(curves, "class=\"ideal\""));
  CHECK(has(curves, "class=\"chosen\""));

  const std::string slow = shown("#what-if=0,0,1");
  CHECK(answer(slow) ==
        "1 worker, 1 Gbit/s, 50 µs latency: Pipe-SGD+Q is the fastest with 10.01 ms per iteration, "
        "3,197 samples/s.");
  CHECK(has(bars(slow), ">30.01 ms</text>"));
  CHECK_FALSE(has(bars(slow), "11.08"));

  // Numbers beyond the ends are the ends. 1 Gbit/s with 5 µs was not run.
  const std::string none = shown("#what-if=99,0,0");
  CHECK(answer(none) ==
        "There is no result for 16 workers, 1 Gbit/s, 5 µs latency. The nearest one is for 16 "
        "workers, 1 Gbit/s, 50 µs latency.");
  CHECK(has(bars(none), ">no result</text>"));
  CHECK(has(none, ">There is no result for this choice.</text>"));

  // Without a hash, a setting that exists.
  CHECK(has(answer(shown("")), "is the fastest with"));

  // A slider that moves, and a link that is followed later. Two algorithms may be equally fast.
  for (Cell& cell : results.cells)
    if (cell.workers == 4 && cell.name == "D-Sync") cell.repeats_ms = {10.04};
  std::string moved = report_html(results, folder.path());
  moved.insert(moved.find("</body>"), R"(<script>addEventListener("load", () => {
  location.hash = "#what-if=0,0,1";
  addEventListener("hashchange", () => {
    const slider = document.getElementById("what-if-workers");
    slider.value = 2;
    slider.dispatchEvent(new Event("input"));
  });
});</script>)");
  write_file(page, moved);
  CHECK(answer(shown("")) ==
        "4 workers, 1 Gbit/s, 50 µs latency: D-Sync and Pipe-SGD+Q are the fastest with 10.04 ms "
        "per iteration, 12,749 samples/s.");
}

TEST_CASE("what if: in a browser, no label covers another or leaves its picture") {
  if (browser().empty()) {
    MESSAGE("Chromium is not installed: the labels are not measured");
    return;
  }
  const TemporaryFolder folder;
  std::vector<int> many;
  for (int workers = 1; workers <= 1024; workers += workers < 20 ? 1 : 200) many.push_back(workers);
  const std::vector<std::string> links = {"1gbit/50us",  "2.5gbit/50us", "10gbit/50us",
                                          "25gbit/50us", "100gbit/5us",  "none"};
  struct Case {
    std::vector<int> workers;
    int window;
  };
  for (const auto& [workers, window] :
       {Case{many, 500}, Case{many, 1400}, Case{{2, 3, 4}, 1400}, Case{{4}, 500}}) {
    CAPTURE(workers.size());
    CAPTURE(window);
    Results results = example(workers, links);
    results.cells[0].repeats_ms = {1e5};  // many times as long as the others
    std::string html = report_html(results, folder.path());
    html.insert(html.find("</body>"), R"(<script>addEventListener("load", () => {
  let seen = 0, wrong = "";
  for (const width of [0.7 * innerWidth, innerWidth]) {
    document.body.style.width = width + "px";
    dispatchEvent(new Event("resize"));
    const labels = [...document.querySelectorAll(".charts > div > svg > text")];
    const boxes = labels.map((label) => label.getBoundingClientRect());
    seen += boxes.length;
    boxes.forEach((box, i) => {
      const picture = labels[i].parentElement.getBoundingClientRect();
      if (box.left < picture.left - 1 || box.right > picture.right + 1 ||
          box.top < picture.top - 1 || box.bottom > picture.bottom + 1)
        wrong += `${labels[i].textContent} leaves its picture. `;
      boxes.forEach((other, j) => {
        if (i < j && box.left < other.right && other.left < box.right &&
            box.top + 2 < other.bottom && other.top + 2 < box.bottom)
          wrong += `${labels[i].textContent} covers ${labels[j].textContent}. `;
      });
    });
  }
  document.documentElement.dataset.wrong = seen < 20 ? "There are no labels." : wrong;
});</script>)");
    write_file(folder / "page.html", html);
    const ProgramResult result =
        browse(folder / "page.html", "#what-if=0,0,1", fmt::format("{},900", window));
    CHECK(between(result.out, "data-wrong=\"", "\"") == "");
  }
}
