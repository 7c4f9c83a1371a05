#include "tests/support.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "autograd/ops.h"
#include "base/clock.h"

extern char** environ;

namespace tandem::test {

std::vector<double> random_values(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    const double magnitude = random.uniform(0.05, 1);
    value = random.uniform() < 0.5 ? -magnitude : magnitude;
  }
  return values;
}

Tensor random_tensor(const Shape& shape, std::uint64_t seed, Dtype dtype, const Device& device) {
  const auto values = random_values(shape.count(), seed);
  if (dtype == Dtype::f64) return Tensor::from(values, shape, device);
  return Tensor::from(std::vector<float>(values.begin(), values.end()), shape, device);
}

namespace {

// Σ y·r for fixed random r: turns a result of any shape into one number.
Var project(Tape& tape, const Var& y) {
  const std::int64_t count = y.value.count();
  const Device device = y.value.device();
  Var row = y;
  row.value = y.value.reshape({1, count});
  if (y.has_gradient())
    row = tape.record(y.value.reshape({1, count}), {y.node},
                      [node = y.node, shape = y.value.shape()](Tape& t, const Tensor& dy) {
                        t.add_gradient(node, dy.reshape(shape));
                      });
  return linear(tape, row, Var{random_tensor({1, count}, 99, Dtype::f64, device)},
                Var{Tensor::zeros({1}, Dtype::f64, device)});
}

}  // namespace

void check_gradients(const std::vector<Shape>& inputs, const Function& f, double tolerance) {
  const Device device = cpu_device();
  std::vector<std::unique_ptr<Parameter>> owned;
  std::vector<ParameterSet::Named> named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto values = random_values(inputs[i].count(), i + 1);
    owned.push_back(
        std::make_unique<Parameter>(inputs[i], std::vector<float>(values.begin(), values.end())));
    named.push_back({"input" + std::to_string(i), owned.back().get()});
  }
  const ParameterSet set(named, device, Dtype::f64);

  Tape tape;
  const auto evaluate = [&](Tape::Mode mode) {
    tape.begin(mode, Random(7));
    std::vector<Var> vars;
    for (auto& p : owned) vars.push_back(tape.use(*p));
    return project(tape, f(tape, vars));
  };
  // Central differences must see the same forward as backward does: training mode, not recorded.
  const auto loss_at = [&] {
    const double loss = evaluate(Tape::Mode::training).value.item();
    tape.begin(Tape::Mode::inference);
    return loss;
  };

  tape.backward(evaluate(Tape::Mode::training), set);
  double largest = 0, worst = 0;
  for (auto& p : owned) {
    const auto gradient = p->gradient.to_host<double>();
    const auto value = p->value.span<double>();
    for (std::size_t i = 0; i < value.size(); ++i) {
      constexpr double kStep = 1e-5;
      const double at = value[i];
      value[i] = at + kStep;
      const double above = loss_at();
      value[i] = at - kStep;
      const double below = loss_at();
      value[i] = at;
      const double numeric = (above - below) / (2 * kStep);
      largest = std::max(largest, std::abs(numeric));
      if (const double error = std::abs(numeric - gradient[i]); !(error <= worst))
        worst = std::isnan(error) ? HUGE_VAL : error;
    }
  }
  CHECK(largest > 0);
  CHECK(worst <= tolerance * std::max(1.0, largest));
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tandem_test.XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}
TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

void write_bytes(const std::filesystem::path& path, const std::string& bytes, bool gzip) {
  if (!gzip) {
    std::ofstream(path, std::ios::binary) << bytes;
    return;
  }
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) ==
          static_cast<int>(bytes.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string path_of_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {path_of_program(name)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Process(words).wait();
}

Process::Process(std::vector<std::string> words, int out) : name_(words[0]) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string kept = folder_ / "out", err = folder_ / "err";
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (out >= 0)
    posix_spawn_file_actions_adddup2(&actions, out, 1);
  else
    posix_spawn_file_actions_addopen(&actions, 1, kept.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  // Looking for leaks takes seconds per program; the tests look for them in the same code here.
  ::setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
  const int spawned = ::posix_spawnp(&pid_, name_.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(spawned == 0);
}

Process::~Process() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Process::out_so_far() const { return read_bytes(folder_ / "out"); }

void Process::wait_until(const std::function<bool()>& holds) {
  const auto give_up = Clock::now() + std::chrono::minutes(5);  // some machines are slow
  while (!holds()) {
    siginfo_t ended{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0);
    if (ended.si_pid == pid_) {
      if (holds()) return;  // it became true just before the end
      FAIL(name_, " has ended: ", wait().err);
    }
    if (Clock::now() > give_up) FAIL(name_, " hangs; it has said: ", out_so_far());
    ::usleep(1000);  // there is nothing to wait on
  }
}

int Process::wait_for_signal() {
  int status = 0;
  REQUIRE(::waitpid(std::exchange(pid_, 0), &status, 0) > 0);
  REQUIRE_MESSAGE(WIFSIGNALED(status), name_, " was not ended by a signal");
  return WTERMSIG(status);
}

ProgramResult Process::wait() {
  int status = 0;
  REQUIRE(::waitpid(pid_, &status, 0) == pid_);
  pid_ = 0;
  const std::string err = read_bytes(folder_ / "err");
  REQUIRE_MESSAGE(WIFEXITED(status), name_, " was ended by a signal: ", err);
  return {WEXITSTATUS(status), read_bytes(folder_ / "out"), err};
}

NoCoreFiles::NoCoreFiles() {
  REQUIRE(::getrlimit(RLIMIT_CORE, &before_) == 0);
  const rlimit none{0, before_.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_CORE, &none) == 0);
}
NoCoreFiles::~NoCoreFiles() { ::setrlimit(RLIMIT_CORE, &before_); }

}  // namespace tandem::test
