#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "train/reporting.h"

namespace tandem {
namespace {

constexpr double kSecondsBetweenDrawings = 0.1;

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(bool quiet, std::int64_t done, std::int64_t iterations, std::int64_t epochs,
                   std::function<void(const std::string&)> say)
    : quiet_(quiet),
      bar_(!quiet && ::isatty(STDERR_FILENO) == 1),
      done_(done),
      iterations_(iterations),
      epochs_(epochs),
      say_(std::move(say)),
      begin_(Clock::now()),
      drawn_(begin_) {}

void Progress::step(std::int64_t iteration, double loss, double samples_per_s) {
  if (!bar_) return;
  const auto now = Clock::now();
  if (seconds_between(drawn_, now) < kSecondsBetweenDrawings) return;
  drawn_ = now;

  constexpr std::size_t kWidth = 24;
  const double share = static_cast<double>(iteration) / static_cast<double>(iterations_);
  const auto filled = static_cast<std::size_t>(share * kWidth);
  const double left = seconds_between(begin_, now) * static_cast<double>(iterations_ - iteration) /
                      static_cast<double>(iteration - done_);
  std::string line = fmt::format("[{:=<{}}{: <{}}] {:3.0f}%  loss {:.4f}", "", filled, "",
                                 kWidth - filled, 100 * share, loss);
  if (accuracy_ >= 0) line += fmt::format("  test {:.2f}%", 100 * accuracy_);
  line += fmt::format("  {:.0f} samples/s  {} left", samples_per_s, duration(left));
  line.resize(std::min(line.size(), terminal_width() - 1));  // a wrapped line cannot be cleared
  clear_bar();
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

void Progress::note(const std::string& line) {
  if (quiet_) return;
  clear_bar();
  say_(line);
}

void Progress::test(std::int64_t iteration, std::int64_t epoch, double train_loss,
                    double test_accuracy, double samples_per_s) {
  accuracy_ = test_accuracy;
  note(fmt::format("{}  loss {:.4f}  test {:.2f}%  {:.0f} samples/s\n",
                   epochs_ > 0 ? fmt::format("epoch {}/{}", epoch, epochs_)
                               : fmt::format("iteration {}/{}", iteration, iterations_),
                   train_loss, 100 * test_accuracy, samples_per_s));
}

void Progress::clear_bar() {
  if (bar_) std::fputs("\r\033[K", stderr);
}

}  // namespace tandem
