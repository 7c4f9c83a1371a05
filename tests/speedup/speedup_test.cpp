// Comparisons of algorithms: plans, results and tables.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <span>
#include <sstream>

#include "base/error.h"
#include "speedup/child.h"
#include "speedup/excerpt.h"
#include "speedup/plan.h"
#include "speedup/table.h"
#include "tests/support.h"
#include "train/files.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<Algorithm> paper_algorithms() {
  std::vector<Algorithm> all;
  std::ranges::copy_if(all_algorithms(), std::back_inserter(all), &Algorithm::by_default);
  return all;
}

Comparison plan() {
  return {.bench = all_benches().front(),
          .workers = {4, 2},
          .links = {"1gbe", "none"},
          .algorithms = paper_algorithms(),
          .iterations = 10,
          .programs = "build"};
}

void finish(Cell& cell, std::vector<double> repeats_ms) {
  cell.repeats_ms = std::move(repeats_ms);
  cell.median_ms = 8;
  cell.predicted_ms = 9;
  cell.model = ModelInput{.algo = cell.algo, .workers = 4, .network = {.beta = 1e-9}};
  cell.breakdown = {.compute = 1, .compress = 2, .exposed = 3, .other = 4, .hidden = 5};
  cell.loads = std::vector<Load>(cell.repeats_ms.size(), Load{.others = 0.01, .switches = 3000});
  cell.bytes_per_iteration = 7e6;
  cell.test_accuracy = 0.9;
  cell.curve = {{0.5, 5, 0.6}, {1.0, 10, 0.9}};
  cell.timeline = {{.rank = 1, .communicates = true, .what = "wait", .begin = 1, .end = 2}};
  cell.weights_hash = "abc";
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// Of plan(): two cells are finished, one has failed.
Results interrupted() {
  Results r = plan().begin();
  finish(r.cells[0], {1});
  finish(r.cells[8], {2});
  r.cells[1].failure = "no";
  return r;
}

}  // namespace

TEST_CASE("speedup: a plan has a cell for every number of workers, link and algorithm") {
  const Comparison p = plan();
  const Results r = p.begin();
  REQUIRE(r.cells.size() == 2 * 2 * 7);
  CHECK(r.cells[0].name == "PS-Sync");
  CHECK(r.cells[0].workers == 4);
  CHECK(r.cells[7].link == "none");
  CHECK(r.cells[27].name == "Pipe-SGD+Q");
  CHECK(r.cells[27].workers == 2);

  const auto threads = p.command(r.cells[6]);
  CHECK(threads[0] == "build/mnist_mlp");
  for (const char* word : {"pipe-sgd", "quant8", "1gbe", "--workers", "--warmup-epochs"})
    CHECK(has(threads, word));
  CHECK_FALSE(has(p.command(r.cells[1]), "--warmup-epochs"));

  Comparison mpi = p;
  mpi.mpiexec = {"mpiexec", "-f", "hosts"};
  auto processes = mpi.command(r.cells[0]);
  processes.resize(6);
  CHECK(processes ==
        std::vector<std::string>{"mpiexec", "-f", "hosts", "-n", "5", "build/mnist_mlp"});
  CHECK(mpi.command(r.cells[1])[4] == "4");
  CHECK(has(mpi.command(r.cells[1]), "--workers"));
  // A server more, if it is asked for.
  const Cell p3{.algo = "p3", .workers = 4};
  for (const auto& [words, ranks] : {std::pair{std::vector<std::string>{}, "4"},
                                     {{"--via", "servers"}, "5"},
                                     {{"--via=servers"}, "5"},
                                     {{"--via", "ring"}, "4"}}) {
    mpi.options = words;
    CHECK(mpi.command(p3)[4] == std::string(ranks));
  }
}

