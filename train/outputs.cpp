#include "train/outputs.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "train/checkpoint.h"
#include "train/files.h"
#include "train/plan_file.h"
#include "train/profile_file.h"
#include "train/timeline.h"
#include "train/weights.h"

namespace tandem {
namespace {

using File = std::pair<const char*, std::string>;  // the option and its value

std::array<File, 7> outputs_of(const TrainOptions& o) {
  return {{{"--save", o.save},
           {"--metrics", o.metrics},
           {"--csv", o.csv},
           {"--summary", o.summary},
           {"--trace", o.trace},
           {"--profile", o.profile},
           {"--plan", reads_plan(o) ? "" : o.plan}}};
}

bool writes_to_stdout(const TrainOptions& o) {
  for (const auto& [option, file] : outputs_of(o))
    if (is_standard_output(file)) return true;
  return false;
}

void check_different(const TrainOptions& o, const std::string& features) {
  const auto outputs = outputs_of(o);
  for (auto one = outputs.begin(); one != outputs.end(); ++one)
    for (auto other = outputs.begin(); other != one; ++other) {
      if (one->second.empty() || other->second.empty()) continue;
      if (is_standard_output(one->second) && is_standard_output(other->second))
        throw UserError("{} and {} would both write to standard output", other->first, one->first);
      if (is_same_file(one->second, other->second))
        throw UserError("{} and {} would write to the same file {}", other->first, one->first,
                        one->second);
    }
  const File inputs[] = {
      {"--load", o.load}, {"--features", features}, {"--plan", reads_plan(o) ? o.plan : ""}};
  for (const auto& [input, read] : inputs)
    for (const auto& [output, written] : outputs) {
      const bool weights = input != std::string_view("--plan");
      if (read.empty() || written.empty() || (weights && output == std::string_view("--save")))
        continue;
      if (is_same_file(read, written))
        throw UserError("{} would overwrite {}, which {} reads; choose another file", output,
                        written, input);
    }
}

// Checks the options. Returns them if they are consistent.
const TrainOptions& checked(const TrainOptions& o, const std::string& features) {
  check_different(o, features);
  if (is_standard_output(o.save) && ::isatty(STDOUT_FILENO) == 1)
    throw UserError("--save {}: weights are not text; redirect standard output to a file", o.save);
  for (const auto& [option, file] : outputs_of(o)) {
    const bool opened =
        option == std::string_view("--metrics") || option == std::string_view("--csv");
    if (!file.empty() && !opened) check_writable(option, file);
  }
  return o;
}

// Makes the folder of checkpoints if needed, and locks it for this run.
void take_folder(const TrainOptions& o, std::optional<LockFile>& lock) {
  if (o.checkpoint.empty()) return;
  const std::filesystem::path folder = o.checkpoint;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError("--checkpoint: cannot create {}: {}", o.checkpoint, error.message());
  // The run that is continued may have been killed just now, and still hold its lock.
  const auto give_up = Clock::now() + from_seconds(o.resume == kResumeAuto ? 10 : 0);
  do {
    try {
      lock.emplace(folder / "lock");
    } catch (const FileError& e) {
      throw UserError("--checkpoint: {}", e.what());
    }
    if (!lock->is_held_elsewhere()) break;
    sleep_until(Clock::now() + from_seconds(0.1));  // the kernel tells nobody that a lock is free
  } while (Clock::now() < give_up);
  if (lock->is_held_elsewhere())
    throw UserError("--checkpoint: another run is using {}; choose another folder", o.checkpoint);
  const auto found = checkpoints_in(folder);
  const std::filesystem::path resumed = o.resume == kResumeAuto ? o.checkpoint : o.resume;
  const bool resumes = std::filesystem::equivalent(resumed, folder, error) ||
                       std::filesystem::equivalent(resumed / "..", folder, error);
  if (!found.empty() && !resumes)
    throw UserError(
        "--checkpoint: {} has a checkpoint of iteration {}; continue with --resume auto, or choose "
        "another folder",
        o.checkpoint, found.back());
}

}  // namespace

Outputs::Outputs(const std::string& app, const TrainOptions& options, const std::string& features)
    : o_(checked(options, features)),
      failures_(app),
      console_(writes_to_stdout(o_) ? stderr : stdout, failures_),
      courses_{{{"--metrics", o_.metrics, Metrics::Format::json_lines}},
               {{"--csv", o_.csv, Metrics::Format::csv}}} {
  take_folder(o_, checkpoint_lock_);
}

void Outputs::begin(std::int64_t done) {
  for (Course& course : courses_)
    course.works = failures_.attempt_meanwhile(course.metrics.option(),
                                               [&] { course.metrics.begin(done > 0); });
}

void Outputs::sync_metrics() {
  for (Course& course : courses_) course.metrics.sync();
}

void Outputs::require_continuation() {
  for (Course& course : courses_) course.metrics.require_continuation();
}

void Outputs::visit(State& state) {
  for (Course& course : courses_) course.metrics.visit(state);
}

void Outputs::say(const std::string& text) {
  if (!o_.quiet) console_.print(text);
}

void Outputs::iteration(std::int64_t iteration, std::int64_t epoch, double loss, double lr,
                        double ms) {
  for (Course& course : courses_)
    if (course.works) course.metrics.iteration(iteration, epoch, loss, lr, ms);
}

void Outputs::test(std::int64_t epoch, std::int64_t iteration, double train_loss,
                   double test_accuracy, std::optional<double> objective, double wall_s) {
  for (Course& course : courses_)
    if (course.works)
      course.works = failures_.attempt_meanwhile(course.metrics.option(), [&] {
        course.metrics.test(epoch, iteration, train_loss, test_accuracy, objective, wall_s);
      });
}

void Outputs::plan(const MergePlan& plan) {
  if (o_.plan.empty() || !plan.file.empty()) return;
  failures_.attempt_meanwhile("--plan", [&] { write_file(o_.plan, to_json(plan, o_)); });
}

void Outputs::finish(const Summary& summary, const ParameterSet& weights) {
  if (!summary.checkpoints.failure.empty())
    failures_.attempt("--checkpoint",
                      [&] { throw SystemError("{}", summary.checkpoints.failure); });
  const auto write = [&](const char* option, const std::string& file, const auto& how) {
    if (!file.empty()) failures_.attempt(option, how);
  };
  write("--save", o_.save, [&] { save_weights(o_.save, weights); });
  write("--summary", o_.summary, [&] { write_file(o_.summary, to_json(summary)); });
  write("--trace", o_.trace, [&] { write_file(o_.trace, to_chrome_trace(summary)); });
  // A run that was interrupted so early has not failed.
  if (summary.profile.tensors.empty() && summary.stopped_by != 0 && !o_.profile.empty())
    say("profile: not written, because no iteration was timed\n");
  else
    write("--profile", o_.profile, [&] {
      if (summary.profile.tensors.empty()) throw SystemError("no iteration was timed");
      write_file(o_.profile, to_text(summary.profile));
    });
  say(to_text(summary));
  if (o_.timeline)
    say(timeline_text(summary.ranks[0], summary.starts.back() + summary.cold, summary.mean_ms(),
                      output_width(), o_.timeline_ms));
}

}  // namespace tandem
