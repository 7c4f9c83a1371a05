// A device that the host cannot reach, for tests without one: the CPU, but gradients take the way
// that they take from a GPU, and the worst one that is allowed. A segment's bytes are there when
// they are waited for and not earlier, and values change when the event behind them is waited for
// and not earlier. Borrowed bytes are read when it is settled, and not earlier. Whoever touches
// bytes that are not his, now or later, is told so.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dist/block.h"
#include "dist/compress/compressor.h"
#include "tensor/cpu/cpu_backend.h"
#include "tensor/staging.h"

namespace tandem::test {

// Work that is done when somebody waits for it.
class LateEvent : public Event {
 public:
  explicit LateEvent(std::function<void()> work) : work_(std::move(work)) {}
  void wait() const override { std::call_once(once_, work_); }
  double seconds_since(const Event&) const override { return 0; }

 private:
  std::function<void()> work_;
  mutable std::once_flag once_;
};

class FakeStaging : public Staging {
 public:
  FakeStaging(std::unique_ptr<Compressor> compressor, std::int64_t count, bool borrows)
      : compressor_(std::move(compressor)),
        count_(count),
        borrows_(borrows),
        host_(compressor_->bytes(count)),
        sums_(host_.size()) {
    require(packed_bytes(compressor_->packing(), count, kBlock) == host_.size(), "packed size");
  }
  ~FakeStaging() override { read_borrowed(); }  // whoever fails must settle: else it is too late

  void begin(const Tensor& values, const EventPtr& ready, const Segments& segments) override {
    require(!std::exchange(begun_, true), "the values before are still on their way");
    require(ready != nullptr, "nobody knows when the values are ready");
    require(values.count() == count_, "{} values instead of {}", values.count(), count_);
    require(segments.length > 0 && segments.length % kBlock == 0, "segments of broken blocks");
    if (last_) last_->wait();
    ready->wait();
    values_ = values;
    segments_ = segments;
    arrived_ = put_ = 0;
    std::fill(host_.begin(), host_.end(), kNobodys);
    states_.assign(static_cast<std::size_t>((count_ + segments.length - 1) / segments.length),
                   segments.order.empty() ? State::arrived : State::coming);
    require(segments.order.empty() || segments.order.size() == states_.size(),
            "{} segments come, of {}", segments.order.size(), states_.size());
  }

  bool finite() override {
    for (const float v : values_.span<float>())
      if (!(v - v == 0)) return false;
    return true;
  }

  std::vector<float> values() override {
    require(put_ == 0, "values are asked for behind a put");
    return values_.to_host<float>();
  }

  void wait(std::int64_t segment) override {
    require(segments_.order.at(arrived_++) == segment, "segment {} is not the next", segment);
    require(state(segment) == State::coming, "segment {} is waited for twice", segment);
    const auto bytes = of(host_, segment);
    for (const std::byte b : bytes)
      require(b == kNobodys, "segment {} was written before it was there", segment);
    compressor_->compress(floats(segment), bytes);
    state(segment) = State::arrived;
  }

  std::span<std::byte> packed(std::int64_t segment) override { return of(host_, segment); }

  void put(std::int64_t segment) override {
    require(state(segment) == State::arrived, "segment {} is put, but not there", segment);
    state(segment) = State::put;
    ++put_;
    const auto from = of(host_, segment), to = of(sums_, segment);
    std::copy(from.begin(), from.end(), to.begin());
  }

  bool borrows() const override { return borrows_; }

  void put_borrowed(std::int64_t segment, std::span<const std::byte> bytes) override {
    if (bytes.data() == packed(segment).data()) return put(segment);
    require(borrows_, "who does not borrow was lent segment {}", segment);
    require(state(segment) == State::arrived, "segment {} is lent, but its own not there", segment);
    state(segment) = State::borrowed;
    ++put_;
    std::ranges::copy(bytes, of(sums_, segment).begin());
    borrowed_.emplace_back(segment, bytes);
  }

  void settle() override {
    require(read_borrowed(), "a sum has changed while it was borrowed");
    borrowed_.clear();
  }

  // Of the last begin() on.
  std::ptrdiff_t segments_borrowed() const { return std::ranges::count(states_, State::borrowed); }

  EventPtr finish() override {
    begun_ = false;
    require(borrowed_.empty(), "{} segments were borrowed for ever", borrowed_.size());
    require(put_ == 0 || put_ == states_.size(), "{} segments of {} were put", put_,
            states_.size());
    const bool back = put_ > 0;
    last_ = std::make_shared<LateEvent>([this, back, values = std::move(values_)] {
      if (!back) return;
      for (std::int64_t segment = 0; segment < std::ssize(states_); ++segment)
        require(state(segment) == State::borrowed ||
                    std::ranges::equal(of(host_, segment), of(sums_, segment)),
                "segment {}, which had been put, was written again", segment);
      compressor_->decompress(sums_, values.span<float>());
    });
    values_ = Tensor();
    return last_;
  }

 private:
  enum class State { coming, arrived, put, borrowed };

  // Whether it is what it was.
  bool read_borrowed() {
    bool same = true;
    for (const auto& [segment, bytes] : borrowed_)
      same = std::ranges::equal(bytes, of(sums_, segment)) && same;
    return same;
  }
  static constexpr std::byte kNobodys{0xa5};

  State& state(std::int64_t segment) { return states_.at(static_cast<std::size_t>(segment)); }

  std::span<float> floats(std::int64_t segment) const {
    const std::int64_t first = segment * segments_.length;
    return values_.span<float>().subspan(
        static_cast<std::size_t>(first),
        static_cast<std::size_t>(std::min(segments_.length, count_ - first)));
  }

  std::span<std::byte> of(std::vector<std::byte>& all, std::int64_t segment) const {
    const std::int64_t first = segment * segments_.length;
    return std::span(all).subspan(compressor_->bytes(first),
                                  compressor_->bytes(std::min(segments_.length, count_ - first)));
  }

  std::unique_ptr<Compressor> compressor_;
  std::int64_t count_;
  bool borrows_;
  Tensor values_;
  Segments segments_;
  std::vector<State> states_;  // by segment
  std::size_t arrived_ = 0, put_ = 0;
  bool begun_ = false;
  std::vector<std::byte> host_, sums_;
  std::vector<std::pair<std::int64_t, std::span<const std::byte>>> borrowed_;
  EventPtr last_;
};

class FakeGpu : public CpuBackend {
 public:
  explicit FakeGpu(bool borrows) : CpuBackend(1), borrows_(borrows) {}

  const char* name() const override { return "fake"; }
  bool is_cpu() const override { return false; }

  EventPtr record_event(Event::Timing) override {
    return std::make_shared<LateEvent>([] {});
  }
  void wait_for(const EventPtr& event) override {
    if (event) event->wait();
  }
  std::unique_ptr<Staging> make_staging(Packing packing, std::int64_t count,
                                        std::int64_t block) override {
    require(block == kBlock, "blocks of {} elements", block);
    for (const std::string& name : compressor_names())
      if (auto compressor = make_compressor(name); compressor->packing() == packing)
        return std::make_unique<FakeStaging>(std::move(compressor), count, borrows_);
    return nullptr;
  }

 private:
  bool borrows_;
};

inline Device fake_gpu() { return Device(std::make_shared<FakeGpu>(true)); }
inline Device fake_gpu_that_copies() { return Device(std::make_shared<FakeGpu>(false)); }

}  // namespace tandem::test