TEST_CASE("speedup: a program gets the options that its algorithm has") {
  Comparison p = plan();
  p.options = {"--warmup-epochs", "5", "--lr", "0.1", "--pipe-k=3"};
  const Results r = p.begin();
  const auto d_sync = p.command(r.cells[1]), pipe = p.command(r.cells[4]);
  const auto ends_with = [](const std::vector<std::string>& words,
                            const std::vector<std::string>& end) {
    return std::ranges::equal(std::span(words).last(end.size()), end);
  };
  CHECK(ends_with(d_sync, {"--lr", "0.1"}));
  CHECK_FALSE(has(d_sync, "5"));
  CHECK_FALSE(has(d_sync, "--pipe-k=3"));
  // After the default, which is that the pipeline opens at once: the last one counts.
  CHECK(ends_with(pipe,
                  {"--warmup-epochs", "0", "--warmup-epochs", "5", "--lr", "0.1", "--pipe-k=3"}));
  CHECK(r.options == "--warmup-epochs 5 --lr 0.1 --pipe-k=3");
  p.options.back() = "--pipe-k=2";
  CHECK(message_of<UserError>([&] { p.resume(r); }).starts_with("it holds results with options "));

  CHECK_NOTHROW(check_handed_on({"--lr", "0.1"}));
  CHECK(message_of<UserError>([] {
          check_handed_on({"--lr", "0.1", "--batch=4"});
        }) == "give --batch before the --: the comparison passes it to the program itself");
  CHECK(message_of<UserError>([] {
          check_handed_on({"--save", "x"});
        }) == "--save cannot be given after the --: the comparison sets it itself");

  CHECK(p.deterministic());
  p.device = DeviceKind::cuda;
  CHECK_FALSE(p.deterministic());
  p.options.push_back("--deterministic");
  CHECK(p.deterministic());
}

TEST_CASE("speedup: iterations that are not timed take the mean time") {
  Comparison p = plan();
  p.timed = 4;
  Results r = p.begin();
  Cell &d_sync = r.cells[1], &d_sync_t = r.cells[2], &pipe = r.cells[4];
  for (Cell* cell : {&d_sync, &d_sync_t, &pipe}) {
    cell->repeats_ms = {cell == &d_sync ? 300. : cell == &d_sync_t ? 77. : 200.};
    cell->curve = {{.iteration = 2}, {.iteration = 10}};
  }
  pipe.warmup = 5;
  r.extrapolate();
  CHECK(d_sync.curve[1].wall_s == doctest::Approx(3));
  CHECK(pipe.curve[0].wall_s == doctest::Approx(2 * 0.3));
  CHECK(pipe.curve[1].wall_s == doctest::Approx(5 * 0.3 + 5 * 0.2));
  d_sync.failure = "no";
  r.extrapolate();
  CHECK(pipe.curve[1].wall_s == doctest::Approx(10 * 0.2));
  CHECK(to_text(r).find("10 iterations each from seed 1, 4 of them timed") != std::string::npos);

  CHECK(message_of<UserError>([&] { plan().resume(r); }) ==
        "it holds results with --timed 4, not 10");
  pipe.curve[1].wall_s = 1;
  r.timed = r.iterations;  // all were timed: nothing to reckon
  r.extrapolate();
  CHECK(pipe.curve[1].wall_s == 1);
}

