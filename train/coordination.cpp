#include "train/coordination.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "train/interruption.h"

namespace tandem {
namespace {

template <class T>
auto bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
auto writable_bytes_of(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Coordination::Coordination(const Run& run, const TrainOptions& o, Communication& communication,
                           const Device& device)
    : o_(o),
      communication_(communication),
      run_(run),
      host_(host_of(device)),
      next_meeting_(std::max(run.first, run.first_meeting)),
      last_meeting_(Clock::now()),
      last_checkpoint_(last_meeting_),
      last_meeting_t_(run.first - 1) {
  if (!o.checkpoint.empty())
    writer_ =
        std::make_unique<CheckpointWriter>(run.app, o.checkpoint, communication.transport().rank());
  if (!run.asynchronous) return;
  waits_for_answer_ = true;
  if (!writer_ || o.checkpoint_every > 0) next_meeting_ = std::numeric_limits<std::int64_t>::max();
}

double Coordination::seconds_between_meetings() const {
  return run_.asynchronous ? o_.checkpoint_seconds / 4 : 0.5;
}

Coordination::Orders Coordination::after(std::int64_t t) {
  if (asked_ && t > *asked_) take_answer(t);
  if (!asked_ && t == next_meeting_ && t < run_.last) {
    ask(t);
    if (waits_for_answer_) take_answer(t);
  }
  Orders orders = std::exchange(orders_, {});
  if (o_.checkpoint_every > 0 && t % o_.checkpoint_every == 0) orders.checkpoint = true;
  if (orders.stop != 0) orders.checkpoint = true;
  if (!writer_) orders.checkpoint = false;
  return t < run_.last ? orders : Orders();  // the run ends anyway
}

std::int64_t Coordination::next(std::int64_t t) const {
  if (orders_.checkpoint || orders_.stop != 0) return t + 1;  // from a meeting within save()
  std::int64_t next = asked_ ? *asked_ + 1 : std::max(t + 1, next_meeting_);
  if (o_.checkpoint_every > 0)
    next = std::min(next, (t / o_.checkpoint_every + 1) * o_.checkpoint_every);
  return std::min(next, run_.last);
}

void Coordination::ask(std::int64_t t) {
  asked_ = t;
  communication_.post(answers_, [this, t, pending = pending_] { return hold_meeting(t, pending); });
}

// t is the current iteration.
void Coordination::take_answer(std::int64_t t) {
  const Decision decision = answers_.take();
  asked_.reset();
  orders_.checkpoint = orders_.checkpoint || decision.checkpoint != 0;
  orders_.stop = std::max(orders_.stop, static_cast<int>(decision.signal));
  const bool by_time = o_.checkpoint_every == 0;
  if (!run_.asynchronous || by_time) next_meeting_ = t + decision.iterations;
  waits_for_answer_ = decision.iterations == 1 || run_.asynchronous;
  if (pending_ != 0 && decision.written != 0) {
    account_.failure = decision.failed_rank < 0
                           ? ""
                           : fmt::format("rank {} could not write its part of iteration {}",
                                         decision.failed_rank, pending_);
    if (decision.failed_rank < 0) {
      const CheckpointWriter::Status status = writer_->status();
      ++account_.checkpoints;
      account_.bytes += static_cast<double>(status.file.bytes);
      account_.write_s += status.write_s;
    }
    pending_ = 0;
  }
  if (writer_ && communication_.transport().rank() != 0 && decision.keep_from > keep_from_)
    writer_->remove_before(keep_from_ = decision.keep_from);
}

// On the communication thread.
Coordination::Decision Coordination::hold_meeting(std::int64_t t, std::int64_t pending) {
  Transport& transport = communication_.transport();
  report_ = {.signal = Interruptible::signal()};
  if (writer_) {
    const CheckpointWriter::Status status = writer_->status();
    report_.is = status.is;
    report_.file = status.file;
  }
  // Ranks reach a meeting at different times.
  const auto wait = [&](Request request) { transport.wait(request, Patience::while_others_work); };
  if (transport.rank() != 0) {
    wait(transport.send(0, Tag::control, bytes_of(report_)));
    wait(transport.receive(0, Tag::control, writable_bytes_of(decision_)));
    return decision_;
  }
  reports_.assign(static_cast<std::size_t>(transport.size()), report_);
  for (int rank = 1; rank < transport.size(); ++rank)
    wait(transport.receive(rank, Tag::control,
                           writable_bytes_of(reports_[static_cast<std::size_t>(rank)])));
  decision_ = decide(t, pending, reports_);
  for (int rank = 1; rank < transport.size(); ++rank)
    wait(transport.send(rank, Tag::control, bytes_of(decision_)));
  return decision_;
}

// On rank 0.
Coordination::Decision Coordination::decide(std::int64_t t, std::int64_t pending,
                                            const std::vector<Report>& reports) {
  using Is = CheckpointWriter::Status::Is;
  Decision decision;
  for (const Report& report : reports) decision.signal = std::max(decision.signal, report.signal);

  const auto now = Clock::now();
  if (t > last_meeting_t_) {  // not a second meeting after the same iteration
    const double elapsed = seconds_between(std::exchange(last_meeting_, now), now);
    const auto passed = static_cast<double>(t - std::exchange(last_meeting_t_, t));
    const double fitting = passed * seconds_between_meetings() / std::max(elapsed, 1e-9);
    interval_ = static_cast<std::int64_t>(std::clamp(fitting, 1.0, 4 * passed + 1));
  }
  decision.iterations = interval_;

  if (!writer_) return decision;
  if (pending != 0) {
    const auto is = [&](Is status) {
      return std::ranges::find(reports, status, &Report::is) - reports.begin();
    };
    decision.written = is(Is::writing) == std::ssize(reports);
    if (decision.written != 0 && is(Is::failed) < std::ssize(reports))
      decision.failed_rank = is(Is::failed);
    else if (decision.written != 0) {
      Manifest manifest{.iteration = pending, .made_for = run_.made_for};
      for (const Report& report : reports) manifest.files.push_back(report.file);
      writer_->complete(manifest, o_.keep);
    }
  }
  decision.keep_from = writer_->status().keep_from;
  const bool by_time = o_.checkpoint_every == 0 && (pending == 0 || decision.written != 0);
  if (by_time && seconds_between(last_checkpoint_, now) >= o_.checkpoint_seconds) {
    decision.checkpoint = 1;
    last_checkpoint_ = now;
  }
  return decision;
}

void Coordination::save(std::int64_t t, const std::function<void(Snapshot&)>& fill,
                        std::function<void()> before) {
  complete_pending(t);
  auto snapshot = std::make_shared<Snapshot>(host_);
  fill(*snapshot);
  writer_->write(t, std::move(snapshot), std::move(before));
  pending_ = t;
  if (run_.asynchronous) complete_pending(t);  // the next meeting may be far away
}

// All ranks call it after the same iteration.
void Coordination::complete_pending(std::int64_t t) {
  if (pending_ == 0) return;
  writer_->wait(o_.stall_timeout);
  if (asked_) take_answer(t);
  if (pending_ == 0) return;
  ask(t);
  take_answer(t);
}

void Coordination::finish() {
  if (asked_) take_answer(run_.last);
  if (!writer_) return;
  complete_pending(run_.last);
  if (writer_->wait(o_.stall_timeout).manifest_failed)
    account_.failure = "the last manifest could not be written";
}

}  // namespace tandem
