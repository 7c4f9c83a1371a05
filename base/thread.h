// The threads of workers. They are started only here, as the clock is read only in clock.h.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace tandem {

using Thread = std::jthread;  // joins at its end

// A hint for the scheduler. A thread computes for long, or it mostly waits and should run as soon
// as it wakes, even if there are more threads than cores.
enum class Work { computes, waits };

// Starts a thread that debuggers and `top -H` show as `name` (its first 15 characters). Its timed
// waits end on time: Linux may otherwise delay them by 50 µs to save wake-ups, as long as a
// network's latency.
Thread start_thread(const std::string& name, Work work, std::function<void()> body);

}  // namespace tandem
