// Checks the documents: commands run, links point to files, excerpts of code match the source.
//
// Commands are in ```sh blocks, one per line; a backslash at the end continues a line. They run in
// a folder of their own per document, in which build/ is the folder of these programs and datasets/
// the repository's. So what they write does not touch the tree. It must go to results/, which git
// ignores. A block that begins with "# on a cluster" or "# takes minutes" is not run, but its
// programs and options must exist.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>

#include "base/error.h"
#include "tensor/cuda/cuda_backend.h"
#include "tests/docs/markdown.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using namespace tandem;
using namespace tandem::test;

namespace {

const std::string kLauncher = TANDEM_MPIEXEC;
// The course is written for MPICH, whose mpiexec knows other options than Open MPI's.
const bool kHasMpich = !kLauncher.empty() && kLauncher.find("oversubscribe") == std::string::npos;

fs::path build_folder() { return fs::path(path_of_program("")).parent_path(); }

bool has_gpu() {
  try {
    return cuda_device_count() > 0;
  } catch (const std::exception&) {  // no driver, or a build without CUDA
    return false;
  }
}

bool mentions(const std::string& command, const std::string& what) {
  return command.find(what) != std::string::npos;
}

bool is_run(const CodeBlock& block) {
  return block.language == "sh" && !block.lines.empty() &&
         !block.lines[0].starts_with("# on a cluster") &&
         !block.lines[0].starts_with("# takes minutes");
}

// Without comments; continued lines in one.
Lines commands_of(const CodeBlock& block) {
  static const std::regex comment("(^|\\s+)#.*$");
  Lines commands;
  bool continues = false;
  for (const std::string& line : block.lines) {
    std::string text = trimmed(std::regex_replace(line, comment, ""));
    if (text.empty()) continue;
    if (!continues) commands.emplace_back();
    continues = text.ends_with('\\');
    if (continues) text.pop_back();
    commands.back() += text;
  }
  return commands;
}

// The programs of ours that a command starts.
std::set<std::string> programs_in(const std::string& command) {
  static const std::regex program("build/([a-z_]+)");
  std::set<std::string> names;
  for (std::sregex_iterator at(command.begin(), command.end(), program), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

bool is_built(const std::string& program) { return fs::exists(build_folder() / program); }

bool can_run_here(const std::string& command) {
  if (mentions(command, "mpiexec") && !kHasMpich) return false;
  if (mentions(command, "--device cuda") && !has_gpu()) return false;
  return true;
}

void run(const std::string& command, const fs::path& folder) {
  const std::string with_launcher =
      std::regex_replace(command, std::regex("mpiexec\\.mpich"), kLauncher);
  const ProgramResult r =
      Process({"bash", "-c", "set -eo pipefail; cd \"$0\"; " + with_launcher, folder}).wait();
  CAPTURE(command);
  CAPTURE(r.err);
  CHECK(r.status == 0);
  CHECK(!r.out.empty());
}

// What stands in a folder, by name.
std::set<std::string> contents(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

void run_commands_of(const fs::path& path) {
  const TemporaryFolder folder;
  fs::create_directory_symlink(build_folder(), folder / "build");
  if (fs::exists("datasets"))
    fs::create_directory_symlink(fs::absolute("datasets"), folder / "datasets");
  fs::create_directory(folder / "results");
  const std::set<std::string> before = contents(folder.path());
  for (const CodeBlock& block : read_document(path).blocks)
    if (is_run(block))
      for (const std::string& command : commands_of(block))
        if (can_run_here(command)) run(command, folder.path());
  CHECK(contents(folder.path()) == before);
}

char first_letter(const fs::path& path) { return path.filename().string().at(0); }

// Every option behind a program's name must be one of its own.
void check_options(const std::string& command) {
  static const std::regex option("\\s(--[a-z0-9-]+)");
  CAPTURE(command);
  for (const std::string& program : programs_in(command)) {
    CAPTURE(program);
    REQUIRE(is_built(program));
    const std::string help = run_program(program, {"--help"}).out;
    const std::string rest = command.substr(command.find("build/" + program));
    for (std::sregex_iterator at(rest.begin(), rest.end(), option), end; at != end; ++at) {
      const std::string name = (*at)[1];
      CAPTURE(name);
      CHECK(mentions(help, name));
    }
  }
}

// Whether the lines stand in the file one after the other, however far they are indented.
bool contains(const Lines& file, const Lines& excerpt) {
  return std::search(file.begin(), file.end(), excerpt.begin(), excerpt.end()) != file.end();
}

Lines lines_of(const fs::path& path) {
  std::istringstream text(read_bytes(path));
  Lines lines;
  for (std::string line; std::getline(text, line);) lines.push_back(trimmed(line));
  return lines;
}

// An excerpt, cut where it leaves something out with a line of "…".
std::vector<Lines> pieces_of(const CodeBlock& block) {
  std::vector<Lines> pieces(1);
  for (const std::string& line : block.lines) {
    if (trimmed(line) == "…")
      pieces.emplace_back();
    else
      pieces.back().push_back(trimmed(line));
  }
  return pieces;
}

}  // namespace

// Three test cases, which may run at the same time.
TEST_CASE("docs: every command of the chapters 1 to 9 runs") {
  for (const fs::path& path : documents_in("docs", false))
    if (first_letter(path) == '0') SUBCASE(path.c_str()) run_commands_of(path);
}
TEST_CASE("docs: every command of the chapters from 10 on runs") {
  for (const fs::path& path : documents_in("docs", false))
    if (first_letter(path) >= '1' && first_letter(path) <= '9')
      SUBCASE(path.c_str()) run_commands_of(path);
}
TEST_CASE("docs: every command of the other pages runs") {
  for (const fs::path& path : documents_in("docs", false))
    if (first_letter(path) < '0' || first_letter(path) > '9')
      SUBCASE(path.c_str()) run_commands_of(path);
}

TEST_CASE("docs: commands are in blocks that say whether they are run") {
  for (const fs::path& path : documents_in("docs", false))
    for (const CodeBlock& block : read_document(path).blocks)
      for (const std::string& line : block.lines) {
        CAPTURE(path);
        CAPTURE(line);
        if (block.language.empty()) CHECK(programs_in(line).empty());
      }
}

TEST_CASE("docs: commands that are not run name programs and options that exist") {
  for (const fs::path& path : documents_in("docs", false))
    for (const CodeBlock& block : read_document(path).blocks)
      if (block.language == "sh" && !is_run(block))
        for (const std::string& command : commands_of(block)) {
          CAPTURE(path);
          check_options(command);
        }
}

TEST_CASE("docs: commands write only to the folder that git ignores") {
  static const std::regex output("--(save|summary|metrics|trace|out) (\\S+)");
  std::vector<fs::path> paths = documents_in("docs", false);
  paths.push_back("README.md");
  int seen = 0;
  for (const fs::path& path : paths)
    for (const CodeBlock& block : read_document(path).blocks)
      for (const std::string& line : block.lines)
        for (std::sregex_iterator at(line.begin(), line.end(), output), end; at != end; ++at) {
          CAPTURE(path);
          CAPTURE(line);
          CHECK((*at)[2].str().starts_with("results/"));
          ++seen;
        }
  CHECK(seen > 5);
  CHECK(read_bytes(".gitignore").find("/results/\n") != std::string::npos);
}

TEST_CASE("docs: relative links point to files that exist") {
  std::vector<fs::path> paths = documents_in("docs", true);
  for (const fs::path& path : documents_in("dist", true)) paths.push_back(path);
  paths.push_back("README.md");
  for (const fs::path& path : paths) {
    const Document document = read_document(path);
    for (const std::string& link : document.links) {
      const fs::path target = target_of(document, link);
      CAPTURE(path);
      CAPTURE(link);
      CHECK((target.empty() || fs::exists(target)));
    }
  }
}

// Together with the test below, page and example have the same code.
TEST_CASE("docs: a page that builds an example shows all of its lines") {
  const std::map<std::string, std::vector<std::string>> examples = {
      {"docs/writing-a-model.md",
       {"examples/lenet/lenet.h", "examples/lenet/main.cpp", "examples/lenet/scaled_tanh.h"}},
      {"docs/writing-a-strategy.md", {"dist/local_sgd.h"}}};
  for (const auto& example : examples) {
    const auto& page = example.first;  // not a structured binding: clang 14 cannot capture one
    std::set<std::string> shown;
    for (const CodeBlock& block : read_document(page).blocks)
      for (const std::string& line : block.lines)
        if (block.language == "cpp") shown.insert(trimmed(line));
    for (const std::string& file : example.second)
      for (const std::string& line : lines_of(file)) {
        CAPTURE(page);
        CAPTURE(file);
        CAPTURE(line);
        CHECK((line.empty() || shown.contains(line)));
      }
  }
}

TEST_CASE("docs: excerpts of code are in a file that their chapter links to") {
  for (const fs::path& path : documents_in("docs", false)) {
    const Document document = read_document(path);
    for (const CodeBlock& block : document.blocks) {
      if (block.language != "cpp") continue;
      for (const Lines& piece : pieces_of(block)) {
        bool found = false;
        for (const std::string& link : document.links)
          if (const fs::path target = target_of(document, link); fs::is_regular_file(target))
            found = found || contains(lines_of(target), piece);
        CAPTURE(path);
        CAPTURE(block.line);
        CHECK(found);
      }
    }
  }
}
