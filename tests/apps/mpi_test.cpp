// Programs under mpiexec: their results, and what they refuse.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "tests/apps/mpiexec.h"
#include "tests/data/idx_files.h"
#include "tests/json.h"
#include "tests/support.h"
#include "train/profile_file.h"

using namespace tandem;
using namespace tandem::test;

namespace {

// One rank after the other, each with arguments of its own.
ProgramResult run_mpi(const std::vector<std::pair<std::string, std::vector<std::string>>>& ranks) {
  Words words;
  for (const auto& [program, arguments] : ranks) {
    const Words one = under_mpiexec(1, program, arguments);
    const bool first = words.empty();
    if (!first) words.push_back(":");
    // The launcher and its own options are there once.
    words.insert(words.end(), first ? one.begin() : std::ranges::find(one, "-n"), one.end());
  }
  return without_notices(Process(words).wait());
}

ProgramResult run_mpi(int ranks, const std::string& program, const Words& arguments) {
  return without_notices(Process(under_mpiexec(ranks, program, arguments)).wait());
}

std::string hash_in(const ProgramResult& r) {
  CAPTURE(r.err);
  REQUIRE(r.status == 0);
  return json_of(r.out)["weights_hash"];
}

}  // namespace

TEST_CASE("mpi: the ring's sums are correct for all sizes" * doctest::skip(!kHasMpi)) {
  // Ranks that are threads test all numbers of ranks with all compressors.
  const char* compressors[] = {"none", "trunc16", "quant8"};
  for (const int ranks : {1, 2, 3, 4, 5}) {
    const ProgramResult r =
        run_mpi(ranks, "allreduce_bench",
                {"--bytes", "0", "4", "28", "8188", "8192", "8196", "800012", "--iterations", "1",
                 "--compress", compressors[ranks % 3], "--json"});
    CAPTURE(r.err);
    CHECK(r.status == 0);  // it checks every sum
    CHECK(std::count(r.out.begin(), r.out.end(), '\n') == 7);
    CHECK(r.out.find("\"ranks\":" + std::to_string(ranks)) != std::string::npos);
    const ProgramResult bucket =
        run_mpi(ranks, "allreduce_bench",
                {"--bytes", "8192", "81920", "--first-block", "7", "--link", "100gbit/1us", "--fit",
                 "--iterations", "1", "--compress", compressors[(ranks + 1) % 3]});
    CAPTURE(bucket.err);
    CHECK(bucket.status == 0);
    CHECK(bucket.out.find("a + bM: ") != std::string::npos);
  }
}

TEST_CASE("mpi: processes give the same bits as threads" * doctest::skip(!kHasMpi)) {
  const Words common = {"--data",    few_digits(), "--iterations", "4",         "--batch",    "10",
                        "--threads", "1",          "--quiet",      "--summary", "/dev/stdout"};
  const auto threads = [&](const Words& words) {
    return hash_in(run_program("mnist_mlp", common + Words{"--workers", "3"} + words));
  };
  const auto processes = [&](int ranks, const Words& words) {
    return hash_in(run_mpi(ranks, "mnist_mlp", common + words));
  };
  for (const char* compress : {"none", "trunc16"}) {
    const Words how = {"--compress", compress};
    CHECK(processes(3, how) == threads(how + Words{"--algo", "d-sync"}));
  }
  const Words how = {"--compress", "quant8"};
  const std::string d_sync = threads(how + Words{"--algo", "d-sync"});
  CHECK(processes(3, how) == d_sync);  // the ranks are the workers
  CHECK(processes(5, how + Words{"--algo", "ps-sync", "--servers", "2"}) == d_sync);
  CHECK(processes(3, how + Words{"--algo", "pipe-sgd", "--pipe-k", "1"}) == d_sync);
  const std::string pipe = threads(how + Words{"--algo", "pipe-sgd"});
  CHECK(pipe != d_sync);
  CHECK(processes(3, how + Words{"--algo", "pipe-sgd", "--link", "10gbit/20us"}) == pipe);
  const Words local = how + Words{"--algo", "local-sgd", "--period", "3", "--test-every", "2"};
  CHECK(processes(3, local) == threads(local));

  // All processes are on this machine, so they share a node.
  const Words nodes = how + Words{"--algo", "ps-sync", "--aggregate", "nodes-first"};
  const std::string one_node = threads(nodes + Words{"--ranks-per-node", "3"});
  CHECK(one_node != d_sync);
  CHECK(processes(4, nodes) == one_node);
  const Words pairs = nodes + Words{"--ranks-per-node", "2"};
  const std::string two_nodes = threads(pairs);
  CHECK(processes(4, pairs) == two_nodes);
  CHECK(two_nodes != one_node);
  CHECK(processes(4, nodes + Words{"--ranks-per-node", "1"}) == d_sync);
}

