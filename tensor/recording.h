#pragma once

namespace tandem {

// Work of a device that has been recorded once and can be queued again as a whole, which takes the
// host no longer than a single call. It reads and writes the memory that it was recorded with.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

}  // namespace tandem
