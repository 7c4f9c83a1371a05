#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "data/files.h"
#include "train/files.h"
#include "train/json_input.h"
#include "train/safetensors.h"
#include "train/version.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Names of files, or how they begin.
constexpr const char* kManifest = "manifest.json";
constexpr const char* kUnusedManifest = "manifest.unused.json";
constexpr const char* kManifestName = "manifest.";
constexpr const char* kRankFile = "rank-";
constexpr int kFormat = 1;

// Continues the hash with a tensor.
std::uint64_t with_tensor(std::uint64_t hash, const RawArray& array) {
  const std::string about = fmt::format("{} {} {}", array.name, array.dtype, array.shape);
  hash = hash_of(std::as_bytes(std::span(about)), hash);
  const std::uint64_t values = fast_hash_of(array.bytes);
  return hash_of(std::as_bytes(std::span(&values, 1)), hash);
}

std::int64_t number_of(const std::string& name) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

std::uint64_t whole_at(const Json& json, const char* name, std::uint64_t most) {
  const Json& value = member(json, name);
  if (!is_whole(value, most))
    throw UserError("\"{}\" must be a whole number up to {}, not {}", name, most,
                    shown_value(value));
  return value.get<std::uint64_t>();
}

const Json& list_at(const Json& json, const char* name) {
  const Json& list = member(json, name);
  if (!list.is_array()) throw UserError("\"{}\" must be a list", name);
  return list;
}

std::uint64_t hash_at(const Json& json) {
  const Json& value = member(json, "hash");
  std::uint64_t hash = 0;
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size())
    throw UserError("\"hash\" must have 16 hexadecimal digits, not {}", shown_value(value));
  return hash;
}

// What a folder holds; empty if that cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

}  // namespace

fs::path checkpoint_folder(const fs::path& folder, std::int64_t iteration) {
  return folder / fmt::format("{}", iteration);
}

fs::path rank_file(const fs::path& checkpoint, int rank) {
  return checkpoint / fmt::format("{}{}.safetensors", kRankFile, rank);
}

std::vector<std::int64_t> checkpoints_in(const fs::path& folder, bool complete) {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (const fs::path& path : entries_of(folder)) {
    const std::int64_t iteration = number_of(path.filename().string());
    if (iteration < 0 || !fs::is_directory(path, error)) continue;
    if (!complete || fs::exists(path / kManifest, error)) found.push_back(iteration);
  }
  std::ranges::sort(found);
  return found;
}

CheckpointFile write_rank_file(const fs::path& checkpoint, int rank, const Snapshot& state) {
  std::error_code error;
  fs::create_directories(checkpoint, error);
  if (error) throw SystemError("cannot create {}: {}", checkpoint.string(), error.message());
  std::vector<RawArray> arrays;
  for (const auto& [name, item] : state.items())
    arrays.push_back({name, item.type, item.shape, item.data()});
  std::string text;
  const auto pieces = safetensors_pieces(arrays, text);
  write_file(rank_file(checkpoint, rank), pieces);
  sync_folder(checkpoint.parent_path());
  CheckpointFile file{.hash = kHashOfNothing};
  for (const auto& piece : pieces) file.bytes += piece.size();
  for (const RawArray& array : arrays) file.hash = with_tensor(file.hash, array);
  return file;
}

Snapshot read_state(const fs::path& file) {
  Snapshot state;
  read_raw_safetensors(file, [&](const RawArray& array) {
    state.items()[array.name] = {
        array.dtype, array.shape, {array.bytes.begin(), array.bytes.end()}, {}};
  });
  return state;
}

Snapshot read_rank_file(const fs::path& checkpoint, int rank, const CheckpointFile& expected) {
  const fs::path path = rank_file(checkpoint, rank);
  if (const std::uint64_t bytes = regular_file_bytes(path); bytes != expected.bytes)
    throw UserError("{} has {} bytes, but its manifest says {}", path.string(), bytes,
                    expected.bytes);
  Snapshot state = read_state(path);
  std::uint64_t hash = kHashOfNothing;
  for (const auto& [name, item] : state.items())
    hash = with_tensor(hash, {name, item.type, item.shape, item.data()});
  if (hash != expected.hash)
    throw UserError("{} is damaged: its contents do not have the hash that its manifest says",
                    path.string());
  return state;
}

