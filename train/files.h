// Reading files, and writing results so that none is lost: a path is tried before training begins,
// and a file is replaced in one step, so that a reader never sees a half of it and a crash leaves
// the old one.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace tandem {

// "-" and /dev/stdout.
bool is_standard_output(const std::filesystem::path& path);

// Whether both paths lead to one regular file, or would once it is made: over links, through other
// folders, under another name. What is no regular file (/dev/null) may be written by many.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// Throws UserError, naming the option, if the path is a folder or a read-only file. (Replacing a
// file takes no permission to write to it, and root needs none.)
void check_permission(const std::string& option, const std::filesystem::path& path);

// The same, and if a file could not be made in its place.
void check_writable(const std::string& option, const std::filesystem::path& path);

// Writes the pieces one after the other to a temporary file beside `path`, syncs it to disk and
// renames it; before that, removes the temporary files of runs that were killed in between. Links
// are followed. Standard output and what is not a regular file (a pipe) is appended to directly.
// Throws SystemError with the path.
void write_file(const std::filesystem::path& path,
                std::span<const std::span<const std::byte>> pieces);
void write_file(const std::filesystem::path& path, const std::string& text);

// Throws SystemError with the path.
std::string read_file(const std::filesystem::path& path);

}  // namespace tandem
