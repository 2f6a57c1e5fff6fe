#include "zeus/inference/server/served_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus::inference {
namespace {

using namespace std::chrono_literals;

// In real time: the load of this process ends without heartbeats.
constexpr Seconds kHeartbeatPeriod = 500ms;
constexpr std::size_t kMostTruths = 100'000;

long long UnixTime(const Clock& clock) {
  return std::chrono::floor<std::chrono::seconds>(clock.WallNow()).time_since_epoch().count();
}

}  // namespace

// A request that the engine works on.
struct ServedEngine::Live {
  IncomingRequest request;
  std::unique_ptr<AnswerFormat> format;
  std::vector<AnswerSequence> sequences{};
  Seconds arrival{};
  Seconds last_token{};
  Seconds earliest{};  // No part of the response may be sent before this.
  unsigned cached_tokens = 0;
  unsigned made = 0;                   // Tokens of all sequences.
  bool started = false;                // The head of a streamed response was sent.
  bool broken = false;                 // By a fault: nothing more is sent.
  std::vector<std::string> texts{};    // Not sent yet, by sequence.
  std::vector<unsigned> waiting{};     // Tokens in `texts`, by sequence.
  std::optional<unsigned> stall_at{};  // After so many tokens, as are the following.
  std::optional<unsigned> break_at{};
  std::optional<unsigned> error_at{};

  bool streams() const { return request.completion.stream; }
  const char* finish_reason() const {
    return sequences.empty() ? "stop" : sequences.front().finish_reason();
  }
};

ServedEngine::ServedEngine(sim::SharedNode& node, const Clock& clock,
                           const ServedEngineOptions& options)
    : node_(node), clock_(clock), options_(options), random_(options.seed) {}

Result<std::unique_ptr<ServedEngine>> ServedEngine::Create(const sim::LanguageModel& model,
                                                           sim::SharedNode& node,
                                                           const std::vector<unsigned>& gpus,
                                                           const Clock& clock,
                                                           const ServedEngineOptions& options) {
  std::unique_ptr<ServedEngine> served(new ServedEngine(node, clock, options));
  sim::EngineOptions engine = options.engine;
  engine.pid = ::getpid();
  engine.heartbeat_timeout *= node.time_scale();
  ZEUS_TRY(served->engine_,
           sim::InferenceEngine::Create(model, AccessTo(node, gpus), engine, *served));
  served->ticker_ =
      std::make_unique<Ticker>("zeus-engine", [self = served.get()] { return self->Step(); });
  return served;
}

ServedEngine::~ServedEngine() { ticker_.reset(); }

void ServedEngine::Submit(IncomingRequest request) {
  if (const Status present = status(); !present.ok()) {
    request.response->Finish(http::JsonAnswer(503, ErrorJson(503, present.error().message)));
    return;
  }
  {
    const std::lock_guard lock(orders_mutex_);
    orders_.push_back({.time = node_.Now(), .submit = std::move(request)});
  }
  ticker_->Wake();
}

void ServedEngine::Cancel(std::uint64_t serial) {
  {
    const std::lock_guard lock(orders_mutex_);
    orders_.push_back({.time = node_.Now(), .cancel = serial});
  }
  ticker_->Wake();
}

TimePoint ServedEngine::Step() {
  const std::lock_guard lock(mutex_);
  if (failure_ || stopped_) return Ticker::kWhenWoken;
  const Seconds now = node_.Now();
  if (const Status advanced = Advance(now); !advanced.ok()) {
    Fail(advanced.error());
    return Ticker::kWhenWoken;
  }
  const auto event = engine_->NextEvent();
  Seconds next = event.ok() ? event.value() : now;
  if (!outbox_.empty()) next = std::min(next, outbox_.begin()->first);
  const Seconds wait = std::min((next - now) / node_.time_scale(), kHeartbeatPeriod);
  return clock_.Now() + std::max(wait, Seconds(0));
}

Status ServedEngine::Advance(Seconds now) {
  if (node_.stopped())
    return Error{ErrorCode::kUnavailable,
                 fmt::format("node \"{}\" was stopped under the engine", node_.name())};
  std::deque<Order> orders;
  {
    const std::lock_guard lock(orders_mutex_);
    orders.swap(orders_);
  }
  for (Order& order : orders) {
    // An order may have come after `now` was read.
    const Seconds time = std::min(order.time, now);
    if (order.submit) {
      Begin(time, *std::move(order.submit));
    } else if (const auto found = serial_ids_.find(order.cancel); found != serial_ids_.end()) {
      // Cancelling may erase the entry.
      const sim::RequestId id = found->second;
      ZEUS_RETURN_IF_ERROR(engine_->Cancel(time, id));
    }
  }
  ZEUS_RETURN_IF_ERROR(engine_->AdvanceTo(now));
  for (const sim::RequestId id : std::exchange(to_cancel_, {}))
    ZEUS_RETURN_IF_ERROR(engine_->Cancel(now, id));
  SendDue(now);
  const TimePoint real_now = clock_.Now();
  if (real_now >= last_heartbeat_ + kHeartbeatPeriod) {
    last_heartbeat_ = real_now;
    ZEUS_RETURN_IF_ERROR(engine_->Heartbeat(now));
  }
  return Ok();
}

