#include "tensor/memo_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace tandem {
namespace {

// "key <tab> value <tab> hash of both". The hash invalidates lines that two processes interleaved.
std::string line_of(const std::string& key, const std::string& value) {
  const std::string entry = key + '\t' + value;
  return fmt::format("{}\t{:016x}", entry, hash_of(std::as_bytes(std::span(entry))));
}

std::filesystem::path in_environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

}  // namespace

std::filesystem::path cache_folder() {
  if (std::getenv("TANDEM_CACHE")) return in_environment("TANDEM_CACHE");
  if (const auto caches = in_environment("XDG_CACHE_HOME"); caches.is_absolute())
    return caches / "tandem";
  if (const auto home = in_environment("HOME"); home.is_absolute())
    return home / ".cache" / "tandem";
  return {};
}

MemoFile::MemoFile(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t'), end = line.rfind('\t');
    if (tab == end) continue;
    std::string key = line.substr(0, tab), value = line.substr(tab + 1, end - tab - 1);
    if (line == line_of(key, value)) found_[std::move(key)] = std::move(value);
  }
}

std::optional<std::string> MemoFile::find(const std::string& key) const {
  const auto at = found_.find(key);
  return at == found_.end() ? std::nullopt : std::optional(at->second);
}

void MemoFile::add(const std::string& key, const std::string& value) const {
  require((key + value).find_first_of("\t\n") == std::string::npos,
          "'{}' or '{}' contains a tab or a line break", key, value);
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(path_.parent_path(), ignored);
  const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  // A line that was cut off must not spoil this one.
  char last = '\n';
  const off_t size = ::lseek(file, 0, SEEK_END);
  const bool cut_off = size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n';
  const std::string line = fmt::format("{}{}\n", cut_off ? "\n" : "", line_of(key, value));
  // One write() call, so that lines of several runs stay whole.
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace tandem
