#include "train/resume.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "dist/launch.h"
#include "dist/transport/collectives.h"
#include "train/checkpoint.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Rank 0's list of checkpoints to try.
class Candidates {
 public:
  Candidates(std::string app, const TrainOptions& o)
      : app_(std::move(app)),
        auto_(o.resume == kResumeAuto),
        folder_(auto_ ? o.checkpoint : o.resume) {
    for (const std::int64_t iteration : checkpoints_in(folder_))
      left_.push_back(checkpoint_folder(folder_, iteration));
    if (left_.empty() && !auto_ && is_checkpoint(folder_)) left_ = {folder_};
    any_ = !left_.empty();
  }

  // The folder of the next one, and its manifest as JSON; both empty: from the beginning.
  struct Next {
    std::string folder, manifest;
  };
  Next next(const std::vector<Trait>& made_for) {
    while (!left_.empty()) {
      const std::string folder = left_.back().string();
      left_.pop_back();
      try {
        const Manifest manifest = read_manifest(folder);
        require_same_run(manifest, folder, made_for);
        return {folder, to_json(manifest)};
      } catch (const AnotherRun&) {
        throw;
      } catch (const std::runtime_error& e) {
        std::fputs(fmt::format("{}: {}; this checkpoint is not used\n", app_, e.what()).c_str(),
                   stderr);
      }
    }
    if (any_)
      throw UserError("--resume: none of the checkpoints in {} can be used", folder_.string());
    if (auto_) return {};
    throw UserError("--resume: {} has no complete checkpoint", folder_.string());
  }

 private:
  class AnotherRun : public UserError {
    using UserError::UserError;
  };

  static void require_same_run(const Manifest& manifest, const std::string& folder,
                               const std::vector<Trait>& made_for) {
    for (std::size_t i = 0; i < std::max(manifest.made_for.size(), made_for.size()); ++i) {
      const Trait of_run = i < made_for.size() ? made_for[i] : Trait();
      const Trait of_file = i < manifest.made_for.size() ? manifest.made_for[i] : Trait();
      if (of_run == of_file) continue;
      if (of_run.name != of_file.name)
        throw AnotherRun("--resume: {} is of another program or version of Tandem", folder);
      throw AnotherRun(
          "--resume: {} was saved with {} {}, but this run has {}; --resume-weights takes the "
          "weights alone",
          folder, of_run.name, of_file.value, of_run.value);
    }
  }

  std::string app_;
  bool auto_;
  fs::path folder_;
  std::vector<fs::path> left_;  // the newest is last
  bool any_ = false;
};

std::string broadcast_text(Communication& communication, const std::string& own) {
  const auto bytes = std::as_bytes(std::span(own));
  Bytes message(bytes.begin(), bytes.end());
  communication.call(
      [&] { broadcast(communication.transport(), communication.transport().size(), message); });
  return {reinterpret_cast<const char*>(message.data()), message.size()};
}

}  // namespace

Resumed resume(const std::string& app, const TrainOptions& o, const std::vector<Trait>& made_for,
               Communication& communication) {
  if (o.resume.empty()) return {};
  Transport& transport = communication.transport();
  const int rank = transport.rank();
  std::optional<Candidates> candidates;
  if (rank == 0) candidates.emplace(app, o);
  while (true) {
    Candidates::Next chosen;
    together(communication, [&] {
      if (candidates) chosen = candidates->next(made_for);
    });
    const std::string text = broadcast_text(communication, chosen.manifest);
    const std::string folder = broadcast_text(communication, chosen.folder);
    if (text.empty()) return {};
    const Manifest manifest = manifest_from(text);
    Resumed resumed{.iteration = manifest.iteration, .state = {}};
    double failed = 0;
    try {
      if (std::ssize(manifest.files) != transport.size())
        throw UserError("{} has files of {} ranks, not of {}", folder, manifest.files.size(),
                        transport.size());
      resumed.state = read_rank_file(folder, rank, manifest.files[static_cast<std::size_t>(rank)]);
    } catch (const std::runtime_error& e) {
      failed = 1;
      std::fputs(fmt::format("{}: rank {}: {}; this checkpoint is not used\n", app, rank, e.what())
                     .c_str(),
                 stderr);
    }
    communication.call([&] { sum_over_ranks(transport, transport.size(), std::span(&failed, 1)); });
    if (failed > 0) continue;
    if (rank == 0 && !o.checkpoint.empty()) set_aside_after(o.checkpoint, resumed.iteration);
    return resumed;
  }
}

}  // namespace tandem