void ServedEngine::Begin(Seconds time, IncomingRequest request) {
  const CompletionRequest& completion = request.completion;
  const bool embeds = completion.endpoint == Endpoint::kEmbeddings;
  auto live =
      std::make_unique<Live>(Live{.request = request,
                                  .format = MakeFormat(completion.endpoint, request.name,
                                                       options_.model_name, UnixTime(clock_)),
                                  .arrival = time});
  sim::RequestSpec spec{.prompt_tokens = completion.prompt_tokens};
  for (unsigned i = 0; !embeds && i < completion.sequences; ++i) {
    live->sequences.push_back(
        request.text.empty()
            ? AnswerSequence(completion, options_.mean_output_tokens, Random(random_.NextBits()))
            : AnswerSequence(completion, request.text));
    spec.output_tokens.push_back(live->sequences.back().tokens());
  }
  live->texts.resize(live->sequences.size());
  live->waiting.resize(live->sequences.size());
  DrawFaults(*live);

  const auto id = engine_->Submit(time, spec);
  if (!id.ok()) {
    request.response->Finish(http::JsonAnswer(400, ErrorJson(400, id.error().message)));
    return;
  }
  metrics_.CountRequest(completion.prompt_tokens);
  serial_ids_.emplace(request.serial, id.value());
  live_.emplace(id.value(), std::move(live));
}

void ServedEngine::DrawFaults(Live& live) {
  const unsigned tokens = live.sequences.empty() ? 1 : live.sequences.front().tokens();
  const auto draw = [&](double probability) -> std::optional<unsigned> {
    const double drawn = random_.Uniform();
    const auto position = static_cast<unsigned>(random_.Below(tokens));
    return drawn < probability ? std::optional(position + 1) : std::nullopt;
  };
  live.stall_at = draw(options_.faults.stall);
  live.break_at = draw(options_.faults.disconnect);
  live.error_at = draw(options_.faults.error);
}

void ServedEngine::OnIteration(const sim::IterationReport& iteration) {
  metrics_.CountTokens(static_cast<unsigned>(iteration.tokens.size()));
  for (const sim::OutputToken& token : iteration.tokens)
    if (const auto found = live_.find(token.request); found != live_.end())
      OnToken(*found->second, token, iteration.end);
}

Usage ServedEngine::CountsOf(const Live& live) const {
  return {.prompt_tokens = live.request.completion.prompt_tokens,
          .cached_tokens = live.cached_tokens,
          .output_tokens = live.made};
}

void ServedEngine::OnToken(Live& live, const sim::OutputToken& token, Seconds time) {
  const AnswerSequence& sequence = live.sequences[token.sequence];
  if (token.sequence == 0) {
    if (token.number == 1)
      metrics_.CountFirstToken(time - live.arrival);
    else
      metrics_.CountNextToken(time - live.last_token);
    live.last_token = time;
  }
  ++live.made;
  std::string& text = live.texts[token.sequence];
  text += sequence.Token(token.number);
  if (!live.streams() || live.broken) return;

  ++live.waiting[token.sequence];
  std::string events;
  if (token.number == 1) events = live.format->FirstEvent(token.sequence);
  if (token.last || live.waiting[token.sequence] >= options_.faults.tokens_per_event) {
    const Usage counts = CountsOf(live);
    const bool with_counts = live.request.completion.continuous_usage && !options_.faults.no_usage;
    events += live.format->Event(token.sequence, std::exchange(text, {}),
                                 token.last ? sequence.finish_reason() : nullptr,
                                 with_counts ? &counts : nullptr);
    live.waiting[token.sequence] = 0;
  }
  if (!events.empty()) Send(live, time, std::move(events));
  Disturb(live, token.request, time);
}

// Applies the faults that were drawn for the request.
void ServedEngine::Disturb(Live& live, sim::RequestId id, Seconds time) {
  const auto response = live.request.response;
  if (live.made == live.stall_at)
    live.earliest = std::max(live.earliest, time) + options_.faults.stall_time;
  if (live.made == live.error_at) {
    Send(live, time, live.format->ErrorEvent("simulated error in the midst of a stream"));
    SendAt(live, time, [response] { response->End(); });
    live.broken = true;
  } else if (live.made == live.break_at) {
    SendAt(live, time, [response] { response->Abort(); });
    live.broken = true;
  }
  if (live.broken) to_cancel_.push_back(id);
}

