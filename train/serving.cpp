#include "train/serving.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/thread_pool.h"
#include "dist/compress/measured.h"
#include "dist/launch.h"
#include "dist/strategies.h"
#include "train/agreement.h"
#include "train/coordination.h"
#include "train/gathering.h"
#include "train/length.h"
#include "train/replica.h"
#include "train/start.h"

namespace tandem {
namespace {

// The first worker tells the servers when all workers have tested.
void wait_for_test(Communication& communication) {
  communication.call([&] {
    Transport& transport = communication.transport();
    Request tested = transport.receive(0, Tag::control, {});
    transport.wait(tested, Patience::while_others_work);
  });
}

// A server's state.
struct Serving {
  void visit(State& state) {
    communication.call([&] { server->visit(state); });
    visit_measurements(state, communication, sent_before);
  }
  std::unique_ptr<Server> server;
  Communication& communication;
  std::int64_t sent_before = 0;
};

// Returns the number of the signal that has stopped the run, or 0. Asynchronous workers test at the
// end only.
int serve(Serving& serving, const Length& length, bool asynchronous, Coordination& coordination) {
  Communication& communication = serving.communication;
  const auto finish = [&] { communication.call([&] { serving.server->finish(); }); };
  std::int64_t served = length.done;
  int stopped = 0;
  do {
    const std::int64_t test = asynchronous ? length.iterations : length.next_test(served);
    const std::int64_t last = std::min(test, coordination.next(served));
    communication.call([&] { serving.server->serve(served + 1, last); });
    served = last;
    const auto [saves, stop] = coordination.after(served);
    if (served == length.iterations && length.iterations > 0) finish();
    if (served == test) wait_for_test(communication);
    if (saves) coordination.save(served, [&](Snapshot& saved) { saved.save(serving); });
    if (stop != 0) finish();
    stopped = stop;
  } while (served < length.iterations && stopped == 0);
  coordination.finish();
  return stopped;
}

}  // namespace

int run_server(const Task& task, const DataSplit& data, const TrainOptions& o,
               const Compressor& compressor, Communication& communication,
               const std::vector<Trait>& made_for, Resumed resumed) {
  const Length length(data, o, resumed.iteration);
  std::optional<Replica> replica;
  // A server only sums and updates, in host memory, whatever device the workers use. If they use
  // GPUs, the server computes on the cores that sum messages.
  TrainOptions own = o;
  own.precision = Precision::fp32;
  own.no_error_feedback = true;  // it decodes only, so its codec has nothing to remember
  if (o.device != DeviceKind::cpu) own.threads = communication.transport().helpers()->threads();
  together(communication, [&] { replica.emplace(task, data, own, cpu_device(own.threads)); });
  require_same_start(communication, replica->parameters());
  calibrate_all(communication, o, length, compressor);
  Coordination coordination(coordinated_run(task.app, made_for, o, length), o, communication,
                            replica->device());
  std::optional<MeasuredCompressor> measured;
  if (!o.profile.empty()) measured.emplace(compressor);
  const std::unique_ptr<Codec> codec =
      make_codec(own, length, replica->parameters(), communication.transport().rank());
  Serving serving{
      .server = communication.call([&] {
        return strategy_named(o.algo).make_server({.parameters = replica->parameters(),
                                                   .optimizer = replica->optimizer(),
                                                   .spans = communication.spans(),
                                                   .communication = communication,
                                                   .compressor = measured ? *measured : compressor,
                                                   .codec = codec.get(),
                                                   .workers = o.workers,
                                                   .options = o.algo_options});
      }),
      .communication = communication};
  load(communication, resumed, serving);
  int stopped = 0;
  try {
    stopped = serve(serving, length, strategy_named(o.algo).asynchronous(), coordination);
  } catch (const std::exception& e) {
    communication.stop(e.what());  // pending communication uses the coordination
    throw;
  }
  gather_reports(communication,
                 {.server = true,
                  .bytes_sent = serving.sent_before,
                  .host = measured ? measured->work() : HostWork()},
                 Spans());
  return stopped;
}

}  // namespace tandem
