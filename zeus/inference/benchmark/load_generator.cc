#include "zeus/inference/benchmark/load_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::inference {
namespace {

constexpr Seconds kLongestWait{0.1};
constexpr Seconds kTimeoutCheckInterval{0.25};
constexpr std::size_t kKeptErrorBody = 400;

bool IsSuccess(int status) { return status >= 200 && status < 300; }

// The message of {"error": {"message": ...}}, or the beginning of the body.
std::string ErrorText(const std::string& body) {
  if (const auto json = ParseJson(body); json.ok() && json.value().is_object()) {
    const Json& object = json.value();
    if (const auto error = object.find("error"); error != object.end() && error->is_object())
      if (const auto message = GetField<std::string>(*error, "message"); message.ok())
        return Printable(message.value());
  }
  return Printable(std::string(Trim(body)));
}

}  // namespace

const char* FailureName(FailureKind kind) {
  switch (kind) {
    case FailureKind::kConnect:
      return "connect";
    case FailureKind::kBroken:
      return "broken";
    case FailureKind::kTimeout:
      return "timeout";
    case FailureKind::kStatus:
      return "status";
    case FailureKind::kServerError:
      return "server error";
    case FailureKind::kNoTokens:
      return "no tokens";
    case FailureKind::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

std::optional<Seconds> RequestRecord::TimeToFirstToken() const {
  if (arrivals.empty()) return std::nullopt;
  return arrivals.front().at - planned;
}

std::optional<Seconds> RequestRecord::TimePerOutputToken() const {
  if (arrivals.size() < 2) return std::nullopt;
  // Tokens that came together with the first one took no time of their own.
  const double later = output_tokens - arrivals.front().tokens;
  if (later <= 0) return std::nullopt;
  return (arrivals.back().at - arrivals.front().at) / later;
}

LoadGenerator::LoadGenerator(Clock& clock, Transport& transport, Workload& workload,
                             LoadOptions options)
    : clock_(clock), transport_(transport), workload_(workload), options_(std::move(options)) {}

LoadRecord LoadGenerator::Run(const Continue& keep_going) {
  record_.begin = clock_.Now();
  Plan();
  while (true) {
    SendWhatIsDue();
    CheckTimeouts();
    if (IsOver()) break;
    progress_.time = clock_.Now() - record_.begin;
    progress_.in_flight = calls_.size();
    if (!keep_going(progress_)) {
      Interrupt();
      break;
    }
    transport_.WaitUntil(std::min(NextDeadline(), clock_.Now() + kLongestWait));
  }
  record_.end = clock_.Now();
  return std::move(record_);
}

void LoadGenerator::Plan() {
  next_ = workload_.Next();
  if (!next_ || !options_.duration) return;
  const Seconds at = next_->at.value_or(clock_.Now() - record_.begin);
  if (at >= *options_.duration) next_.reset();
}

void LoadGenerator::SendWhatIsDue() {
  while (next_) {
    if (const auto concurrency = workload_.concurrency()) {
      if (calls_.size() >= *concurrency) return;
      if (options_.duration && clock_.Now() - record_.begin >= *options_.duration) {
        next_.reset();
        return;
      }
    } else if (record_.begin + *next_->at > clock_.Now()) {
      return;
    }
    Send(std::move(*next_));
    Plan();
  }
}

void LoadGenerator::Send(PlannedRequest request) {
  RequestRecord& record = record_.requests.emplace_back();
  record.sent = clock_.Now();
  record.planned = request.at ? record_.begin + *request.at : record.sent;
  const Outgoing outgoing = Compose(request);
  const CallId id = ++last_call_;
  calls_.emplace(id,
                 Call{.index = record_.requests.size() - 1,
                      .last_byte = record.sent,
                      .reader = std::make_unique<AnswerReader>(outgoing.target, outgoing.body)});
  ++progress_.sent;
  record_.peak_in_flight = std::max(record_.peak_in_flight, calls_.size());
  transport_.Start(id, outgoing, *this);
}

Outgoing LoadGenerator::Compose(const PlannedRequest& request) const {
  Json body = {
      {"model", options_.model}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  if (request.output_tokens) {
    body["max_tokens"] = *request.output_tokens;
    if (options_.exact_lengths) body["ignore_eos"] = true;
  }
  Outgoing outgoing{.headers = options_.headers};
  if (options_.api == Api::kChat) {
    body["messages"] = {{{"role", "user"}, {"content", request.prompt}}};
    outgoing.target = "/v1/chat/completions";
  } else {
    body["prompt"] = request.prompt;
    outgoing.target = "/v1/completions";
  }
  outgoing.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return outgoing;
}

void LoadGenerator::OnHead(CallId id, const AnswerHead& head) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call& call = found->second;
  call.status = head.status;
  call.last_byte = clock_.Now();
  record_.requests[call.index].id = head.request_id;
  call.reader->OnHead(head.status, head.content_type, head.content_encoding);
}

void LoadGenerator::OnBody(CallId id, std::string_view bytes) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call& call = found->second;
  call.last_byte = clock_.Now();
  if (IsSuccess(call.status)) {
    call.reader->OnBody(call.last_byte, bytes);
  } else if (call.error_body.size() < kKeptErrorBody) {
    call.error_body.append(bytes.substr(0, kKeptErrorBody - call.error_body.size()));
  }
}

void LoadGenerator::OnEnd(CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const Call& call = found->second;
  if (!IsSuccess(call.status)) {
    Conclude(id, CallFailure{FailureKind::kStatus, call.status, ErrorText(call.error_body)});
    return;
  }
  call.reader->OnEnd(clock_.Now());
  if (const std::string error = call.reader->error(); !error.empty()) {
    Conclude(id, CallFailure{FailureKind::kServerError, call.status, Printable(error)});
  } else if (call.reader->output_tokens() <= 0) {
    const std::string why = call.reader->blind_reason();
    Conclude(id, CallFailure{FailureKind::kNoTokens, call.status,
                             why.empty() ? "the answer had no token" : why});
  } else {
    Conclude(id, std::nullopt);
  }
}

void LoadGenerator::OnFailure(CallId id, CallFailure failure) { Conclude(id, std::move(failure)); }

void LoadGenerator::Conclude(CallId id, std::optional<CallFailure> failure) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const Call& call = found->second;
  RequestRecord& record = record_.requests[call.index];
  record.ended = clock_.Now();
  record.finished = !failure;
  record.failure = std::move(failure);
  record.arrivals = call.reader->arrivals();
  record.output_tokens = call.reader->output_tokens();
  record.prompt_tokens = call.reader->prompt_tokens().value_or(0);
  record.tokens_estimated = call.reader->tokens_estimated();
  record.energy = call.reader->energy();
  ++(record.finished ? progress_.finished : progress_.failed);
  progress_.output_tokens += record.output_tokens;
  calls_.erase(found);
}