TEST_CASE("mpi: rank 0 writes a profile of all ranks" * doctest::skip(!kHasMpi)) {
  const TemporaryFolder folder;
  const Words common = {"--data",    few_digits(), "--iterations", "12",     "--batch", "10",
                        "--threads", "1",          "--quiet",      "--algo", "ps-sync"};
  const std::string file = folder / "profile";
  const Words with = common + Words{"--profile", file};
  const ProgramResult all = run_mpi(4, "mnist_mlp", with);
  CAPTURE(all.err);
  CHECK(all.status == 0);
  const Profile p = read_profile(file);
  CHECK(p.tensors.size() == 6);
  CHECK(p.spread.size() == 3 * 6);  // three workers, and half of the iterations
  CHECK(p.host.at("none").update > 0);

  // The others need not have the option.
  CHECK(run_mpi({{"mnist_mlp", with}, {"mnist_mlp", common}, {"mnist_mlp", common}}).status == 0);
  CHECK(read_profile(file).spread.size() == 6);
}

TEST_CASE("mpi: ranks that disagree do not train" * doctest::skip(!kHasMpi)) {
  const Words common = {"--data", few_digits(), "--iterations",    "4", "--threads",
                        "1",      "--quiet",    "--stall-timeout", "20"};
  // What is said when the last of three ranks has other options than the first two.
  const auto refusal = [&](const Words& first, const Words& last,
                           const std::string& program = "mnist_mlp") {
    const ProgramResult r = run_mpi(
        {{"mnist_mlp", common + first}, {"mnist_mlp", common + first}, {program, common + last}});
    CAPTURE(r.err);
    CHECK(r.status == 2);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') >= 1);
    const std::size_t end = r.err.find('\n');
    CHECK(r.err.find(": rank ", end) == std::string::npos);
    return r.err.substr(0, end);
  };
  const auto differs = [](const std::string& option, const char* last, const char* first) {
    return "mnist_mlp: rank 2 has " + option + " " + last + ", but rank 0 has " + first +
           "; all ranks need the same options";
  };
  CHECK(refusal({"--lr", "0.05"}, {"--lr", "0.1"}) == differs("--lr", "0.1", "0.05"));
  CHECK(refusal({"--link", "none"}, {"--link", "1gbe"}) == differs("--link", "1gbe", "none"));
  CHECK(refusal({"--ranks-per-node", "2"}, {}) == differs("--ranks-per-node", "none", "2"));
  CHECK(refusal({"--compress", "none"}, {"--compress", "quant8"}) ==
        differs("--compress", "quant8", "none"));
  CHECK(refusal({}, {"--algo", "pipe-sgd"}) == differs("--algo", "pipe-sgd", "d-sync"));
  CHECK(refusal({}, {"--nesterov"}) == differs("--nesterov", "on", "off"));
  CHECK(refusal({"--algo", "ps-sync", "--servers", "2"}, {"--algo", "ps-sync", "--servers", "1"}) ==
        differs("--servers", "1", "2"));
  CHECK(refusal({}, {"--dataset", "cifar10"}, "cifar_cnn") ==
        differs("the program", "cifar_cnn", "mnist_mlp"));
  // What one rank refuses, or does not come to, ends the others, too.
  CHECK(refusal({}, {"--lr", "-1"}).starts_with("mnist_mlp: rank 2: --lr: must be "));
  CHECK(refusal({"--lr", "-1"}, {}).starts_with("mnist_mlp: --lr: must be "));
  // Only threads share an emulated NIC.
  const Words shared = {"--link", "1gbe", "--ranks-per-node", "2"};
  CHECK(refusal(shared, shared) ==
        "mnist_mlp: --ranks-per-node 2 does not work with --link under mpiexec: processes cannot "
        "share an emulated network card");
  CHECK(refusal({}, {"--help"}) ==
        "mnist_mlp: rank 2 and rank 0 were not started with the same program and options");
}

