#include "dist/gossip/mail.h"

#include <algorithm>
#include <set>
#include <utility>

#include "dist/finite.h"
#include "tensor/device_queue.h"

namespace tandem {
namespace {

constexpr int kKeptChannel = 1, kFirstHeaderChannel = 2;  // of Tag::control

Tag tag_of(Letter::Kind kind) {
  return kind == Letter::Kind::kept ? on_channel(Tag::control, kKeptChannel) : Tag::push;
}

}  // namespace

Mail::Mail(const StrategyContext& context, Take take)
    : c_(context),
      take_(std::move(take)),
      transport_(context.communication.transport()),
      host_(host_of(context.parameters.device())),
      count_(context.parameters.values().count()) {}

void Mail::require_finite(const Tensor& values, std::int64_t iteration) const {
  if (!c_.compressor.finite(values.span<float>()))
    tandem::require_finite(c_.parameters, values.span<float>(), iteration);
}

void Mail::open() {
  require(!open_, "the mail is open");
  open_ = true;
  ++session_;
  c_.communication.post(inbox_, [this] {
    try {
      run();
    } catch (...) {
      sent_.close(std::current_exception());
      throw;
    }
    return Letter{.kind = Letter::Kind::goodbye};
  });
}

void Mail::send(Letter letter) {
  if (letter.values.defined()) {
    for (; unsent_ > 0 && sent_.wait_until(Clock::now()); --unsent_) sent_.take();
    if (unsent_ == kMostUnsent) {
      waits_for_room_ = true;
      transport_.wake();
      sent_.take();
      waits_for_room_ = false;
      --unsent_;
    }
    ++unsent_;
  }
  outgoing_.put(std::move(letter));
  transport_.wake();
}

std::optional<Letter> Mail::look() {
  if (!inbox_.wait_until(Clock::now())) return {};
  return inbox_.take();
}

std::vector<Letter> Mail::close() {
  send({.kind = Letter::Kind::goodbye});
  std::vector<Letter> rest;
  for (;;) {
    Letter letter = inbox_.take();
    if (letter.kind == Letter::Kind::goodbye) break;
    rest.push_back(std::move(letter));
  }
  open_ = false;
  return rest;
}

Letter Mail::wait_for_answer() {
  send({.kind = Letter::Kind::answer});
  return inbox_.take();
}

void Mail::run() {
  closing_ = false;
  goodbyes_ = 0;
  receive_header();
  for (;;) {
    take_outgoing();
    if (over()) return;
    wait_for_requests();
    deliver();
  }
}

bool Mail::over() const {
  return closing_ && !header_request_ && sends_.empty() && letters_.empty() && answers_.empty();
}

void Mail::take_outgoing() {
  while (outgoing_.wait_until(Clock::now())) queued_.push_back(outgoing_.take());
  while (!queued_.empty() && (!queued_.front().ready || queued_.front().ready->passed())) {
    start(queued_.front());
    queued_.pop_front();
  }
}

// Weights that are not finite stay here: the worker that made them reports it, not another one.
void Mail::start(const Letter& letter) {
  if (letter.kind == Letter::Kind::goodbye) return say_goodbye();
  if (letter.kind == Letter::Kind::answer) {
    answer_awaited_ = !answers_.empty();  // or it has come already
    return;
  }
  c_.communication.spans().set_iteration(letter.iteration);
  require_finite(letter.values, letter.iteration);
  if (letter.wants_answer)
    receive({.kind = Letter::Kind::answer, .peer = letter.peer, .iteration = letter.iteration},
            Tag::pull, answers_);
  Sending& sending =
      sends_.emplace_back(Header{letter.kind, letter.iteration, letter.share}, letter.values, true);
  sending.head =
      transport_.send(letter.peer, header_tag(), std::as_bytes(std::span(&sending.header, 1)));
  sending.body = transport_.send(letter.peer, tag_of(letter.kind), bytes_of(sending.values));
}

void Mail::answer(Letter letter) {
  require_finite(letter.values, letter.iteration);
  Sending& sending = sends_.emplace_back(Header{}, std::move(letter.values));
  sending.body = transport_.send(letter.peer, Tag::pull, bytes_of(sending.values));
}

void Mail::say_goodbye() {
  closing_ = true;
  for (int hop = 1; hop < c_.workers; ++hop) {
    Sending& sending = sends_.emplace_back(Header{.kind = Letter::Kind::goodbye});
    sending.head = transport_.send((transport_.rank() + hop) % c_.workers, header_tag(),
                                   std::as_bytes(std::span(&sending.header, 1)));
  }
}

Tag Mail::header_tag() const {
  return on_channel(Tag::control, kFirstHeaderChannel + static_cast<int>(session_ % 2));
}

// The goodbye is a worker's last header. So after all goodbyes no header comes, and none is
// awaited.
void Mail::receive_header() {
  if (goodbyes_ == c_.workers - 1) return;
  header_request_ =
      transport_.receive(kAnyRank, header_tag(), std::as_writable_bytes(std::span(&header_, 1)));
}

void Mail::take_header() {
  const int from = header_request_->source;
  header_request_.reset();
  if (header_.kind == Letter::Kind::goodbye)
    ++goodbyes_;
  else
    receive({.kind = header_.kind,
             .peer = from,
             .iteration = header_.iteration,
             .share = header_.share},
            tag_of(header_.kind), letters_);
  receive_header();
}

void Mail::receive(Letter letter, Tag tag, std::list<Receiving>& list) {
  letter.values = new_values();
  Receiving& receiving = list.emplace_back(std::move(letter));
  receiving.body =
      transport_.receive(receiving.letter.peer, tag, bytes_of(receiving.letter.values));
}

// Waits for a message, or for the compute thread. While that works, this rank shows that it does.
// Else it shows that it waits, so that a rank that stalls the job is found.
void Mail::wait_for_requests() {
  std::vector<Request*> requests;
  const auto add = [&](Request& request) {
    if (request) requests.push_back(&request);
  };
  add(header_request_);
  for (Sending& sending : sends_) {
    add(sending.head);
    add(sending.body);
  }
  for (Receiving& letter : letters_) add(letter.body);
  for (Receiving& answer : answers_) add(answer.body);

  std::optional<Spans::Scope> span;
  if (!sends_.empty() || !letters_.empty() || !answers_.empty())
    span.emplace(c_.communication.spans(), SpanKind::communicate);
  // With fewer letters on their way, the compute thread is about to go on.
  const bool full =
      waits_for_room_ && std::ranges::count_if(sends_, &Sending::counts) == kMostUnsent;
  if (closing_ || answer_awaited_ || full)
    return transport_.await_any(requests, Patience::while_others_work);
  c_.communication.wait_a_while(requests, !queued_.empty());
}

void Mail::deliver() {
  const auto is_done = [&](const Request& request) { return request && transport_.done(request); };
  for (Sending& sending : sends_)
    for (Request* request : {&sending.head, &sending.body})
      if (is_done(*request)) request->reset();
  sends_.remove_if([&](const Sending& sending) {
    const bool done = !sending.head && !sending.body;
    if (done && sending.counts) sent_.put({});
    return done;
  });
  if (is_done(header_request_)) take_header();

  // A later letter of the same worker may be done first, but must not overtake.
  const auto each_done = [&](std::list<Receiving>& list, const auto& take) {
    std::set<int> waiting;
    for (auto next = list.begin(); next != list.end();) {
      const auto current = next++;
      const int peer = current->letter.peer;
      if (waiting.contains(peer) || !is_done(current->body)) {
        waiting.insert(peer);
        continue;
      }
      Letter letter = std::move(current->letter);
      list.erase(current);
      take(std::move(letter));
    }
  };
  each_done(letters_, take_);
  each_done(answers_, [this](Letter letter) {
    answer_awaited_ = false;
    pass_on(std::move(letter));
  });
}

}  // namespace tandem