TEST_CASE("speedup: results are read as they were written") {
  Results r = plan().begin();
  finish(r.cells[0], {30, 10, 20});
  finish(r.cells[1], {4});
  r.cells[2].failure = "out of \"luck\"";
  r.target_accuracy = 0.75;
  r.environment.command = "speedup [\"a\",  \\";
  const TemporaryFolder folder;
  const std::string path = folder / "results.json";
  write_file(path, to_json(r));
  const Results read = read_results(path);
  CHECK(to_json(read) == to_json(r));
  CHECK(read.cells[0].iteration_ms() == 20);
  CHECK(read.cells[0].spread_ms() == 10);
  CHECK_FALSE(read.cells[1].spread_ms());
  CHECK(read.cells[0].model->network.beta == 1e-9);
  CHECK(read.cells[0].model->algo == "ps-sync");
  CHECK(read.cells[0].loads[2].switches == 3000);
  CHECK(read.cells[0].timeline.size() == 1);
  CHECK(read.environment.command == r.environment.command);
  CHECK(to_json(r).find(R"([1, false, true, "wait", 1.0, 2.0, 0])") != std::string::npos);
  CHECK(read.speedup(read.cells[1], "PS-Sync") == 5);
  CHECK_FALSE(read.speedup(read.cells[2], "PS-Sync"));
  CHECK(read.cells[0].seconds_to(0.75) == 1.0);
  CHECK_FALSE(read.cells[0].seconds_to(0.95));

  // Most files do not have this field.
  CHECK(to_json(r).find("batch_per_worker") == std::string::npos);
  CHECK(read.batch_per_worker == 0);
  r.batch_per_worker = 32;
  write_file(path, to_json(r));
  CHECK(read_results(path).batch_per_worker == 32);
  CHECK(r.samples(4) == 128);
  CHECK(to_text(r).find("batch 32 per worker,") != std::string::npos);
  r.batch_per_worker = 0;
  CHECK(r.samples(4) == static_cast<double>(r.batch));

  r.device = DeviceKind::cuda;
  r.precision = Precision::bf16;
  std::string json = to_json(r);
  write_bytes(path, json);
  CHECK(read_results(path).device == DeviceKind::cuda);
  CHECK(read_results(path).precision == Precision::bf16);
  json.replace(json.find("bf16"), 4, "fp8");
  write_bytes(path, json);
  CHECK(message_of<UserError>([&] { read_results(path); }) ==
        path + " is not a results.json of build/speedup: fp8 is none of fp32, tf32, bf16");

  r.cells[2].failure = "\xff is no text";
  CHECK(to_json(r).find(" is no text") != std::string::npos);

  write_bytes(path, "{\"format\": 2}");
  CHECK(message_of<UserError>([&] {
          read_results(path);
        }).starts_with(path + " is not a results.json of build/speedup"));
  const auto complaint = [&](const std::string& format) {
    write_bytes(path, "{\"format\": " + format + "}");
    const std::string message = message_of<UserError>([&] { read_results(path); });
    CHECK(message.size() < 500);
    return message;
  };
  constexpr std::size_t kDeep = 200'000;
  CHECK(complaint(std::string(kDeep, '[') + std::string(kDeep, ']'))
            .ends_with("its arrays and objects are nested more than 16 deep"));
  CHECK(complaint("[[2]]").ends_with("its format is an array, not 2"));
  CHECK(complaint('"' + std::string(kDeep, 'x') + '"').ends_with("xxx...\", not 2"));
}

TEST_CASE("speedup: an excerpt of a trace has two iterations near the mean, and no hidden span") {
  std::string events;
  const auto add = [&](const char* what, int rank, int thread, int iteration, double ms,
                       double duration_ms) {
    events += fmt::format(
        R"({}{{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"iteration":{}}}}})",
        events.empty() ? "" : ",", what, rank, thread, 1e3 * ms, 1e3 * duration_ms, iteration);
  };
  // Iterations 5 and 6 take 100 ms each, the others 200.
  const double begins[] = {0, 100, 300, 500, 700, 900, 1000, 1100, 1300};
  for (int t = 1; t <= 8; ++t)
    for (const int rank : {0, 1}) {
      const double begin = begins[t];
      add("forward", rank, 0, t, begin + 10 * rank, 60);
      for (int i = 0; i < 40; ++i) add("compress", rank, 1, t, begin + 60 + 0.1 * i, 0.05);
      add("communicate", rank, 1, t, begin + 60, 40);
    }
  const std::string trace = "{\"traceEvents\":[" + events + "]}";
  const auto spans = excerpt(trace, 8, 1, 110);

  // Rank 0 begins iteration 5 at 900 ms, and ends iteration 6 at 1060 ms; 1/500 of that is 0.32 ms.
  double compressed = 0;
  int compress = 0;
  for (const TimelineSpan& s : spans) {
    CHECK(s.begin >= 0);
    CHECK(s.end <= 160 + 1e-6);
    CHECK(s.server == (s.rank == 1));
    if (s.what != "compress" || s.rank > 0) continue;
    ++compress;
    compressed += s.end - s.begin;
  }
  CHECK(compress == 10);
  CHECK(compressed == doctest::Approx(40 * 0.05));
  const auto forward = std::ranges::find(spans, "forward", &TimelineSpan::what);
  REQUIRE(forward != spans.end());
  CHECK(forward->begin == doctest::Approx(0));
  CHECK(forward->end == doctest::Approx(60));
  CHECK(forward->iteration == 5);
  CHECK(excerpt(trace, 8, 1, 190)[0].iteration == 6);
}

