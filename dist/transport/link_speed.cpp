#include "dist/transport/link_speed.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"

namespace tandem {
namespace {

struct Named {
  std::string_view name;
  double value;
};

// Parses a number with a unit, such as "2.5gbit"; nothing if `text` is something else.
std::optional<double> quantity(std::string_view text, std::span<const Named> units) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  for (const Named& u : units)
    if (unit == u.name) return number * u.value;
  return std::nullopt;
}

constexpr Named kRates[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
constexpr Named kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

// The rates are Ethernet's. The latencies are typical for two machines on one switch.
struct Ethernet {
  std::string_view name;
  double bits_per_s, latency_s;
};
constexpr Ethernet kEthernets[] = {
    {"1gbe", 1e9, 50e-6}, {"10gbe", 10e9, 30e-6}, {"25gbe", 25e9, 20e-6}, {"100gbe", 100e9, 10e-6}};

}  // namespace

LinkSpeed parse_link(const std::string& text) {
  if (text == "none") return {};
  for (const Ethernet& e : kEthernets)
    if (text == e.name) return {e.bits_per_s / 8, e.latency_s};

  const std::size_t slash = text.find('/');
  const auto rate = quantity(std::string_view(text).substr(0, slash), kRates);
  const auto latency = slash == std::string::npos
                           ? std::optional<double>(0)
                           : quantity(std::string_view(text).substr(slash + 1), kTimes);
  if (!rate || !latency || *rate < 1e3 || *rate > 1e13 || *latency < 0 || *latency > 10)
    throw UserError("--link must be {}, not {}", kLinkForms, text.empty() ? "empty" : text);
  return {*rate / 8, *latency};
}

}  // namespace tandem
