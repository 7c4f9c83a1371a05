// Checkpoints on disk. A checkpoint is a folder, named after its iteration, with a file per rank
// and a manifest:
//
//   DIR/120/rank-0.safetensors   the state of rank 0 after iteration 120 (tensor/state.h)
//   DIR/120/rank-1.safetensors   …
//   DIR/120/manifest.json        what the run was, and each file's size and hash
//
// The manifest is written last, when all files are on disk. A checkpoint without a manifest is not
// complete. So whenever a run ends, the newest complete checkpoint is whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dist/agreement.h"
#include "tensor/state.h"

namespace tandem {

struct CheckpointFile {
  std::uint64_t bytes = 0, hash = 0;  // the hash of all tensors, with their names
};

struct Manifest {
  std::int64_t iteration = 0;
  std::vector<Trait> made_for;        // what a run must have in common with it to continue
  std::vector<CheckpointFile> files;  // by rank
};

std::filesystem::path checkpoint_folder(const std::filesystem::path& folder,
                                        std::int64_t iteration);
std::filesystem::path rank_file(const std::filesystem::path& checkpoint, int rank);

// The iterations of the checkpoints in a folder, ascending. Only those with a manifest if
// `complete`.
std::vector<std::int64_t> checkpoints_in(const std::filesystem::path& folder, bool complete = true);

// Writes a rank's file and syncs it to disk. Creates the checkpoint's folder. Throws SystemError.
CheckpointFile write_rank_file(const std::filesystem::path& checkpoint, int rank,
                               const Snapshot& state);
// Reads such a file. Throws UserError if it is broken.
Snapshot read_state(const std::filesystem::path& file);
// Throws UserError if the file is not the one that was written.
Snapshot read_rank_file(const std::filesystem::path& checkpoint, int rank,
                        const CheckpointFile& expected);
// The state of rank 0, whose weights can be loaded from it. `folder` is a checkpoint, or has
// several; then the newest counts. Throws UserError.
Snapshot read_checkpoint_weights(const std::filesystem::path& folder);

// Whether the folder is a complete checkpoint.
bool is_checkpoint(const std::filesystem::path& folder);
// Call it when a run is resumed after this iteration. Renames the manifests of later checkpoints in
// the folder: the run will write them again, file by file, and they must not seem complete
// meanwhile. Throws SystemError.
void set_aside_after(const std::filesystem::path& folder, std::int64_t iteration);

// Throws SystemError.
void write_manifest(const std::filesystem::path& checkpoint, const Manifest& manifest);
std::string to_json(const Manifest& manifest);
// Both throw UserError; the second names the file.
Manifest manifest_from(const std::string& json);
Manifest read_manifest(const std::filesystem::path& checkpoint);

// Removes a checkpoint: first its manifest, then what else ranks have written. Other files stay.
// Ignores errors.
void remove_checkpoint(const std::filesystem::path& checkpoint);
// Removes only this rank's file, and the folder if it is empty then. For ranks that have a disk of
// their own. Ignores errors.
void remove_rank_file(const std::filesystem::path& checkpoint, int rank);

}  // namespace tandem