TEST_CASE("speedup: in an excerpt, waits interrupt spans, and nested spans do not add up") {
  std::string events;
  const auto add = [&](const char* what, int thread, int iteration, double ms, double duration_ms) {
    events += fmt::format(
        R"({}{{"ph":"X","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"iteration":{}}}}})",
        events.empty() ? "" : ",", what, thread, 1e3 * ms, 1e3 * duration_ms, iteration);
  };
  for (int t = 1; t <= 8; ++t) {  // as of p3; inner spans are written before outer ones
    add("wait", 0, t, 100 * t + 10, 20);
    add("forward", 0, t, 100 * t, 50);
    add("backward", 0, t, 100 * t + 50, 50);
    add("communicate", 1, t, 100 * t, 30);
    add("wait", 1, t, 100 * t + 80, 15);
    add("communicate", 1, t, 100 * t, 100);
  }
  std::map<std::pair<std::string, bool>, double> ms;
  for (const TimelineSpan& s : excerpt("{\"traceEvents\":[" + events + "]}", 8, 1, 100)) {
    ms[{s.what, s.communicates}] += s.end - s.begin;
    CHECK(s.end <= 200 + 1e-6);
  }
  CHECK(ms[{"forward", false}] == doctest::Approx(2 * 30));
  CHECK(ms[{"wait", false}] == doctest::Approx(2 * 20));
  CHECK(ms[{"backward", false}] == doctest::Approx(2 * 50));
  CHECK(ms[{"communicate", true}] == doctest::Approx(2 * 85));
  CHECK(ms[{"wait", true}] == doctest::Approx(2 * 15));
}

TEST_CASE("speedup: finished cells are kept, failed ones and those of other plans are not") {
  Comparison p = plan();
  const Results r = interrupted();
  std::swap(p.links[0], p.links[1]);
  p.algorithms.pop_back();
  const Results again = p.resume(r);
  REQUIRE(again.cells.size() == 2 * 2 * 6);
  CHECK(again.cells[6].repeats_ms == std::vector<double>{1});
  CHECK(again.cells[1].repeats_ms == std::vector<double>{2});
  CHECK(std::ranges::count_if(again.cells, &Cell::done) == 2);
  CHECK(again.cells[7].failure.empty());

  p.iterations = 11;
  CHECK(message_of<UserError>([&] { p.resume(r); }) ==
        "it holds results with --iterations 10, not 11");
}

TEST_CASE(
    "speedup: finished cells of other workers, links and algorithms stay, each in its place") {
  Comparison p = plan();
  p.links = {"10gbe", "none"};
  p.workers = {4};
  p.algorithms = {*std::ranges::find(all_algorithms(), "D-Sync+Q", &Algorithm::name)};
  const Results other = p.resume(interrupted());
  REQUIRE(other.cells.size() == 2 + 2);
  CHECK(other.cells[0].link == "10gbe");
  CHECK(other.cells[1].repeats_ms == std::vector<double>{2});
  CHECK(other.cells[2].name == "D-Sync+Q");  // of link none too
  CHECK(other.cells[3].repeats_ms == std::vector<double>{1});
  REQUIRE(other.settings().size() == 3);
}

TEST_CASE("speedup: only a finished comparison may come from another machine") {
  const Comparison p = plan();
  Results r = interrupted();
  r.environment.processor = "abacus";
  CHECK(message_of<UserError>([&] {
          p.resume(r);
        }).starts_with("it holds results with the processor abacus, not "));
  Comparison all = p;
  all.workers = {4}, all.links = {"1gbe"}, all.algorithms = {all_algorithms()[0]};
  CHECK(all.resume(r).environment.processor == "abacus");
}

