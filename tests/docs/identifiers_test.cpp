// Checks that the words that documents write in backticks exist.
//
// The text between two backticks is split into words at spaces. A word that begins with
//   --           is an option of one of our programs: its --help names it;
//   a folder/    of the repository is a path that exists;
//   build/       is a program: its source is in apps/, or it is the tests;
//   results/, datasets/  is the user's file.
// Of all other words,
//   name.h, name.cpp, name.md … without a folder is the name of some file;
//   Type::name   means that a file which declares Type also has the word name;
//   every identifier (two letters or more) is a word of the sources, outside of C++ comments.
// Words that other programs define are listed below.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/docs/markdown.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using namespace tandem;
using namespace tandem::test;

namespace {

const std::set<std::string> kFolders = {"base",  "tensor", "autograd", "layers",   "data",
                                        "dist",  "train",  "speedup",  "apps",     "examples",
                                        "tests", "docs",   "scripts",  "simulate", "profiles"};

// Of MPI, Slurm, Google Benchmark and pkg-config, and names that stand for the reader's own.
const std::set<std::string> kOthers = {"MPI_Init",           "openmpi", "iface", "srun", "--mpi",
                                       "--benchmark_filter", "--libs",  "eth1",  "node1"};

std::string without_comments(const std::string& text) {
  std::istringstream in(text);
  std::string result;
  for (std::string line; std::getline(in, line);) result += line.substr(0, line.find("//")) + "\n";
  return result;
}

std::set<std::string> matches(const std::string& text, const std::string& expression) {
  const std::regex regex(expression);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.insert(at->str());
  return found;
}

std::set<std::string> words_of(const std::string& text) {
  return matches(text, "[A-Za-z_][A-Za-z0-9_]+");
}

struct Repository {
  std::set<std::string> file_names, words, options;
  std::map<std::string, std::set<std::string>> words_with_type;  // of the files that declare it

  Repository() {
    for (const std::string& folder : kFolders)
      for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) add(entry.path());
    add("Makefile");
    for (const auto& entry : fs::directory_iterator("apps"))
      options.merge(matches(run_program(entry.path().filename(), {"--help"}).out, "--[a-z0-9-]+"));
  }

 private:
  void add(const fs::path& path) {
    static const std::set<std::string> kSources = {".h", ".cpp", ".cu", ".cuh", ".py", ""};
    file_names.insert(path.filename());
    const std::string extension = path.extension();
    if (!kSources.contains(extension) || path == "tests/docs/identifiers_test.cpp") return;
    const bool cpp = extension.starts_with(".h") || extension.starts_with(".c");
    const std::string text = cpp ? without_comments(read_bytes(path)) : read_bytes(path);
    const std::set<std::string> found = words_of(text);
    words.insert(found.begin(), found.end());
    for (const std::string& declared : matches(text, "(class|struct|namespace) [A-Za-z:]+"))
      words_with_type[declared.substr(declared.find_last_of(" :") + 1)].insert(found.begin(),
                                                                               found.end());
  }
};

bool exists(const Repository& repository, const std::string& word) {
  if (word.starts_with("--")) {
    const std::string name = word.substr(0, word.find('='));
    return name == "--" || kOthers.contains(name) || repository.options.contains(name);
  }
  const std::string folder = word.substr(0, word.find('/'));
  if (folder != word && folder == "build") {
    const std::string program = word.substr(6);
    return program == "tandem_tests" || fs::exists("apps/" + program);
  }
  if (folder != word && (folder == "results" || folder == "datasets")) return true;
  if (folder != word && kFolders.contains(folder)) return fs::exists(word);

  std::smatch part;
  if (std::regex_match(word, std::regex("[a-z_]+\\.(h|cpp|cu|md|py)")))
    return repository.file_names.contains(word);
  if (std::regex_search(word, part, std::regex("([A-Za-z]+)::([a-z_]+)")) && part[1] != "std") {
    const auto with = repository.words_with_type.find(part[1]);
    return with != repository.words_with_type.end() && with->second.contains(part[2]);
  }
  for (const std::string& name : words_of(word))
    if (!repository.words.contains(name) && !kOthers.contains(name)) return false;
  return true;
}

std::vector<fs::path> documents() {
  std::vector<fs::path> paths = {"README.md"};
  for (const std::string& folder : kFolders)
    for (const fs::path& path : documents_in(folder, true)) paths.push_back(path);
  return paths;
}

}  // namespace

TEST_CASE("docs: words in backticks exist") {
  const Repository repository;
  int seen = 0;
  for (const fs::path& path : documents())
    for (const std::string& code : read_document(path).code) {
      std::istringstream words(code);
      for (std::string word; words >> word; ++seen) {
        CAPTURE(path);
        CAPTURE(code);
        CAPTURE(word);
        CHECK(exists(repository, word));
      }
    }
  CHECK(seen > 500);  // they are still found
}

TEST_CASE("docs: words that do not exist are found") {
  const Repository repository;
  for (const char* there :
       {"--pipe-k", "--compress", "build/speedup", "dist/README.md", "autograd/ops/", "tape.h",
        "Tape::record", "on_grad_ready", "clone()", "weights_hash", "std::jthread"}) {
    CAPTURE(there);
    CHECK(exists(repository, there));
  }
  for (const char* missing : {"--pipe-q", "build/speedups", "dist/READ.md", "autograd/op/", "tap.h",
                              "Tape::recorder", "Tapes::record", "on_grads_ready", "klone()"}) {
    CAPTURE(missing);
    CHECK(!exists(repository, missing));
  }
}
