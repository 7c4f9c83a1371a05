// What a GPU does asynchronously: events, copies, recorded steps, memory.
#include "data/synthetic.h"
#include "dist/launch.h"
#include "layers/linear.h"
#include "layers/models/models.h"
#include "layers/sequential.h"
#include "layers/simple.h"
#include "tests/cuda/compare.h"
#include "train/check_options.h"
#include "train/run_ahead.h"
#include "train/step_runner.h"
#include "train/worker.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::unique_ptr<Layer> dropout_net() {
  const Random random(1, Purpose::weights);
  auto model = std::make_unique<Sequential>();
  model->add<Flatten>("flatten")
      .add<Linear>("0", 784, 60, Init::he_normal, random.split(0))
      .add<Relu>("1")
      .add<Dropout>("2", 0.5)
      .add<Linear>("3", 60, 10, Init::xavier_normal, random.split(3));
  return model;
}

// Hears of parameters in the order in which they are ready.
struct Listener : Hooks {
  void on_grad_ready(Parameter& p) override { ready.push_back({&p, p.ready}); }
  bool wants_ready_events() const override { return true; }
  struct Ready {
    Parameter* parameter;
    EventPtr event;
  };
  std::vector<Ready> ready;
};

// A net that runs steps on one batch, whose place stays the same.
class Stepper {
 public:
  Stepper(std::unique_ptr<Layer> model, Precision precision, bool record)
      : device_(cuda_device({.precision = precision, .deterministic = true})),
        dtype_(activation_dtype(precision)),
        model_(std::move(model)),
        parameters_(model_->parameters(), device_, dtype_),
        batch_{Tensor::empty({20, 28, 28, 1}, dtype_, device_),
               Tensor::empty({20}, Dtype::i32, device_)},
        runner_(
            record, [this](const Batch& b) { return forward(b); }, listener_, parameters_, tape_,
            spans_) {}

  // Queues step t, with a batch and random numbers of its own; returns the loss.
  Tensor run(std::uint64_t t) {
    Backend& backend = device_.backend();
    backend.cast(random_tensor({20, 28, 28, 1}, t, Dtype::f32, device_), batch_.images);
    std::vector<std::int32_t> labels;
    for (std::uint64_t i = 0; i < 20; ++i) labels.push_back(static_cast<std::int32_t>(i * t % 10));
    batch_.labels.copy_from_host(std::span<const std::int32_t>(labels));
    backend.fill(parameters_.gradients(), 1e30);  // every step must write them
    random_ = Random(t);
    backend.begin_step(random_);
    listener_.ready.clear();
    return runner_.run(batch_);
  }

  const std::vector<Listener::Ready>& ready() const { return listener_.ready; }

 private:
  Var forward(const Batch& batch) {
    tape_.begin(Tape::Mode::training, random_);
    return softmax_cross_entropy(tape_, model_->forward(tape_, Var{batch.images}), batch.labels);
  }

  Device device_;
  Dtype dtype_;
  std::unique_ptr<Layer> model_;
  ParameterSet parameters_;
  Batch batch_;
  Random random_;
  Listener listener_;
  Tape tape_;
  Spans spans_;
  StepRunner runner_;
};

// What is there when each parameter's event has passed, read past the queue by another worker.
std::vector<std::vector<float>> gradients_when_ready(const Stepper& stepper, const Device& reader) {
  std::vector<std::vector<float>> all;
  for (const auto& [parameter, event] : stepper.ready()) {
    REQUIRE(event);
    const Tensor copy = Tensor::empty(parameter->shape, Dtype::f32, reader);
    event->wait();
    reader.backend().copy(parameter->gradient, copy);
    all.push_back(floats(copy));
  }
  return all;
}

std::vector<std::string> names_of(const Stepper& stepper) {
  std::vector<std::string> names;
  for (const auto& ready : stepper.ready()) names.push_back(ready.parameter->name);
  return names;
}

}  // namespace

TEST_CASE("cuda: step: events pass in order and measure time") {
  const Device device = cuda_device({});
  Backend& backend = device.backend();
  const Tensor x = Tensor::zeros({1 << 20}, Dtype::f32, device);
  const EventPtr first = backend.record_event(Event::Timing::on);
  for (int i = 0; i < 20; ++i) backend.add(x, x, x);
  const EventPtr last = backend.record_event(Event::Timing::on);
  REQUIRE(first);
  REQUIRE(last);
  last->wait();
  first->wait();
  CHECK(last->seconds_since(*first) > 0);
  CHECK(last->seconds_since(*first) < 10);
  backend.wait_for(last);
  backend.wait_for(nullptr);
  CHECK(floats(x)[0] == 0);
}

TEST_CASE("cuda: step: a worker that waits for another's event sees the work before it") {
  const Device one = cuda_device({}), other = cuda_device({});
  const Tensor x = Tensor::zeros({1 << 22}, Dtype::f32, one);
  const Tensor y = Tensor::empty({1 << 22}, Dtype::f32, other);
  for (int i = 1; i <= 10; ++i) {
    for (int j = 0; j < 20; ++j) one.backend().fill(x, -1);
    one.backend().fill(x, i);
    other.backend().wait_for(one.backend().record_event());
    other.backend().copy(x, y);
    const EventPtr read = other.backend().record_event();
    CHECK(floats(y)[(1 << 22) - 1] == static_cast<float>(i));
    one.backend().wait_for(read);
  }
}

