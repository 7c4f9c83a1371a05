// Small JPEG and PNG files for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace tandem::test {

// A picture of the given size whose bytes are `value(y, x, channel)`.
std::vector<std::uint8_t> picture(std::int64_t height, std::int64_t width, std::int64_t channels,
                                  const std::function<int(int, int, int)>& value);
std::vector<std::uint8_t> random_picture(std::int64_t height, std::int64_t width,
                                         std::uint64_t seed);  // RGB

// By the name's ending; folders are made.
void write_image(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                 std::int64_t height, std::int64_t width, std::int64_t channels = 3);

}  // namespace tandem::test
