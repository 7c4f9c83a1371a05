// The threads of workers. They are started here and nowhere else, like the clock is read in
// clock.h.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace tandem {

using Thread = std::jthread;  // joins at its end

// What the scheduler should know of a thread: it computes for long, or it mostly waits and should
// run as soon as it wakes, also where there are more threads than cores.
enum class Work { computes, waits };

// Starts a thread that debuggers and `top -H` show by `name` (its first 15 characters). Its timed
// waits end on time: the 50 µs that Linux may add to spare wake-ups are as long as a network's
// latency.
Thread start_thread(const std::string& name, Work work, std::function<void()> body);

}  // namespace tandem
