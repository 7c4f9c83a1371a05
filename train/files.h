// Reads files, and writes results so that none is lost: paths are checked before training begins,
// and a file is replaced in one step, so that a reader never sees half of it and a crash leaves the
// old one.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace tandem {

// "-" and /dev/stdout.
bool is_standard_output(const std::filesystem::path& path);

// Whether both paths lead to the same regular file, also through links and other folders, and also
// if the file does not exist yet. Other kinds of files, such as /dev/null, never count as the same.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// Throws UserError, which names the option, if the path is a folder or a read-only file. (The
// system would allow both replacing a read-only file and writing to it as root.)
void check_permission(const std::string& option, const std::filesystem::path& path);

// The same, and also throws if no file can be created there.
void check_writable(const std::string& option, const std::filesystem::path& path);

// Writes the pieces in order to a temporary file next to `path`, syncs it to disk and renames it.
// Before that, it removes the temporary files of killed runs. Links are followed. Standard output
// and other non-regular files, such as pipes, are appended to directly. Throws SystemError, which
// names the path.
void write_file(const std::filesystem::path& path,
                std::span<const std::span<const std::byte>> pieces);
void write_file(const std::filesystem::path& path, const std::string& text);

// Makes the names of files in a folder durable. Throws SystemError.
void sync_folder(const std::filesystem::path& folder);

// Throws SystemError, which names the path.
std::string read_file(const std::filesystem::path& path);

}  // namespace tandem
