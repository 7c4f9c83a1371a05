#include "speedup/environment.h"

#include <cblas.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "speedup/child.h"
#include "tensor/cuda/cuda_backend.h"
#include "train/version.h"

namespace tandem {
namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\"\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\"\n") - begin + 1);
}

// What follows `key` on its line; empty if there is no such line.
std::string value_of(std::istream& lines, const std::string& key) {
  for (std::string line; std::getline(lines, line);)
    if (trimmed(line).starts_with(key)) return trimmed(trimmed(line).substr(key.size()));
  return {};
}

// What a program prints; empty if it is missing or fails.
std::string said_by(const std::vector<std::string>& command) {
  try {
    return run_program(command);
  } catch (const SystemError&) {
    return {};
  }
}

// Version and commit of this build.
std::string tandem_build() {
  const std::string commit = tandem_commit();
  return fmt::format("{} ({})", tandem_version(),
                     commit.empty() ? "unknown commit" : "commit " + commit);
}

}  // namespace

Environment this_machine(bool gpu) {
  utsname system{};
  ::uname(&system);
  std::istringstream processor(said_by({"lscpu"}));
  std::ifstream os("/etc/os-release");
  const std::string model = value_of(processor, "Model name:");
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  std::istringstream blas(openblas_get_config());
  std::string name, version;
  blas >> name >> version;
  Environment e;
  e.tandem = tandem_build();
  e.processor = fmt::format("{}, {}", model.empty() ? "unknown" : model, system.machine);
  e.cores = static_cast<int>(std::thread::hardware_concurrency());
  e.memory = fmt::format("{:.0f} GB", memory / 1e9);
  e.system = value_of(os, "PRETTY_NAME=");
  const std::string compiler = __VERSION__;  // g++ gives only the number
  e.versions =
      fmt::format("{}{}, {} {}", std::isdigit(compiler[0]) ? "g++ " : "", compiler, name, version);
  if (gpu) {
    std::istringstream names(said_by({"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"}));
    e.gpu = value_of(names, "");
    if (const std::string cuda = cuda_versions(); !cuda.empty()) e.versions += ", " + cuda;
  }
  return e;
}

std::string date_now() {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
}

}  // namespace tandem