TEST_CASE("cuda: step: batches are fed and scaled and results are read later") {
  const ByteScale scale{{0.5F, 0.1F, 3}, {-1, 0.3F, 1000}};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Device device = cuda_device({.precision = Precision::bf16});
    const Device host = host_of(device);
    REQUIRE(host.is_cpu());
    Backend& backend = device.backend();
    const auto feed = backend.make_feed(scale);
    REQUIRE(feed);
    const Tensor to = Tensor::empty({333, 3}, dtype, device);
    const Tensor sum = Tensor::empty({333, 3}, Dtype::f32, device);
    Random random(1);
    for (int t = 1; t <= 10; ++t) {
      Tensor from = Tensor::empty({333, 3}, Dtype::u8, host);
      std::vector<float> expected;
      for (std::uint8_t& byte : from.span<std::uint8_t>()) {
        byte = static_cast<std::uint8_t>(random.below(256));
        const std::size_t c = expected.size() % 3;
        const float value = static_cast<float>(byte) * scale.scale[c] + scale.offset[c];
        expected.push_back(dtype == Dtype::bf16 ? round_to_bf16(value) : value);
      }
      const Feed::Move moves[] = {{std::exchange(from, Tensor()), to}};  // the feed keeps it
      feed->bring(moves);
      backend.cast(to, sum);
      const Tensor later = Tensor::empty({333, 3}, Dtype::f32, host);
      backend.read_later(sum, later);
      backend.record_event()->wait();
      CHECK(floats(later) == expected);
    }
  }
}

TEST_CASE("cuda: step: recorded work reads and writes the same memory in every replay") {
  const Device device = cuda_device({});
  Backend& backend = device.backend();
  const Tensor x = Tensor::zeros({1000}, Dtype::f32, device);
  const Tensor one = Tensor::empty({1000}, Dtype::f32, device);
  backend.fill(one, 1);
  const auto pieces = backend.record([&](const DeviceQueue::Cut& cut) {
    const Tensor two = Tensor::empty({1000}, Dtype::f32, device);  // recorded with its memory
    backend.add(one, one, two);
    cut();
    backend.add(x, two, x);
  });
  REQUIRE(pieces.size() == 2);
  backend.fill_zero(x);
  for (int i = 1; i <= 5; ++i) {
    const Tensor other = Tensor::empty({1000}, Dtype::f32, device);
    backend.fill(other, 7);
    for (const auto& piece : pieces) piece->replay();
    CHECK(floats(x)[999] == static_cast<float>(2 * i));
    CHECK(floats(other)[0] == 7);
  }
}

TEST_CASE("cuda: step: replayed steps equal direct ones, with new random numbers") {
  for (const Precision precision : kTypes) {
    CAPTURE(name_of(precision));
    Stepper direct(dropout_net(), precision, false), recorded(dropout_net(), precision, true);
    const Device reader = cuda_device({});
    std::vector<std::string> order;
    for (std::uint64_t t = 1; t <= 10; ++t) {
      CAPTURE(t);
      const Tensor expected = direct.run(t);
      const auto gradients = gradients_when_ready(direct, reader);
      const Tensor loss = recorded.run(t);
      CHECK(gradients_when_ready(recorded, reader) == gradients);
      CHECK(loss.item() == expected.item());
      if (order.empty()) order = names_of(direct);
      CHECK(order.size() == 4);
      CHECK(names_of(direct) == order);
      CHECK(names_of(recorded) == order);
    }
  }
}

TEST_CASE("cuda: step: a warm worker allocates no memory") {
  const auto digits = synthetic_digits(400, 1);
  const DataSplit data{digits, synthetic_digits(50, 2), measure_normalisation(*digits), "digits"};
  const Task task{
      .app = "test",
      .model = [](const Shape&, std::int64_t, std::uint64_t seed) { return mnist_mlp(seed); },
      .data = [&] { return data; }};
  for (const Switch graphs : {Switch::on, Switch::off})
    for (const Precision precision : kTypes) {
      CAPTURE(to_string(graphs));
      CAPTURE(name_of(precision));
      TrainOptions o;
      o.device = DeviceKind::cuda;
      o.graphs = graphs;
      o.precision = precision;
      o.batch = 40;
      o.iterations = 50;
      o = check_options(o);
      const auto compressor = make_compressor("none");
      const Length length(data, o);
      std::size_t warm = 0, held = 0;
      run_on_ranks({.app = "test"}, [&](Communication& communication) {
        Worker worker(task, data, o, length, *compressor, communication);
        RunAhead ahead(worker.replica().device(), worker.spans());
        for (std::int64_t t = 1; t <= 50; ++t) {
          worker.begin(t, t == 1);
          const Batch batch = worker.next_batch();
          worker.strategy().before_step(t);
          const Tensor loss = worker.forward_and_backward(batch);
          worker.strategy().after_backward(t);
          ahead.add(t, loss, worker.loss_share());
          ahead.take_done(false);
          held = worker.replica().device().queue().memory().held_bytes();
          if (t == 10) warm = held;
        }
        ahead.take_done(true);
      });
      CHECK(warm > 0);
      CHECK(held == warm);
    }
}