TEST_CASE("mpi: ranks with different weights or data do not train" * doctest::skip(!kHasMpi)) {
  const TemporaryFolder folder;
  const auto run = [&](const Words& first, const Words& last) {
    const Words common = {"--iterations", "2", "--threads", "1", "--quiet"};
    return run_mpi({{"mnist_mlp", common + first}, {"mnist_mlp", common + last}});
  };
  for (const char* name : {"a", "b", "c"}) std::filesystem::create_directory(folder / name);
  write_mnist(folder / "a", 200, 10);
  write_mnist(folder / "b", 200, 10);
  write_mnist(folder / "c", 100, 10);
  // The same data may lie in different places, and files may have different names.
  const ProgramResult same =
      run({"--data", folder / "a", "--save", folder / "weights"}, {"--data", folder / "b"});
  CAPTURE(same.err);
  REQUIRE(same.status == 0);
  std::filesystem::copy(folder / "weights", folder / "copy");
  CHECK(run({"--data", folder / "a", "--load", folder / "weights"},
            {"--data", folder / "b", "--load", folder / "copy"})
            .status == 0);

  const ProgramResult data = run({"--data", folder / "a"}, {"--data", folder / "c"});
  CHECK(data.status == 2);
  CHECK(data.err.starts_with(
      "mnist_mlp: rank 1 has different data from rank 0: the number of training images is 100, not "
      "200; all ranks need the same data\n"));
  // As many images, but one label is another one.
  std::string labels = read_bytes(folder / "b" / "train-labels-idx1-ubyte");
  labels.back() = static_cast<char>((labels.back() + 1) % 10);
  write_bytes(folder / "b" / "train-labels-idx1-ubyte", labels);
  const ProgramResult label = run({"--data", folder / "a"}, {"--data", folder / "b"});
  CHECK(label.status == 2);
  CHECK(label.err.find("the fingerprint of training images is ") != std::string::npos);

  const ProgramResult weights =
      run({"--data", folder / "a", "--load", folder / "weights"}, {"--data", folder / "a"});
  CHECK(weights.status == 2);
  CHECK(weights.err.starts_with(
      "mnist_mlp: the weights of rank 1 differ from those of rank 0 before training, first in "
      "0.weight"));
}

TEST_CASE("mpi: usage errors are reported once, with status 2" * doctest::skip(!kHasMpi)) {
  const auto refusal = [](int ranks, const Words& words) {
    const ProgramResult r = run_mpi(ranks, "mnist_mlp", words);
    CHECK(r.status == 2);
    const std::size_t first = r.err.find("mnist_mlp: ");
    REQUIRE(first != std::string::npos);
    CHECK(r.err.find("mnist_mlp: ", first + 1) == std::string::npos);
    return r.err.substr(first, r.err.find('\n', first) - first);
  };
  CHECK(refusal(3, {"--batch", "0"}).find("--batch") != std::string::npos);
  CHECK(refusal(3, {"--workers", "2"}).find("does not match the 3 processes") != std::string::npos);
  CHECK(refusal(1, {"--algo", "ps-sync"}).find("leaves no process for a worker") !=
        std::string::npos);
  CHECK(refusal(3, {"--data", "/nowhere"}).find("/nowhere does not exist") != std::string::npos);
  CHECK(refusal(3, {"--data", few_digits(), "--save", "/no/such/folder/file"}).find("--save") !=
        std::string::npos);  // a mistake that only one rank sees
  CHECK(refusal(2, {"--data", few_digits(), "--load", "/nowhere"}).find("/nowhere") !=
        std::string::npos);
}

TEST_CASE("mpi: an output that cannot be written does not end the job" * doctest::skip(!kHasMpi)) {
  const TemporaryFolder folder;
  const ProgramResult r =
      run_mpi(2, "mnist_mlp",
              {"--data", few_digits(), "--iterations", "2", "--threads", "1", "--quiet",
               "--metrics", "/dev/full", "--summary", "/dev/full", "--save", folder / "weights"});
  CHECK(r.status == 1);
  const std::string reason = "cannot write /dev/full: No space left on device";
  CHECK(r.err.find("mnist_mlp: not everything could be written: --metrics: " + reason +
                   "; --summary: " + reason + "\n") != std::string::npos);
  CHECK(std::filesystem::file_size(folder / "weights") > 0);
}

TEST_CASE("mpi: a run that diverges ends with status 3" * doctest::skip(!kHasMpi)) {
  for (const char* algo : {"d-sync", "pipe-sgd"}) {
    const ProgramResult r =
        run_mpi(2, "mnist_mlp",
                {"--data", few_digits(), "--iterations", "9", "--lr", "1e20", "--algo", algo});
    CAPTURE(r.err);
    CHECK(r.status == 3);
    CHECK(r.err.find(": training diverged: the gradient of 0.weight") != std::string::npos);
  }
}