void LoadGenerator::CheckTimeouts() {
  const TimePoint now = clock_.Now();
  if (now < next_timeout_check_) return;
  next_timeout_check_ = now + kTimeoutCheckInterval;
  std::vector<std::pair<CallId, std::string>> late;
  for (const auto& [id, call] : calls_) {
    if (now - record_.requests[call.index].sent >= options_.request_timeout)
      late.emplace_back(
          id, fmt::format("no end of the answer within {} s", options_.request_timeout.count()));
    else if (now - call.last_byte >= options_.idle_timeout)
      late.emplace_back(
          id, fmt::format("no byte of the answer for {} s", options_.idle_timeout.count()));
  }
  for (auto& [id, why] : late) {
    transport_.Abort(id);
    Conclude(id, CallFailure{FailureKind::kTimeout, 0, std::move(why)});
  }
}

void LoadGenerator::Interrupt() {
  record_.interrupted = true;
  next_.reset();
  std::vector<CallId> open;
  open.reserve(calls_.size());
  for (const auto& [id, call] : calls_) open.push_back(id);
  std::ranges::sort(open);
  for (const CallId id : open) {
    transport_.Abort(id);
    Conclude(id, CallFailure{FailureKind::kInterrupted, 0, "the benchmark was interrupted"});
  }
}

TimePoint LoadGenerator::NextDeadline() const {
  if (next_ && next_->at) return record_.begin + *next_->at;
  return clock_.Now() + kLongestWait;
}

}  // namespace zeus::inference