Snapshot read_checkpoint_weights(const fs::path& folder) {
  fs::path checkpoint = folder;
  if (!is_checkpoint(folder)) {
    const auto complete = checkpoints_in(folder);
    if (complete.empty()) throw UserError("{} has no complete checkpoint", folder.string());
    checkpoint = checkpoint_folder(folder, complete.back());
  }
  return read_rank_file(checkpoint, 0, read_manifest(checkpoint).files.at(0));
}

void write_manifest(const fs::path& checkpoint, const Manifest& manifest) {
  write_file(checkpoint / kManifest, to_json(manifest));
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kManifest, error);
}

void set_aside_after(const fs::path& folder, std::int64_t iteration) {
  for (const std::int64_t later : checkpoints_in(folder)) {
    if (later <= iteration) continue;
    const fs::path checkpoint = checkpoint_folder(folder, later);
    std::error_code error;
    fs::rename(checkpoint / kManifest, checkpoint / kUnusedManifest, error);
    if (error)
      throw SystemError("cannot rename {}: {}", (checkpoint / kManifest).string(), error.message());
  }
}

std::string to_json(const Manifest& manifest) {
  nlohmann::ordered_json made_for, files = nlohmann::ordered_json::array();
  for (const Trait& trait : manifest.made_for) made_for.push_back({trait.name, trait.value});
  for (const CheckpointFile& file : manifest.files)
    files.push_back({{"bytes", file.bytes}, {"hash", fmt::format("{:016x}", file.hash)}});
  const nlohmann::ordered_json json = {{"format", kFormat},
                                       {"version", tandem_version()},
                                       {"iteration", manifest.iteration},
                                       {"made_for", made_for},
                                       {"files", files}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Manifest manifest_from(const std::string& text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
  const Json json = parse_json(text);
  if (const std::uint64_t format = whole_at(json, "format", kMost); format != kFormat)
    throw UserError("its format is {}; this version reads format {}", format, kFormat);
  Manifest manifest{.iteration = static_cast<std::int64_t>(whole_at(json, "iteration", kMost))};
  for (const Json& trait : list_at(json, "made_for")) {
    if (!trait.is_array() || trait.size() != 2 || !trait[0].is_string() || !trait[1].is_string())
      throw UserError("\"made_for\" must be a list of names and values");
    manifest.made_for.push_back({trait[0], trait[1]});
  }
  for (const Json& file : list_at(json, "files"))
    manifest.files.push_back({whole_at(file, "bytes", kMost), hash_at(file)});
  if (manifest.files.empty()) throw UserError("it names no files");
  return manifest;
}

Manifest read_manifest(const fs::path& checkpoint) {
  constexpr std::uint64_t kMostBytes = 10'000'000;
  const fs::path path = checkpoint / kManifest;
  if (regular_file_bytes(path) > kMostBytes)
    throw UserError("{} has more than {} bytes", path.string(), kMostBytes);
  const std::string text = read_file(path);
  try {
    return manifest_from(text);
  } catch (const UserError& e) {
    throw UserError("{} is not a checkpoint's manifest: {}", path.string(), e.what());
  }
}

void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code error;
  fs::remove(checkpoint / kManifest, error);
  for (const fs::path& path : entries_of(checkpoint)) {
    const std::string name = path.filename().string();
    if (name.starts_with(kRankFile) || name.starts_with(kManifestName)) fs::remove(path, error);
  }
  fs::remove(checkpoint, error);  // only if it is empty
}

void remove_rank_file(const fs::path& checkpoint, int rank) {
  std::error_code error;
  fs::remove(rank_file(checkpoint, rank), error);
  fs::remove(checkpoint, error);
}

}  // namespace tandem
