// --plan: a plan is measured once and used again; files that are no plan for the run are refused.
#include "train/plan_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "tests/json.h"
#include "tests/support.h"
#include "tests/train/digits.h"
#include "train/check_options.h"

using namespace tandem;
using namespace tandem::test;

namespace {

TrainOptions options(const std::string& algo, const std::string& plan, std::int64_t iterations) {
  TrainOptions o;
  o.algo = algo;
  o.plan = plan;
  o.workers = 3;
  o.threads = 1;
  o.batch = 30;
  o.iterations = iterations;
  o.quiet = true;
  return check_options(o);
}

// Of the MLP.
MergePlan a_plan() {
  return {.layers = {{0.5e-3, 4 * 4976.0}, {0.8e-3, 4 * 249856.0}, {1.1e-3, 4 * 393216.0}},
          .names = {"4.weight", "2.weight", "0.weight"},
          .cost = {.a = 2e-3, .b = 8e-8, .all = 0.2, .all_ready = 0.9e-3},
          .update_s = 3e-4,
          .groups = {1, 2}};
}

}  // namespace

TEST_CASE("plan file: what is written is read back") {
  const TemporaryFolder folder;
  const TrainOptions o = options("merge", folder / "plan", 9);
  CHECK_FALSE(reads_plan(o));
  MergePlan plan = a_plan();
  plan.cost.long_bytes = 1 << 20, plan.cost.long_b = 6e-8;
  write_bytes(o.plan, to_json(plan, o));
  CHECK(reads_plan(o));
  const MergePlan read = read_plan(o);
  CHECK(read.file == o.plan);
  CHECK(read.names == plan.names);
  CHECK(read.groups == plan.groups);
  REQUIRE(read.layers.size() == plan.layers.size());
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    CHECK(read.layers[i].bytes == plan.layers[i].bytes);
    CHECK(read.layers[i].ready == doctest::Approx(plan.layers[i].ready));
  }
  for (const Groups& groups : {Groups{3}, Groups{1, 2}, Groups{1, 1, 1}})
    CHECK(read.predicted_s(groups) == doctest::Approx(plan.predicted_s(groups)));
}

TEST_CASE("plan file: a run writes its plan, and later runs use it from the second iteration on") {
  const TemporaryFolder folder;
  for (const char* algo : {"mg-wfbp", "merge"}) {
    CAPTURE(algo);
    const TrainOptions o = options(algo, folder / algo, 12);
    const std::string hash = train(mlp_on_digits(), options("d-sync", "", 12)).weights_hash;
    const Summary measured = train(mlp_on_digits(), o);
    CHECK(measured.plan.first_iteration == 10);
    CHECK(measured.weights_hash == hash);
    const MergePlan written = read_plan(o);
    CHECK(written.groups == measured.plan.merge->groups);
    CHECK(written.names == a_plan().names);

    // Another plan than the measured one, so that its use can be seen.
    MergePlan other = written;
    other.groups = written.groups == Groups{2, 1} ? Groups{1, 2} : Groups{2, 1};
    const std::string bytes = to_json(other, o);
    write_bytes(o.plan, bytes);
    const Summary used = train(mlp_on_digits(), o);
    CHECK(used.plan.first_iteration == 2);
    CHECK(used.plan.merge->groups == other.groups);
    CHECK(used.plan.elements.size() == 2);
    CHECK(used.plan.text.ends_with(fmt::format(", as {} says", o.plan)));
    CHECK(*used.predicted_s() == doctest::Approx(other.predicted_s(other.groups)).epsilon(1e-4));
    CHECK(used.weights_hash == hash);
    CHECK(read_bytes(o.plan) == bytes);  // a plan that was read is not written
  }
}