TEST_CASE("speedup: two repeats count equally, and one has no spread") {
  Cell cell;
  cell.repeats_ms = {10, 16};
  CHECK(cell.iteration_ms() == 13);
  CHECK(cell.spread_ms() == 3);
  cell.repeats_ms = {10};
  CHECK(cell.iteration_ms() == 10);
  CHECK_FALSE(cell.spread_ms());
}

TEST_CASE("speedup: an accuracy is reached at the first of three tests in a row, or at the last") {
  Cell cell;
  const auto curve = [&](std::vector<double> accuracies) {
    cell.curve.clear();
    for (const double a : accuracies) {
      const auto test = std::ssize(cell.curve) + 1;
      cell.curve.push_back({static_cast<double>(test), test, a});
    }
  };
  curve({0.5, 0.9, 0.7, 0.8, 0.9, 0.85, 0.6});
  CHECK(cell.seconds_to(0.5) == 1);
  CHECK(cell.seconds_to(0.8) == 4);    // 0.9 was luck
  CHECK_FALSE(cell.seconds_to(0.85));  // only two, and then not
  CHECK(cell.reached() == 0.8);
  curve({0.5, 0.9, 0.9});
  CHECK(cell.seconds_to(0.9) == 2);  // all that were left
  curve({0.5, 0.9, 0.4, 0.9});
  CHECK(cell.seconds_to(0.9) == 4);
  CHECK(cell.reached() == 0.9);
  curve({});
  CHECK_FALSE(cell.seconds_to(0.1));
  CHECK(cell.reached() == 0);
}

TEST_CASE("speedup: over D-Sync, and over D-Sync with the same compression") {
  Results r = plan().begin();
  for (std::size_t i = 0; i < 7; ++i) finish(r.cells[i], {70. - 10 * static_cast<double>(i)});
  const Cell &ps = r.cells[0], &d_sync_t = r.cells[2], &pipe_t = r.cells[5];
  CHECK(r.speedup(pipe_t, "D-Sync") == 60. / 20);
  CHECK(r.speedup_at_same_bits(pipe_t) == 50. / 20);
  CHECK(r.speedup_at_same_bits(d_sync_t) == 1);
  CHECK(r.speedup_at_same_bits(ps) == 60. / 70);
  r.cells[2].failure = "no";
  CHECK_FALSE(r.speedup_at_same_bits(pipe_t));
}

TEST_CASE("speedup: a disturbed measurement is detected") {
  using Loads = std::vector<Load>;
  CHECK(disturbance({}) == "");
  CHECK(disturbance(Loads{{.others = 0.04, .stolen = 0.009, .switches = 5000}}) == "");
  CHECK(disturbance(Loads{{.others = 0.01}, {.others = 0.31}}) ==
        "other programs took 31% of the cores' time");
  CHECK(disturbance(Loads{{.stolen = 0.02}}) == "the hypervisor took 2% of the cores' time");
  CHECK(disturbance(Loads{{.switches = 3000}, {.switches = 5000}}) == "");
  CHECK(disturbance(Loads{{.switches = 10}, {.switches = 100}}) == "");
  CHECK(disturbance(Loads{{.switches = 6100}, {.switches = 3000}}) ==
        "6100 involuntary context switches per second, but 3000 in another repeat");
}

