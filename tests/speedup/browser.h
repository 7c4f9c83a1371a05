// Opens a page in a browser without a window, if there is one.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support.h"

namespace tandem::test {

inline bool in_path(const std::string& program) {
  return Process({"sh", "-c", "command -v " + program}).wait().status == 0;
}

// Chromium or a relative; empty if none is installed.
inline std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (in_path(name)) return name;
  return "";
}

// `out` is the page as its scripts left it. `err` has a line with CONSOLE for each of their
// messages. `hash` is what follows the file's name, such as "#tables".
inline ProgramResult browse(const std::filesystem::path& page, const std::string& hash = "",
                            const std::string& window = "500,900") {
  const TemporaryFolder folder;
  return Process({browser(), "--headless", "--no-sandbox", "--disable-gpu",
                  "--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000",
                  "--window-size=" + window, "--user-data-dir=" + (folder / "profile").string(),
                  "--dump-dom", "file://" + page.string() + hash})
      .wait();
}

}  // namespace tandem::test
