#include "dist/strategies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "dist/ad_psgd/ad_psgd.h"
#include "dist/asp/asp.h"
#include "dist/d_sync.h"
#include "dist/easgd/easgd.h"
#include "dist/gosgd/gosgd.h"
#include "dist/local_sgd.h"
#include "dist/param_server/node_sum.h"
#include "dist/param_server/ps_sync.h"
#include "dist/param_server/server.h"
#include "dist/pipe_sgd/pipe_sgd.h"
#include "dist/schedule/overlap.h"
#include "dist/schedule/p3.h"
#include "dist/single.h"
#include "dist/ssp/ssp.h"

namespace tandem {
namespace {

template <class S>
std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<S>(context);
}

std::unique_ptr<Server> make_parameter_server(const StrategyContext& c, std::vector<int> peers) {
  return std::make_unique<ParameterServer>(
      c.communication.transport(), std::move(peers), static_cast<int>(c.option("--servers")),
      c.parameters, c.optimizer, c.compressor, c.communication.spans(), push_time(c.options));
}
std::unique_ptr<Server> make_parameter_server(const StrategyContext& c) {
  std::vector<int> workers(static_cast<std::size_t>(c.workers));
  std::iota(workers.begin(), workers.end(), 0);
  return make_parameter_server(c, std::move(workers));
}

std::unique_ptr<Strategy> make_ps_sync(const StrategyContext& context) {
  return nodes_first(context.options) ? make<NodeSum>(context) : make<PsSync>(context);
}
std::unique_ptr<Server> make_ps_sync_server(const StrategyContext& c) {
  return nodes_first(c.options)
             ? make_parameter_server(c, node_leaders(c.communication.transport(), c.workers))
             : make_parameter_server(c);
}

template <class S>
std::unique_ptr<Server> make_server(const StrategyContext& context) {
  return std::make_unique<S>(context);
}

// SSP without staleness is PS-Sync.
std::unique_ptr<Strategy> make_ssp(const StrategyContext& context) {
  return context.option("--staleness") == 0 ? make<PsSync>(context) : make<Ssp>(context);
}
std::unique_ptr<Server> make_ssp_server(const StrategyContext& context) {
  return context.option("--staleness") == 0 ? make_parameter_server(context)
                                            : make_server<SspServer>(context);
}

// ---- which gradients are sent together

template <Merging merging>
std::unique_ptr<Strategy> make_overlap(const StrategyContext& context) {
  return std::make_unique<Overlap>(context, merging);
}

Groups wfbp(const Layers& layers, const SumCost&, const StrategyOptions&) {
  return each_alone(layers);
}
Groups buckets(const Layers& layers, const SumCost&, const StrategyOptions& given) {
  return of_size(layers, static_cast<double>(option_value(given, "--bucket-mb")) * 1e6);
}
Groups mg_wfbp(const Layers& layers, const SumCost& cost, const StrategyOptions&) {
  return by_theorem_1(layers, cost);
}
Groups merge(const Layers& layers, const SumCost& cost, const StrategyOptions&) {
  return optimal(layers, cost);
}

// ---- how slices are sent

StrategyOption servers_option() {
  return {.name = "--servers",
          .value_name = "N",
          .help = "number of servers, extra ranks that each sum a part of the gradient",
          .value = 1,
          .least = 1,
          .most = 1024};
}

StrategyOption push_option() {
  return {.name = "--push",
          .value_name = "after-backward|during-backward",
          .help =
              "when a gradient is pushed to the servers. during-backward: each part of it as "
              "soon as backward has finished it",
          .most = 1,
          .choices = {"after-backward", "during-backward"}};
}

StrategyOption period_option() {
  return {.name = "--period",
          .value_name = "H",
          .help = "average the weights after every H iterations",
          .value = 8,
          .least = 1,
          .most = 1'000'000};
}

StrategyOption via_option(const std::vector<std::string>& choices) {
  return {.name = "--via",
          .value_name = fmt::format("{}", fmt::join(choices, "|")),
          .help =
              "who adds slices. direct: the workers, each a part; servers: --servers extra "
              "ranks; ring: all workers, in an order that the first one chooses",
          .most = std::ssize(choices) - 1,
          .choices = choices};
}

// P3's values of --order.
enum class Order : std::int64_t { priority, ready };

std::vector<Slice> cut_p3(const StrategyContext& c, const std::vector<Stage>& stages,
                          const std::vector<const Parameter*>& use, int) {
  auto slices = slices_of(stages, use, c.option("--slice"));
  const bool by_urgency = static_cast<Order>(c.option("--order")) == Order::priority;
  return by_urgency ? slices : in_order(std::move(slices));
}
constexpr Propagation kP3{.cut = cut_p3};

std::vector<Slice> cut_ps_wfbp(const StrategyContext&, const std::vector<Stage>& stages,
                               const std::vector<const Parameter*>&, int adders) {
  return whole_stages(stages, adders);
}
constexpr Propagation kPsWfbp{.cut = cut_ps_wfbp, .on_request = true};

template <const Propagation& propagation>
std::unique_ptr<Strategy> make_p3(const StrategyContext& context) {
  return std::make_unique<P3>(context, propagation);
}
template <const Propagation& propagation>
std::unique_ptr<Server> make_sum_server(const StrategyContext& context) {
  return std::make_unique<SumServer>(context, adders_of(context, propagation.on_request));
}

// ---- predictions, by the equations of timing/model.h

double ring_of(const ModelInput& m) {
  return ring_time(m.network, m.workers, m.gradient_bytes, m.wire_bytes);
}

double d_sync(const ModelInput& m) { return sync_iteration(m.compute, ring_of(m)); }

std::optional<double> predict_d_sync(const ModelInput& m) { return d_sync(m); }

// What overlaps with backward depends on the layers, which the input does not have. Nor does it say
// who shares a node.
std::optional<double> predict_ps_sync(const ModelInput& m) {
  if (push_time(m.options) == PushTime::during_backward || nodes_first(m.options)) return {};
  const auto servers = static_cast<int>(option_value(m.options, "--servers"));
  return sync_iteration(m.compute,
                        server_time(m.network, m.workers, servers, m.gradient_bytes, m.wire_bytes));
}

std::optional<double> predict_pipe_sgd(const ModelInput& m) {
  if (option_value(m.options, "--pipe-k") == 1) return d_sync(m);
  return m.closed * d_sync(m) + (1 - m.closed) * pipe_iteration(m.compute, ring_of(m));
}

std::optional<double> predict_local_sgd(const ModelInput& m) {
  const auto period = static_cast<double>(option_value(m.options, "--period"));
  return sync_iteration(m.compute, ring_of(m) / period);
}

// ---- predictions from what a trial has measured

template <Merging merging>
double forecast_overlap(const MergePlan& measured, const StrategyOptions& given) {
  return measured.predicted_s(merging(measured.layers, measured.cost, given));
}

double forecast_d_sync(const MergePlan& measured, const StrategyOptions&) {
  return measured.predicted_s(all_together(measured.layers));
}

// Eq. 4. Backward takes as long as while gradients are sent.
double forecast_pipe_sgd(const MergePlan& measured, const StrategyOptions& given) {
  if (option_value(given, "--pipe-k") == 1) return forecast_d_sync(measured, given);
  const ComputeCost compute{.update = measured.update_s, .backward = measured.layers.back().ready};
  return pipe_iteration(compute, measured.cost.all);
}

// ---- why some algorithms cannot use codecs

std::string server_adds(const StrategyOptions&) {
  return "its servers add only values that are plain, trunc16 or quant8";
}
std::string averages(const StrategyOptions&) {
  return "it averages weights, and codecs are for gradients";
}
std::string not_via_ring(const StrategyOptions& given) {
  return via(given) == Via::ring ? "" : "only --via ring can add encoded gradients";
}
std::string not_stale(const StrategyOptions& given) {
  return option_value(given, "--staleness") > 0
             ? ""
             : "--staleness 0 is ps-sync, whose server adds only values that are plain, trunc16 or "
               "quant8";
}

// ---- the table

std::vector<StrategyInfo> make_strategy_table() {
  using Warmup = StrategyOption::Warmup;
  return {
      {.name = "single", .help = "one worker", .family = Family::alone, .make = make<Single>},
      {.name = "ps-sync",
       .help = "parameter server",
       .family = Family::synchronous,
       .make = make_ps_sync,
       .make_server = make_ps_sync_server,
       .predict = predict_ps_sync,
       .options = {servers_option(),
                   push_option(),
                   {.name = "--aggregate",
                    .value_name = "servers|nodes-first",
                    .help = "who adds gradients. servers: the servers alone; nodes-first: the "
                            "workers of a node (--ranks-per-node) add theirs, and one of them "
                            "sends the sum",
                    .most = 1,
                    .choices = {"servers", "nodes-first"}}},
       .rows = {.label = "PS-Sync", .compressors = {"none"}},
       .no_codecs = server_adds},
      {.name = "ps-wfbp",
       .help = "the baseline of P3's paper: each layer to a server and back during backward",
       .family = Family::synchronous,
       .make = make_p3<kPsWfbp>,
       .make_server = make_sum_server<kPsWfbp>,
       .options = {servers_option(), via_option({"direct", "servers"})},
       .rows = {.label = "PS-WFBP", .by_default = false},
       .measures_until = kLastMeasuredSending,
       .no_codecs = server_adds},
      {.name = "d-sync",
       .help = "ring all-reduce after backward",
       .family = Family::synchronous,
       .make = make<DSync>,
       .predict = predict_d_sync,
       .forecast = forecast_d_sync,
       .rows = {.label = "D-Sync"}},
      {.name = "sync-easgd",
       .help = "the same as d-sync, by the name that MG-WFBP's paper uses",
       .family = Family::synchronous,
       .make = make<DSync>,
       .predict = predict_d_sync,
       .forecast = forecast_d_sync,
       .rows = {.label = "Sync-EASGD", .by_default = false}},
      {.name = "wfbp",
       .help = "an all-reduce per tensor, during backward",
       .family = Family::synchronous,
       .make = make_overlap<wfbp>,
       .forecast = forecast_overlap<wfbp>,
       .rows = {.label = "WFBP", .by_default = false},
       .measures_until = kLastMeasuredSending},
      {.name = "buckets",
       .help = "an all-reduce per bucket of fixed size, during backward",
       .family = Family::synchronous,
       .make = make_overlap<buckets>,
       .forecast = forecast_overlap<buckets>,
       .options = {{.name = "--bucket-mb",
                    .value_name = "N",
                    .help = "size of a bucket in MB; the last one may be smaller",
                    .value = 25,
                    .least = 1,
                    .most = 1'000'000,
                    .elements = 1e6 / sizeof(float)}},
       .rows = {.label = "Buckets", .by_default = false},
       .measures_until = kLastMeasuredSending},
      {.name = "mg-wfbp",
       .help = "as wfbp, with tensors merged by Theorem 1 of MG-WFBP",
       .family = Family::synchronous,
       .make = make_overlap<mg_wfbp>,
       .forecast = forecast_overlap<mg_wfbp>,
       .rows = {.label = "MG-WFBP", .by_default = false},
       .measures_until = kLastMeasuredSending,
       .keeps_plan = true},
      {.name = "merge",
       .help = "as wfbp, with tensors merged for the shortest time",
       .family = Family::synchronous,
       .make = make_overlap<merge>,
       .forecast = forecast_overlap<merge>,
       .rows = {.label = "Merge", .by_default = false},
       .measures_until = kLastMeasuredSending,
       .keeps_plan = true},
      {.name = "p3",
       .help = "slices by priority; the next forward waits layer by layer",
       .family = Family::synchronous,
       .make = make_p3<kP3>,
       .make_server = make_sum_server<kP3>,
       .options = {servers_option(),
                   via_option({"direct", "servers", "ring"}),
                   {.name = "--slice",
                    .value_name = "N",
                    .help = "elements of the gradient per slice, rounded to blocks of 2048",
                    .value = 50'000,
                    .least = 1,
                    .most = 1'000'000'000,
                    .elements = 1},
                   {.name = "--order",
                    .value_name = "priority|ready",
                    .help = "which slice is sent next. priority: the one that the next forward "
                            "needs first; ready: the one that backward finished first",
                    .most = 1,
                    .choices = {"priority", "ready"}}},
       .rows = {.label = "P3", .by_default = false},
       .measures_until = kLastMeasuredSending,
       .no_codecs = not_via_ring},
      {.name = "pipe-sgd",
       .help = "the all-reduce overlaps the next iterations",
       .family = Family::delayed,
       .make = make<PipeSgd>,
       .predict = predict_pipe_sgd,
       .forecast = forecast_pipe_sgd,
       .options = {{.name = "--pipe-k",
                    .value_name = "K",
                    .help = "an update uses the gradients of K iterations ago. 1 is d-sync, 2 "
                            "hides all communication that can be hidden",
                    .value = 2,
                    .least = 1,
                    .most = 64},
                   {.name = "--warmup-iterations",
                    .value_name = "N",
                    .help = "begin with N iterations of d-sync",
                    .value = 0,
                    .least = 0,
                    .most = 1'000'000'000,
                    .warmup = Warmup::iterations},
                   {.name = "--warmup-epochs",
                    .value_name = "N",
                    .help = "the same in epochs; the two are added",
                    .value = 0,
                    .least = 0,
                    .most = 1'000'000,
                    .warmup = Warmup::epochs}},
       .rows = {.label = "Pipe-SGD"}},
      {.name = "local-sgd",
       .help = "workers train independently and periodically average their weights",
       .family = Family::averaging,
       .make = make<LocalSgd>,
       .predict = predict_local_sgd,
       .options = {period_option()},
       .rows = {.label = "Local-SGD", .by_default = false},
       .no_codecs = averages},
      {.name = "asp",
       .help = "as ps-sync, but servers apply each worker's gradient at once",
       .family = Family::asynchronous,
       .make = make<Asp>,
       .make_server = make_server<AspServer>,
       .options = {servers_option(), push_option()},
       .rows = {.label = "ASP", .by_default = false}},
      {.name = "ssp",
       .help = "as asp, but no worker is far ahead of the slowest",
       .family = Family::asynchronous,
       .make = make_ssp,
       .make_server = make_ssp_server,
       .options = {servers_option(),
                   {.name = "--staleness",
                    .value_name = "S",
                    .help = "how many iterations a worker may be ahead of the slowest; 0 is "
                            "ps-sync",
                    .value = 3,
                    .least = 0,
                    .most = 1'000'000},
                   push_option()},
       .rows = {.label = "SSP", .by_default = false},
       .no_codecs = not_stale},
      {.name = "easgd",
       .help = "workers train independently; servers hold them together",
       .family = Family::asynchronous,
       .make = make<Easgd>,
       .make_server = make_server<EasgdServer>,
       .options = {servers_option(),
                   period_option(),
                   {.name = "--elastic-rate",
                    .value_name = "A",
                    .help = "how far a worker and the servers' weights move towards each other, as "
                            "a part of their distance; 0: 0.9 divided by the workers",
                    .value = 0,
                    .least = 0,
                    .most = 1'000'000,
                    .parts = 1'000'000}},
       .rows = {.label = "EASGD", .compressors = {"none"}, .by_default = false},
       .sends_weights = true},
      {.name = "gosgd",
       .help = "workers train independently and send their weights to random others",
       .family = Family::asynchronous,
       .make = make<GoSgd>,
       .options = {{.name = "--gossip-p",
                    .value_name = "P",
                    .help = "the probability that a worker sends its weights after an iteration",
                    .value = 10'000,
                    .least = 1,
                    .most = 1'000'000,
                    .parts = 1'000'000}},
       .rows = {.label = "GoSGD", .compressors = {"none"}, .by_default = false},
       .sends_weights = true,
       .least_workers = 2},
      {.name = "ad-psgd",
       .help = "workers average their weights with random neighbours while they compute",
       .family = Family::asynchronous,
       .make = make<AdPsgd>,
       .options = {{.name = "--topology",
                    .value_name = "ring|exponential|complete",
                    .help = "who is whose neighbour; even ranks choose among odd ones. "
                            "exponential: at distances 1, 3, 5, 9, 17 and so on",
                    .most = 2,
                    .choices = {"ring", "exponential", "complete"}}},
       .rows = {.label = "AD-PSGD", .compressors = {"none"}, .by_default = false},
       .sends_weights = true,
       .least_workers = 2},
  };
}

}  // namespace

const std::vector<StrategyInfo>& all_strategies() {
  static const std::vector<StrategyInfo> kTable = make_strategy_table();
  return kTable;
}

}  // namespace tandem