TEST_CASE("speedup: the meter counts a running program that was not waited for") {
  const LoadMeter meter;
  const Process busy({"sh", "-c", "while :; do :; done"});
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Load> load;
  do load = meter.since();
  while (load && load->others == 0 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  REQUIRE(load);
  CHECK(load->others > 0);
  CHECK(load->stolen >= 0);
  CHECK(load->switches >= 0);
}

TEST_CASE("speedup: disturbed cells are timed again on request; test results stay") {
  Comparison p = plan();
  Results r = interrupted();
  r.cells[0].loads[0].others = 0.5;
  CHECK(p.resume(r).cells[0].done());
  p.again_disturbed = true;
  const Results again = p.resume(r);
  REQUIRE(again.cells.size() == r.cells.size());
  CHECK_FALSE(again.cells[0].done());
  CHECK(again.cells[0].curve.size() == 2);
  CHECK(again.cells[0].weights_hash == "abc");
  CHECK(again.cells[0].loads.empty());
  CHECK(again.cells[8].done());
}

TEST_CASE("speedup: tables show the measurements, and why a cell failed") {
  Results r = plan().begin();
  finish(r.cells[0], {40});
  finish(r.cells[1], {10, 14, 12});
  r.cells[1].loads[1].others = 0.3;
  r.cells[2].failure = "out of \"luck\"";
  r.target_accuracy = 0.5;
  const std::string text = to_text(r), markdown = to_markdown(r), csv = to_csv(r);
  for (const std::string& table : {text, markdown}) {
    CAPTURE(table);
    for (const char* part :
         {"12.00", "±2.00", "8.00", "3.33×", "90.00%", "s to 50%", "failed: out of \"luck\"",
          "not run yet", "2 workers, link none", "4.0-5.4×",
          "* D-Sync, 4 workers, link 1gbe, was disturbed: other programs took 30%"})
      CHECK(table.find(part) != std::string::npos);
  }
  CHECK(
      markdown.find("| PS-Sync | 40.00 | – | 8.00 | 0.5 | 90.00% | 1.00× | 0.30× | 0.30× | 1.00 | "
                    "2.00 | 3.00 | 4.00 | 5.00 | 9.00 | 7.00 |") != std::string::npos);
  CHECK(markdown.find("| D-Sync\\* | 12.00 | ±2.00 |") != std::string::npos);
  CHECK(text.find("D-Sync* ") != std::string::npos);
  CHECK(std::ranges::count(csv, '\n') == 1 + 28);
  CHECK(csv.find("4,1gbe,D-Sync,12,2,8,0.5,0.9,3.33") != std::string::npos);
  CHECK(csv.find("\"other programs took 30% of the cores' time\"") != std::string::npos);
  CHECK(csv.find("\"out of \"\"luck\"\"\"") != std::string::npos);
  // As many fields in every line.
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) CHECK(std::ranges::count(line, ',') == 19);

  r.cells[1].predicted_ms.reset();  // there is no model for it
  CHECK(to_markdown(r).find("| 5.00 | – | 7.00 |") != std::string::npos);
}

TEST_CASE("speedup: a program's output is returned, and its failure is thrown with its message") {
  CHECK(tandem::run_program({"sh", "-c", "echo this; echo that >&2"}) == "this\n");
  const auto failure = [](const char* script) {
    return message_of<SystemError>([&] { tandem::run_program({"sh", "-c", script}); });
  };
  CHECK(failure("echo first >&2; echo 'sh: no luck' >&2; exit 3") == "no luck");
  CHECK(failure("echo 'sh: no luck' >&2; echo; echo '-----' >&2; exit 3") == "no luck");
  CHECK(failure("exit 3") == "sh ended with status 3");
  CHECK(failure("kill -9 $$") == "sh was killed by signal 9");
  CHECK(message_of<SystemError>([] { tandem::run_program({"/no/such/program"}); }) ==
        "cannot start /no/such/program");
}

TEST_CASE("speedup: folders of killed comparisons are removed, others not") {
  const TemporaryFolder folder;
  const char* set = std::getenv("TMPDIR");
  const std::string before = set ? set : "";
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    const Scratch killed;
    write_bytes(killed / "trace.json", "large");
    std::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  std::filesystem::create_directory(folder / "tandem-speedup-backup");
  {
    const Scratch one;
    write_bytes(one / "summary.json", "kept");
    const Scratch two;
    CHECK(read_bytes(one / "summary.json") == "kept");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 3);
  }
  CHECK(std::filesystem::is_directory(folder / "tandem-speedup-backup"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  before.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
}
