#include "train/start.h"

#include "dist/strategies.h"
#include "dist/timing/calibration.h"

namespace tandem {

NetworkCost calibrate_all(Communication& communication, const TrainOptions& o, const Length& length,
                          const Compressor& compressor) {
  return communication.call([&] {
    if (o.keeps_spans()) communication.spans().keep_all();
    communication.spans().count_from(length.cold_until() + 1);
    if (!strategy_named(o.algo).distributed()) return NetworkCost();
    Transport& transport = communication.transport();
    return calibrate(transport, transport.size(), compressor, o.device == DeviceKind::cpu);
  });
}

Coordination::Run coordinated_run(const std::string& app, const std::vector<Trait>& made_for,
                                  const TrainOptions& o, const Length& length) {
  return {.app = app,
          .made_for = made_for,
          .first = length.done + 1,
          .last = length.iterations,
          // Iterations that measure for a plan are not disturbed.
          .first_meeting = length.done + strategy_named(o.algo).measures_until + 1};
}

}  // namespace tandem