void ServedEngine::SendAt(Live& live, Seconds time, std::function<void()> send) {
  const Seconds delay = options_.faults.jitter > Seconds(0)
                            ? options_.faults.jitter * std::abs(random_.Normal())
                            : Seconds(0);
  live.earliest = std::max(live.earliest, time + delay);
  outbox_.emplace(live.earliest, std::move(send));
}

void ServedEngine::Send(Live& live, Seconds time, std::string text) {
  const bool first = !std::exchange(live.started, true);
  SendAt(
      live, time,
      [first, response = live.request.response, name = live.request.name,
       type = live.format->stream_content_type(), text = std::move(text)]() mutable {
        if (!first) return response->Push(text);
        response->Start(
            {.body = std::move(text), .content_type = type, .headers = {{"X-Zeus-Request", name}}});
      });
}

void ServedEngine::SendDue(Seconds now) {
  while (!outbox_.empty() && outbox_.begin()->first <= now) {
    outbox_.begin()->second();
    outbox_.erase(outbox_.begin());
  }
}

void ServedEngine::OnEnd(const sim::RequestTruth& truth) {
  const auto found = live_.find(truth.id);
  if (found == live_.end()) return;
  Live& live = *found->second;
  metrics_.CountEnd(truth, live.finish_reason());
  live.cached_tokens = truth.cached_tokens;
  KeepTruth(live.request.name, truth);
  if (truth.outcome == sim::RequestOutcome::kFinished && !live.broken) Complete(live, truth);
  serial_ids_.erase(live.request.serial);
  live_.erase(found);
}

void ServedEngine::KeepTruth(const std::string& name, sim::RequestTruth truth) {
  const auto [kept, is_new] = truths_.try_emplace(name, truth);
  if (!is_new) {
    truth.prefill += kept->second.prefill;
    truth.decode += kept->second.decode;
    kept->second = truth;
    return;
  }
  truth_order_.push_back(name);
  if (truth_order_.size() <= kMostTruths) return;
  truths_.erase(truth_order_.front());
  truth_order_.pop_front();
}

// All tokens are there.
void ServedEngine::Complete(Live& live, const sim::RequestTruth& truth) {
  const CompletionRequest& completion = live.request.completion;
  const auto response = live.request.response;
  const Usage counts = CountsOf(live);
  const AnswerEnd end{.usage = options_.faults.no_usage ? nullptr : &counts,
                      .finish_reason = live.finish_reason(),
                      .duration = truth.end - truth.arrival,
                      .decode = truth.end - truth.first_token.value_or(truth.end)};
  if (live.streams()) {
    std::string last;
    if (completion.include_usage) last += live.format->UsageEvent(end);
    if (!options_.faults.no_done) last += live.format->DoneEvent();
    if (!last.empty()) Send(live, truth.end, std::move(last));
    outbox_.emplace(live.earliest, [response] { response->End(); });
    return;
  }
  std::vector<AnswerChoice> choices;
  for (std::size_t i = 0; i < live.sequences.size(); ++i)
    choices.push_back({.text = live.texts[i], .finish_reason = live.sequences[i].finish_reason()});
  const Json whole = completion.endpoint == Endpoint::kEmbeddings
                         ? EmbeddingsJson(options_.model_name, completion.sequences, end.usage)
                         : live.format->Whole(choices, end);
  http::Answer answer = http::JsonAnswer(200, whole);
  answer.headers.emplace_back("X-Zeus-Request", live.request.name);
  SendAt(live, truth.end, [response, answer]() mutable { response->Finish(std::move(answer)); });
}

// Requests do not wait for an engine that is gone.
void ServedEngine::Fail(const Error& error) {
  log::Failure("the engine has ended: {}", error.message);
  failure_ = error;
  for (auto& [id, live] : live_) {
    if (live->started)
      live->request.response->Abort();
    else
      live->request.response->Finish(http::JsonAnswer(503, ErrorJson(503, error.message)));
  }
  live_.clear();
  outbox_.clear();
}

Result<sim::RequestTruth> ServedEngine::FindTruth(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = truths_.find(name); found != truths_.end()) return found->second;
  return Error{ErrorCode::kNotFound,
               fmt::format("no request {} has ended here: it may still run", Quote(name))};
}

Result<sim::InferenceEngine::Accounts> ServedEngine::ReadAccounts() {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return engine_->ReadAccounts(node_.Now());
}

std::string ServedEngine::MetricsText() {
  const std::lock_guard lock(mutex_);
  return metrics_.Text(options_.model_name, *engine_);
}

void ServedEngine::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

Status ServedEngine::status() {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return Ok();
}

}  // namespace zeus::inference
