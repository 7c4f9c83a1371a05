// Results: what follows from their cells, and results.json.
#include "speedup/results.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "speedup/results_file.h"
#include "speedup/table.h"
#include "tests/speedup/comparison.h"
#include "tests/support.h"
#include "train/files.h"

using namespace tandem;
using namespace tandem::test;

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
        path +
            " is not a results.json of build/speedup or build/simulate: fp8 is none of fp32, tf32, "
            "bf16");

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