TEST_CASE("plan file: a plan of another run, net or world is refused, and so is what is no plan") {
  const TemporaryFolder folder;
  const TrainOptions o = options("merge", folder / "plan", 3);
  const std::string good = to_json(a_plan(), o);
  write_bytes(o.plan, good);
  CHECK(train(mlp_on_digits(), o).plan.merge->groups == Groups{1, 2});

  const auto refusal = [&](const std::string& text, const TrainOptions& how) {
    write_bytes(o.plan, text);
    return message_of<UserError>([&] { train(mlp_on_digits(), how); });
  };
  const auto reason = [&](const std::string& text) {
    const std::string message = refusal(text, o);
    CAPTURE(message);
    const std::string begin = fmt::format("--plan: the plan in {} cannot be used: ", o.plan);
    CHECK(message.starts_with(begin));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.size() < 400);
    return message.substr(std::min(begin.size(), message.size()));
  };
  // The good plan, with one value changed.
  const auto with = [&](const char* at, const nlohmann::json& value) {
    auto json = json_of(good);
    json[nlohmann::json::json_pointer(at)] = value;
    return reason(json.dump());
  };
  const auto without = [&](const char* at) {
    return reason(json_of(good).patch({{{"op", "remove"}, {"path", at}}}).dump());
  };

  TrainOptions other = o;
  other.workers = 2;
  CHECK(refusal(good, other).ends_with(" cannot be used: it is for --workers 3, not 2"));
  other = o;
  other.compress = "quant8";
  CHECK(refusal(good, other).ends_with(" it is for --compress none, not quant8"));
  CHECK(with("/made_for/--link", "1gbe") == "it is for --link 1gbe, not none");
  CHECK(with("/made_for/--algo", "mg-wfbp") == "it is for --algo mg-wfbp, not merge");
  CHECK(with("/made_for/--workers", 3) == "it is for --workers 3, not 3");  // a number, not text
  CHECK(without("/made_for/--batch") == "it lacks \"--batch\"");

  CHECK(reason("").starts_with("it is not JSON: "));
  CHECK(reason(good.substr(0, good.size() / 2)).starts_with("it is not JSON: "));
  CHECK(reason(std::string(1'000'000, '[')).find("nested more than") != std::string::npos);
  CHECK(reason(std::string(20'000'000, ' ')).find("more than 10000000 bytes") != std::string::npos);
  CHECK(reason("[]") == "it lacks \"made_for\"");
  CHECK(reason("7") == "it lacks \"made_for\"");

  CHECK(without("/sum/a_ms") == "it lacks \"a_ms\"");
  CHECK(with("/update_ms", -1) == "\"update_ms\" must be a number of milliseconds, not -1");
  CHECK(with("/sum/b_ms_per_mb", "fast").find("\"b_ms_per_mb\"") != std::string::npos);
  CHECK(with("/sum/a_ms", 1e300).find("\"a_ms\"") != std::string::npos);
  CHECK(with("/messages", nlohmann::json::array()) ==
        "\"messages\" must be a list that is not empty");
  CHECK(with("/messages/0/layers", nlohmann::json::array()) ==
        "\"layers\" must be a list that is not empty");
  CHECK(with("/messages/1", 0) == "it lacks \"layers\"");
  for (const nlohmann::json& elements :
       {nlohmann::json(0), nlohmann::json(-4976), nlohmann::json(4976.5), nlohmann::json(1e30),
        nlohmann::json("many"), nlohmann::json(~0ULL)})
    CHECK(with("/messages/0/layers/0/elements", elements)
              .starts_with("\"elements\" must be a number of elements, not "));
  CHECK(with("/messages/0/layers/0/name", 7) == "\"name\" must be text, not 7");

  // A plan, but not of this net. The net is known when it is made, and its layers after backward.
  MergePlan plan = a_plan();
  plan.layers[0].bytes += 4;
  CHECK(refusal(to_json(plan, o), o) ==
        fmt::format("--plan: {} is for a net whose gradient has 648049 elements; this one has "
                    "648048",
                    o.plan));
  plan.layers[1].bytes -= 4;
  CHECK(refusal(to_json(plan, o), o) ==
        fmt::format("--plan: {} is for another net: layer 1 in the order of backward should have "
                    "4976 elements and end with 4.weight",
                    o.plan));
  plan = a_plan();
  std::swap(plan.names[0], plan.names[1]);
  CHECK(refusal(to_json(plan, o), o).find(" is for another net: layer 1 ") != std::string::npos);
  plan = a_plan();
  plan.layers[1].bytes += plan.layers[2].bytes;
  plan.layers.pop_back();
  plan.names.pop_back();
  plan.groups = {1, 1};
  CHECK(refusal(to_json(plan, o), o) ==
        fmt::format("--plan: {} is for a net that backward finishes in 2 layers; this one has 3",
                    o.plan));
}

TEST_CASE("plan file: it is refused where no plan is made, and where another file is written") {
  const TemporaryFolder folder;
  const std::string file = folder / "plan";
  const auto refusal = [&](const TrainOptions& o) {
    return message_of<UserError>([&] { train(mlp_on_digits(), o); });
  };
  TrainOptions o = options("merge", file, 9);
  for (const char* algo : {"d-sync", "wfbp", "buckets", "p3", "pipe-sgd"}) {
    o.algo = algo;
    CHECK(refusal(o) == fmt::format("--plan has no effect with --algo {}", algo));
  }
  CHECK(refusal(options("merge", file, 5)) ==
        "--plan: a plan is measured in the first 9 iterations; this run has 5");
  CHECK(refusal(options("merge", folder.path(), 9)) ==
        fmt::format("--plan: {} is a folder", folder.path().string()));
  CHECK_FALSE(std::filesystem::exists(file));

  o = options("merge", file, 9);
  o.trace = file;
  CHECK(refusal(o) == fmt::format("--trace and --plan would write to the same file {}", file));
  write_bytes(file, to_json(a_plan(), o));
  CHECK(refusal(o) ==
        fmt::format("--trace would overwrite {}, which --plan reads; choose another file", file));
  o.trace.clear();
  o.save = file;
  CHECK(refusal(o) ==
        fmt::format("--save would overwrite {}, which --plan reads; choose another file", file));
}

TEST_CASE("plan file: the trace shows the plan at the first iteration that follows it") {
  const TemporaryFolder folder;
  TrainOptions o = options("merge", folder / "plan", 4);
  write_bytes(o.plan, to_json(a_plan(), o));
  o.trace = folder / "trace";
  o.summary = folder / "summary";
  const Summary s = train(mlp_on_digits(), o);
  nlohmann::json plan;
  double begin = 0;  // of iteration 2 on worker 0
  const auto trace = json_of(read_bytes(o.trace));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "i") {
      CHECK(plan.is_null());
      plan = event;
    } else if (event["ph"] == "X" && event["pid"] == 0 && event["tid"] == 0 &&
               event["args"]["iteration"] == 2 && begin == 0) {
      begin = event["ts"];
    }
  }
  REQUIRE(!plan.is_null());
  CHECK(plan["name"] == "plan: " + s.plan.text);
  CHECK(plan["pid"] == 0);
  CHECK(plan["args"]["messages"] == 2);
  CHECK(plan["args"]["bytes"] == std::vector<int>{4 * 4976, 4 * (249856 + 393216)});
  CHECK(plan["args"]["predicted_ms"] == doctest::Approx(1e3 * *s.plan.predicted_s));
  CHECK(plan["args"]["first_iteration"] == 2);
  CHECK(plan["ts"].get<double>() <= begin);
  CHECK(json_of(read_bytes(o.summary))["plan"] == plan["args"]);
}
