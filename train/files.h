// Reading files, and writing results so that none is lost: a path is tried before training begins,
// and a file is replaced in one step, so that a reader never sees a half of it and a crash leaves
// the old one.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace tandem {

// Throws UserError, naming the option, if a file could not be made at `path`.
void check_writable(const std::string& option, const std::filesystem::path& path);

// Writes the pieces one after the other to a temporary file beside `path`, syncs it to disk and
// renames it. Links are followed. What is not a regular file (a pipe, /dev/stdout) is appended to
// directly. Throws SystemError with the path.
void write_file(const std::filesystem::path& path,
                std::span<const std::span<const std::byte>> pieces);
void write_file(const std::filesystem::path& path, const std::string& text);

// Throws SystemError with the path.
std::string read_file(const std::filesystem::path& path);

}  // namespace tandem
