// simulate as a user starts it.
#include <doctest/doctest.h>

#include <filesystem>

#include "base/virtual_time.h"
#include "tests/data/idx_files.h"
#include "tests/json.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Words = std::vector<std::string>;

std::string refusal(const Words& arguments) {
  const ProgramResult r = run_program("simulate", arguments);
  CHECK(r.status == 2);
  CHECK(r.err.starts_with("simulate: "));
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  return r.err.substr(10, r.err.size() - 11);
}

Words resnet50(const Words& more) {
  Words words = {"--net", "resnet50", "--gpu", "k80", "--workers", "4"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("simulate: from a net and a GPU to tables, figures and a report" *
          doctest::skip(!has_virtual_time())) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const Words command = {"--net",     "alexnet", "--gpu",  "k80",          "--batch", "64",
                         "--workers", "2,3,4",   "--algo", "d-sync,merge", "--out",   out};
  const ProgramResult first = run_program("simulate", command);
  CHECK(first.status == 0);
  CHECK(first.err.empty());
  CHECK(first.out.find("[6/6] Merge, 4 workers, link 10gbe:") != std::string::npos);
  CHECK(first.out.find("the last of which repeat") != std::string::npos);
  for (const char* file : {"results.json", "results.csv", "table.md", "report.html", "workers.svg",
                           "workers.png", "breakdown.svg"})
    CHECK(std::filesystem::file_size(out + "/" + file) > 0);
  CHECK(read_bytes(out + "/report.html").find("What if?") != std::string::npos);
  // Nothing is simulated twice, and the same is written again.
  const std::string json = read_bytes(out + "/results.json");
  const ProgramResult again = run_program("simulate", command);
  CHECK(again.status == 0);
  CHECK(again.out.find("[") == std::string::npos);
  CHECK(read_bytes(out + "/results.json") == json);
  Words other = command;
  other[5] = "32";
  CHECK(refusal(other).find("choose another folder, or use --again") != std::string::npos);
}

TEST_CASE("simulate: what a run measured predicts that run" * doctest::skip(!has_virtual_time())) {
  const TemporaryFolder folder;
  const std::string profile = folder / "profile", trace = folder / "trace";
  const ProgramResult run = run_program(
      "mnist_mlp", {"--data", few_digits(), "--workers", "2", "--link", "100mbit", "--algo",
                    "d-sync", "--iterations", "20", "--quiet", "--profile", profile});
  CHECK(run.status == 0);
  const ProgramResult r =
      run_program("simulate", {"--profile", profile, "--workers", "2", "--link", "100mbit",
                               "--algo", "d-sync", "--explain", "--trace", trace});
  CHECK(r.status == 0);
  CHECK(r.out.find("iteration 29 of worker 0") != std::string::npos);
  // The gradient crosses the link twice in halves: at least 2 * 2.59 MB / 2 / 12.5 MB/s.
  const auto at = r.out.find("D-Sync  ");
  REQUIRE(at != std::string::npos);
  const double ms = std::stod(r.out.substr(at + 8));
  CHECK(ms > 207);
  CHECK(ms < 2000);
  CHECK_FALSE(json_of(read_bytes(trace)).at("traceEvents").empty());
}

TEST_CASE("simulate: what is wrong is refused with one sentence" *
          doctest::skip(!has_virtual_time())) {
  const TemporaryFolder folder;
  CHECK(refusal({}) == "give either --profile or --net with --gpu");
  CHECK(refusal({"--net", "resnet50"}) == "--net and --gpu belong together");
  CHECK(refusal({"--net", "resnet5", "--gpu", "k80"}).find("resnet50") != std::string::npos);
  CHECK(refusal({"--net", "resnet50", "--gpu", "abacus"}).find("k80") != std::string::npos);
  CHECK(refusal({"--profile", "/no/such/file"}).find("/no/such/file") != std::string::npos);
  write_bytes(folder / "empty", "");
  CHECK(refusal({"--profile", folder / "empty"}).ends_with("empty: the file is empty"));
  CHECK(refusal({"--profile", folder / "empty", "--batch", "3"}) ==
        "--batch has no effect with --profile");
  CHECK(refusal(resnet50({"--algo", "d-synk"})).starts_with("--algo: must be"));
  CHECK(refusal(resnet50({"--algo", "d-sync,d-sync"})) == "--algo: a value is there twice");
  CHECK(refusal(resnet50({"--slice", "5000"})) ==
        "--slice has no effect with --algo d-sync,merge,pipe-sgd");
  CHECK(refusal(resnet50({"--slow-rank", "3"})) ==
        "--slow-rank 3: it must be RANK=VALUE, such as 3=0.5");
  CHECK(refusal(resnet50({"--slow-rank", "3=0"})).starts_with("--slow-rank: must be a number"));
  CHECK(refusal(resnet50({"--slow-rank", "4=0.5"})) == "--slow-rank 4: there are 4 ranks");
  CHECK(refusal(resnet50({"--slow-link", "1=quick"})).find("quick") != std::string::npos);
  CHECK(refusal(resnet50({"--inner-link", "100gbe"})) ==
        "--inner-link has no effect without --ranks-per-node or --servers-share-nodes");
  CHECK(refusal(resnet50({"--servers-share-nodes"})) ==
        "--servers-share-nodes has no effect with --algo d-sync,merge,pipe-sgd");
  CHECK(refusal(resnet50({"--jitter", "lots"})).starts_with("--jitter: must be profile"));
  CHECK(refusal(resnet50({"--mode", "fast"})).find("--mode") != std::string::npos);
  CHECK(refusal(resnet50({"--explain"})) ==
        "--trace and --explain show one simulation, but this command has 3");
  CHECK(refusal(resnet50({"--algo", "wfbp", "--workers", "512", "--mode", "folded"})) ==
        "wfbp: one rank cannot stand for all, because not all have an equal part in every sum");
  CHECK(refusal(resnet50({"--algo", "ps-sync", "--mode", "folded"})) ==
        "ps-sync: one rank cannot stand for all, because servers are not workers");
  CHECK(refusal(resnet50({"--algo", "gosgd", "--mode", "folded"})) ==
        "gosgd: one rank cannot stand for all, because they do not wait for each other");
  CHECK(refusal(resnet50({"--algo", "gosgd", "--gossip-p", "0"})) ==
        "--gossip-p: must be a number from 0.000001 to 1, not 0; --help lists the options");
  CHECK(refusal(resnet50({"--algo", "gosgd", "--workers", "1"})) ==
        "--algo gosgd needs at least 2 workers, not 1");
  CHECK(refusal(resnet50({"--algo", "ad-psgd", "--compress", "quant8"})) ==
        "--compress quant8 is for gradients; --algo ad-psgd sends weights");
  CHECK(refusal(resnet50({"--workers", "65536", "--mode", "message"})).find("GB of memory") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_CASE("simulate: a build without fibers says so" * doctest::skip(has_virtual_time())) {
  CHECK(run_program("simulate", resnet50({})).status == 2);
}
