// A point in a device's queue of work. It has passed when all work queued before it is done. The
// CPU has no events, because its calls return when the work is done; a null EventPtr has always
// passed.
#pragma once

#include <memory>

namespace tandem {

class Event {
 public:
  enum class Timing { off, on };

  virtual ~Event() = default;
  virtual void wait() const = 0;  // until it has passed
  virtual bool passed() const = 0;
  // Seconds from an earlier event of the same device to this one. Both must have passed and been
  // recorded with Timing::on.
  virtual double seconds_since(const Event& earlier) const = 0;
};

using EventPtr = std::shared_ptr<Event>;

}  // namespace tandem