TEST_CASE("mpi: the mpiexec of another MPI is detected" * doctest::skip(!kHasMpi)) {
  // What Open MPI's sets, and MPICH's sets, without anybody behind it.
  const std::string prefix = kHasOpenMpi ? "PMI_" : "OMPI_COMM_WORLD_";
  ::setenv((prefix + "RANK").c_str(), "0", 1);
  ::setenv((prefix + "SIZE").c_str(), "4", 1);
  const ProgramResult r = run_program("mnist_mlp", {"--data", few_digits(), "--iterations", "1"});
  ::unsetenv((prefix + "RANK").c_str());
  ::unsetenv((prefix + "SIZE").c_str());
  CHECK(r.status == 2);
  CHECK(r.err.find("by the mpiexec of another MPI") != std::string::npos);
}

TEST_CASE("mpi: communication during backward gives the same bits" * doctest::skip(!kHasMpi)) {
  // The measured plans are used from iteration 10 on.
  const Words common = {"--data",    few_digits(), "--iterations", "11",        "--batch",    "10",
                        "--threads", "1",          "--quiet",      "--summary", "/dev/stdout"};
  for (const std::string& compress : kSanitized ? Words{"quant8"} : Words{"none", "quant8"}) {
    const Words how = common + Words{"--compress", compress};
    const std::string d_sync = hash_in(run_program("mnist_mlp", how + Words{"--workers", "3"}));
    for (const Words& algo : {Words{"wfbp"}, Words{"merge"}, Words{"p3", "--slice", "9000"},
                              Words{"p3", "--slice", "2048", "--link", "1gbe"}})
      CHECK(hash_in(run_mpi(3, "mnist_mlp", how + Words{"--algo"} + algo)) == d_sync);
    const Words ring = {"--algo", "p3", "--via", "ring", "--slice", "9000"};
    CHECK(hash_in(run_mpi(3, "mnist_mlp", how + ring)) == d_sync);
    const Words servers = {"--algo", "ps-wfbp", "--via", "servers", "--servers", "2"};
    CHECK(hash_in(run_mpi(5, "mnist_mlp", how + servers)) == d_sync);
    const Words early = {"--algo", "ps-sync", "--push", "during-backward", "--servers", "2"};
    CHECK(hash_in(run_mpi(5, "mnist_mlp", how + early)) == d_sync);
  }
}

TEST_CASE("mpi: rank 0 reads and writes the plan, and a plan that does not fit ends the job" *
          doctest::skip(!kHasMpi)) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan";
  const Words words = {"--data", few_digits(), "--iterations", "10",        "--batch",    "12",
                       "--algo", "merge",      "--quiet",      "--summary", "/dev/stdout"};
  const Words with_plan = words + Words{"--plan", plan};
  const std::string measured = hash_in(run_mpi(3, "mnist_mlp", with_plan));
  // Every layer alone. Only rank 0 has the file.
  auto json = json_of(read_bytes(plan));
  nlohmann::json alone;
  for (const auto& message : json["messages"])
    for (const auto& layer : message["layers"]) alone.push_back({{"layers", {layer}}});
  json["messages"] = alone;
  write_bytes(plan, json.dump());
  const ProgramResult used = run_mpi({{"mnist_mlp", with_plan},
                                      {"mnist_mlp", words},
                                      {"mnist_mlp", words + Words{"--plan", "/nowhere/plan"}}});
  CHECK(hash_in(used) == measured);
  CHECK(json_of(used.out)["plan"]["messages"] == 3);
  CHECK(json_of(used.out)["plan"]["first_iteration"] == 2);

  const auto refusal = [&](int ranks, const nlohmann::json& text) {
    write_bytes(plan, text.dump());
    const ProgramResult r = run_mpi(ranks, "mnist_mlp", with_plan);
    CHECK(r.status == 2);
    CHECK(r.err.starts_with("mnist_mlp: --plan: "));
    CHECK(r.err.find("mnist_mlp: ", 1) == std::string::npos);
    return r.err.substr(0, r.err.find('\n'));
  };
  CHECK(refusal(2, json).ends_with(" cannot be used: it is for --workers 3, not 2"));
  auto other = json;
  other["messages"][0]["layers"][0]["elements"] = 7;
  CHECK(refusal(3, other).find(" is for a net whose gradient has ") != std::string::npos);
  other = json;
  std::swap(other["messages"][0], other["messages"][1]);
  CHECK(refusal(3, other).find(" is for another net: layer 1 ") != std::string::npos);
}

TEST_CASE("mpi: a build without it says so" * doctest::skip(kHasMpi)) {
  ::setenv("PMI_RANK", "0", 1);
  ::setenv("PMI_SIZE", "4", 1);
  const ProgramResult r = run_program("mnist_mlp", {"--data", few_digits(), "--iterations", "1"});
  ::unsetenv("PMI_RANK");
  ::unsetenv("PMI_SIZE");
  CHECK(r.status == 2);
  CHECK(r.err.find("this build has no MPI") != std::string::npos);
}
