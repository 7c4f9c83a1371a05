#include "train/plan_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "data/files.h"
#include "train/files.h"
#include "train/json_input.h"
#include "train/option_table.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

// Measured times depend on these options.
constexpr const char* kMadeFor[] = {"--algo",           "--workers", "--compress",  "--link",
                                    "--ranks-per-node", "--device",  "--precision", "--batch"};

const Json& filled_list_at(const Json& json, const char* name) {
  const Json& list = member(json, name);
  if (!list.is_array() || list.empty())
    throw UserError("\"{}\" must be a list that is not empty", name);
  return list;
}

// Seconds of so many milliseconds.
double seconds_at(const Json& json, const char* name) {
  constexpr double kMost = 1e9;
  const Json& value = member(json, name);
  const double ms = value.is_number() ? value.get<double>() : -1;
  if (!(ms >= 0 && ms <= kMost))
    throw UserError("\"{}\" must be a number of milliseconds, not {}", name, shown_value(value));
  return ms / 1e3;
}

double elements_at(const Json& json) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  const Json& value = member(json, "elements");
  if (!is_whole(value, kMost) || value == 0)
    throw UserError("\"elements\" must be a number of elements, not {}", shown_value(value));
  return value.get<double>();
}

void require_made_for(const Json& json, const TrainOptions& o) {
  for (const char* option : kMadeFor) {
    const Json& value = member(json, option);
    const std::string text = option_row(option).text(o);
    if (value != text)
      throw UserError(
          "it is for {} {}, not {}", option,
          value.is_string() ? shown(value.get_ref<const std::string&>()) : shown_value(value),
          text);
  }
}

MergePlan plan_in(const Json& json, const TrainOptions& o) {
  require_made_for(member(json, "made_for"), o);
  MergePlan plan{.update_s = seconds_at(json, "update_ms"), .file = o.plan};
  const Json& sum = member(json, "sum");
  plan.cost = {.a = seconds_at(sum, "a_ms"),
               .b = seconds_at(sum, "b_ms_per_mb") / 1e6,
               .all = seconds_at(sum, "everything_ms"),
               .all_ready = seconds_at(sum, "everything_ready_ms")};
  if (sum.contains("long")) {
    plan.cost.long_bytes = elements_at(sum["long"]) * sizeof(float);
    plan.cost.long_b = seconds_at(sum["long"], "b_ms_per_mb") / 1e6;
  }
  for (const Json& message : filled_list_at(json, "messages")) {
    const Json& layers = filled_list_at(message, "layers");
    plan.groups.push_back(layers.size());
    for (const Json& layer : layers) {
      plan.layers.push_back({seconds_at(layer, "ready_ms"), elements_at(layer) * sizeof(float)});
      const Json& name = member(layer, "name");
      if (!name.is_string()) throw UserError("\"name\" must be text, not {}", shown_value(name));
      plan.names.push_back(name);
    }
  }
  return plan;
}

}  // namespace

bool reads_plan(const TrainOptions& o) {
  std::error_code error;
  return !o.plan.empty() && !is_standard_output(o.plan) &&
         std::filesystem::is_regular_file(o.plan, error);
}

MergePlan read_plan(const TrainOptions& o) {
  constexpr std::uint64_t kMostBytes = 10'000'000;
  try {
    if (regular_file_bytes(o.plan) > kMostBytes)
      throw UserError("it has more than {} bytes", kMostBytes);
    return plan_in(parse_json(read_file(o.plan)), o);
  } catch (const std::runtime_error& e) {
    throw UserError("--plan: the plan in {} cannot be used: {}", o.plan, e.what());
  }
}

// By hand, with a layer per line.
std::string to_json(const MergePlan& plan, const TrainOptions& o) {
  const auto quoted = [](const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  const auto predicted_ms = [&](const Groups& groups) { return 1e3 * plan.predicted_s(groups); };
  std::string made_for, messages, long_sums;
  if (plan.cost.long_bytes > 0)
    long_sums = fmt::format(R"(, "long": {{"elements": {:.0f}, "b_ms_per_mb": {:.6g}}})",
                            plan.cost.long_bytes / sizeof(float), 1e9 * plan.cost.long_b);
  for (const char* option : kMadeFor)
    made_for += fmt::format("{}{}: {}", made_for.empty() ? "" : ", ", quoted(option),
                            quoted(option_row(option).text(o)));
  std::size_t i = 0;
  for (const std::size_t size : plan.groups) {
    std::string layers;
    for (const std::size_t end = i + size; i < end; ++i) {
      layers += fmt::format(R"({}      {{"name": {}, "elements": {:.0f}, "ready_ms": {:.6g}}})",
                            layers.empty() ? "" : ",\n", quoted(plan.names[i]),
                            plan.layers[i].bytes / sizeof(float), 1e3 * plan.layers[i].ready);
    }
    messages += fmt::format("{}    {{\"layers\": [\n{}]}}", messages.empty() ? "" : ",\n", layers);
  }
  return fmt::format(
      "{{\n"
      "  \"made_for\": {{{}}},\n"
      "  \"predicted_ms\": {:.6g},\n"
      "  \"predicted_ms_of_1_message\": {:.6g},\n"
      "  \"predicted_ms_per_tensor\": {:.6g},\n"
      "  \"sum\": {{\"a_ms\": {:.6g}, \"b_ms_per_mb\": {:.6g}, \"everything_ms\": {:.6g}, "
      "\"everything_ready_ms\": {:.6g}{}}},\n"
      "  \"update_ms\": {:.6g},\n"
      "  \"messages\": [\n{}]\n"
      "}}\n",
      made_for, predicted_ms(plan.groups), predicted_ms(all_together(plan.layers)),
      predicted_ms(each_alone(plan.layers)), 1e3 * plan.cost.a, 1e9 * plan.cost.b,
      1e3 * plan.cost.all, 1e3 * plan.cost.all_ready, long_sums, 1e3 * plan.update_s, messages);
}

}  // namespace tandem
