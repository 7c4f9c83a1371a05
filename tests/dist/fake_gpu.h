// A fake GPU for tests on machines without one. It computes on the CPU, but gradients take the same
// path as from a GPU, with the worst timing that is allowed. A segment's bytes arrive only when
// they are waited for. Values change only when their event is waited for. Bytes that were put from
// elsewhere are read only in settle(). Any forbidden access to bytes fails a require().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "dist/compress/magnitude.h"
#include "tensor/cpu/cpu_backend.h"
#include "tensor/staging.h"

namespace tandem::test {

// An event whose work is done only when a thread waits for it.
class LateEvent : public Event {
 public:
  explicit LateEvent(std::function<void()> work) : work_(std::move(work)) {}
  void wait() const override { std::call_once(once_, work_); }
  // Not at the first question.
  bool passed() const override {
    if (!asked_.exchange(true)) return false;
    wait();
    return true;
  }
  double seconds_since(const Event&) const override { return 0; }

 private:
  std::function<void()> work_;
  mutable std::once_flag once_;
  mutable std::atomic<bool> asked_ = false;
};

class FakeStaging : public Staging {
 public:
  FakeStaging(std::unique_ptr<Compressor> compressor, std::int64_t count)
      : compressor_(std::move(compressor)), count_(count) {}
  ~FakeStaging() override { read_borrowed(); }  // a caller that fails must settle() before

  void begin(const Tensor& values, const EventPtr& ready, const std::vector<Segment>& segments,
             Fill fill) override {
    require(!std::exchange(begun_, true), "begin() was called before finish()");
    require(ready != nullptr, "begin() needs an event");
    require(values.count() == count_, "{} values instead of {}", values.count(), count_);
    std::int64_t covered = 0;
    for (const Segment& s : segments) covered += s.count;
    require(covered == count_, "segments cover {} values of {}", covered, count_);
    if (last_) last_->wait();
    ready->wait();
    values_ = values;
    segments_ = segments;
    put_ = 0;
    places_ = places_of(segments, compressor_->packing(), kBlock);
    host_.assign(places_.back(), kNobodys);
    sums_.assign(places_.back(), kNobodys);
    states_.assign(segments.size(), fill == Fill::by_host ? State::arrived : State::coming);
  }

  bool finite() override {
    return all_finite({values_.data<float>(), static_cast<std::size_t>(count_)});
  }

  std::vector<float> values() override {
    require(put_ == 0, "values() was called after put()");
    return values_.to_host<float>();
  }

  void wait(std::size_t segment) override {
    require(states_[segment] == State::coming, "segment {} is waited for twice", segment);
    const auto bytes = of(host_, segment);
    // All bytes are kNobodys if the first one is and each is the same as the next.
    require(bytes.empty() ||
                (bytes[0] == kNobodys && same(bytes.first(bytes.size() - 1), bytes.subspan(1))),
            "segment {} was written before it arrived", segment);
    for_each_run(values_, segment, host_,
                 [&](auto values, auto packed) { compressor_->compress(values, packed); });
    states_[segment] = State::arrived;
  }

  Pieces packed(std::size_t segment) override { return of(host_, segment); }

  void put(std::size_t segment, const ConstPieces& from) override {
    require(states_[segment] == State::arrived, "segment {} was put before it arrived", segment);
    const auto bytes = from.whole();
    const bool own = bytes.data() == of(host_, segment).data();
    states_[segment] = own ? State::put : State::borrowed;
    ++put_;
    std::memcpy(of(sums_, segment).data(), bytes.data(), bytes.size());
    if (!own) borrowed_.emplace_back(segment, bytes);
  }

  void settle() override {
    require(read_borrowed(), "a sum has changed while it was borrowed");
    borrowed_.clear();
  }

  // Since the last begin().
  std::ptrdiff_t segments_borrowed() const { return std::ranges::count(states_, State::borrowed); }

  EventPtr finish() override {
    begun_ = false;
    require(borrowed_.empty(), "{} segments were put from elsewhere without settle()",
            borrowed_.size());
    const auto all = static_cast<std::size_t>(
        std::ranges::count_if(segments_, [](const Segment& s) { return s.count > 0; }));
    require(put_ == 0 || put_ == all, "{} segments of {} were put", put_, all);
    const bool back = put_ > 0;
    last_ = std::make_shared<LateEvent>([this, back, values = std::move(values_)] {
      if (!back) return;
      for (std::size_t segment = 0; segment < states_.size(); ++segment) {
        require(states_[segment] != State::put || same(of(host_, segment), of(sums_, segment)),
                "segment {} was written after it was put", segment);
        for_each_run(values, segment, sums_,
                     [&](auto to, auto packed) { compressor_->decompress(packed, to); });
      }
    });
    values_ = Tensor();
    return last_;
  }

 private:
  enum class State { coming, arrived, put, borrowed };
  static constexpr std::byte kNobodys{0xa5};

  // Byte by byte, this and copying would take most of the time of sanitized tests.
  static bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }

  // Whether the borrowed bytes are unchanged.
  bool read_borrowed() {
    bool unchanged = true;
    for (const auto& [segment, bytes] : borrowed_)
      unchanged = same(bytes, of(sums_, segment)) && unchanged;
    return unchanged;
  }

  std::span<std::byte> of(std::vector<std::byte>& all, std::size_t segment) const {
    return std::span(all).subspan(places_[segment], compressor_->bytes(segments_[segment].count));
  }

  template <class F>
  void for_each_run(const Tensor& values, std::size_t segment, std::vector<std::byte>& all, F&& f) {
    segments_[segment].for_each_run(kBlock, [&](std::int64_t first, std::int64_t i,
                                                std::int64_t n) {
      f(values.span<float>().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n)),
        of(all, segment).subspan(compressor_->bytes(i), compressor_->bytes(n)));
    });
  }

  std::unique_ptr<Compressor> compressor_;
  std::int64_t count_;
  Tensor values_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> places_;
  std::vector<State> states_;  // by segment
  std::size_t put_ = 0;
  bool begun_ = false;
  std::vector<std::byte> host_, sums_;
  std::vector<std::pair<std::size_t, std::span<const std::byte>>> borrowed_;
  EventPtr last_;
};

class FakeGpu : public CpuBackend {
 public:
  FakeGpu() : CpuBackend(1) {}

  const char* name() const override { return "fake"; }
  bool is_cpu() const override { return false; }

  EventPtr record_event(Event::Timing) override {
    return std::make_shared<LateEvent>([] {});
  }
  void wait_for(const EventPtr& event) override {
    if (event) event->wait();
  }
  std::shared_ptr<Backend> make_host() override { return std::make_shared<CpuBackend>(1); }
  std::unique_ptr<Staging> make_staging(Packing packing, std::int64_t count,
                                        std::int64_t block) override {
    require(block == kBlock, "blocks of {} elements", block);
    for (const std::string& name : compressor_names())
      if (auto compressor = make_compressor(name); compressor->packing() == packing)
        return std::make_unique<FakeStaging>(std::move(compressor), count);
    return nullptr;
  }
};

inline Device fake_gpu() { return Device(std::make_shared<FakeGpu>()); }

}  // namespace tandem::test
