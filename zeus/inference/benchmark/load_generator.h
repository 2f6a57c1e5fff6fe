#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/inference/benchmark/answer_reader.h"
#include "zeus/inference/benchmark/workload.h"

// Sends a workload to a server and records what came back when.
namespace zeus::inference {

using CallId = std::uint64_t;

// A request as it goes out.
struct Outgoing {
  std::string target{};  // "/v1/chat/completions"
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

// Where a request failed. The generator counts failures by kind.
enum class FailureKind {
  kConnect,      // No connection to the server.
  kBroken,       // The connection ended before the answer did.
  kTimeout,      // The answer took too long, or stood still for too long.
  kStatus,       // A status other than 2xx.
  kServerError,  // The server reported an error in its stream.
  kNoTokens,     // A complete answer without a token that could be seen.
  kInterrupted,  // The user ended the benchmark.
};
const char* FailureName(FailureKind kind);  // "connect", "broken", ...

struct CallFailure {
  FailureKind kind = FailureKind::kBroken;
  int status = 0;         // For kStatus.
  std::string message{};  // One clause.
};

struct AnswerHead {
  int status = 0;
  std::string content_type{};
  std::string content_encoding{};
  std::string request_id{};  // The header x-zeus-request; empty without a gateway.
};

// A way to a server. All calls of the listener come from within WaitUntil(). Implementations never
// block elsewhere. One owner.
class Transport {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // In this order, and for each call at most one of the last two, as the last one.
    virtual void OnHead(CallId call, const AnswerHead& head) = 0;
    virtual void OnBody(CallId call, std::string_view bytes) = 0;
    virtual void OnEnd(CallId call) = 0;
    virtual void OnFailure(CallId call, CallFailure failure) = 0;
  };

  virtual ~Transport() = default;
  virtual void Start(CallId call, const Outgoing& request, Listener& listener) = 0;
  // Gives the call up: the listener hears no more of it.
  virtual void Abort(CallId call) = 0;
  // Returns at `deadline`, or earlier after something happened.
  virtual void WaitUntil(TimePoint deadline) = 0;
};

// The fate of one request.
struct RequestRecord {
  TimePoint planned{};  // When it should have been sent; equal to `sent` in a closed loop.
  TimePoint sent{};
  std::vector<TokenArrival> arrivals{};  // When its output tokens came.
  TimePoint ended{};
  bool finished = false;  // A complete answer came.
  std::optional<CallFailure> failure{};
  std::string id{};  // The gateway's name for it.
  double prompt_tokens = 0;
  double output_tokens = 0;
  bool tokens_estimated = false;
  std::optional<RequestEnergy> energy{};

  std::optional<TimePoint> first_token() const {
    if (arrivals.empty()) return std::nullopt;
    return arrivals.front().at;
  }
  // From the planned time: a client that lags behind its plan must not make a server look fast.
  std::optional<Seconds> TimeToFirstToken() const;
  // Per token after the first; absent for answers of one token.
  std::optional<Seconds> TimePerOutputToken() const;
};

enum class Api { kChat, kText };  // /v1/chat/completions, /v1/completions

struct LoadOptions {
  std::string model{};
  Api api = Api::kChat;
  // Ask for exactly the planned number of tokens (ignore_eos), which some servers refuse.
  bool exact_lengths = true;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::optional<Seconds> duration{};  // No request is sent after it.
  Seconds request_timeout{600};       // From the request to the end of its answer.
  Seconds idle_timeout{120};          // Without a byte of the answer.
};

// Everything that happened, in the order in which requests were sent.
struct LoadRecord {
  TimePoint begin{};
  TimePoint end{};
  std::size_t peak_in_flight = 0;
  bool interrupted = false;
  std::vector<RequestRecord> requests{};
};

// Counts for a line of progress.
struct LoadProgress {
  std::size_t sent = 0;
  std::size_t finished = 0;
  std::size_t failed = 0;
  std::size_t in_flight = 0;
  double output_tokens = 0;
  Seconds time{0};
};

// Runs one workload. No wait is unbounded: each request ends by its timeouts at the latest. One
// owner; clock, transport and workload must outlive it.
class LoadGenerator final : private Transport::Listener {
 public:
  LoadGenerator(Clock& clock, Transport& transport, Workload& workload, LoadOptions options);

  // Called at least every 100 ms; returning false ends the load at once, and requests under way
  // count as interrupted.
  using Continue = std::function<bool(const LoadProgress&)>;
  LoadRecord Run(const Continue& keep_going);

 private:
  struct Call {
    std::size_t index;  // In the record.
    TimePoint last_byte;
    int status = 0;
    std::string error_body{};  // The beginning of an answer that is not 2xx.
    std::unique_ptr<AnswerReader> reader;
  };

  void OnHead(CallId call, const AnswerHead& head) override;
  void OnBody(CallId call, std::string_view bytes) override;
  void OnEnd(CallId call) override;
  void OnFailure(CallId call, CallFailure failure) override;

  void SendWhatIsDue();
  void Send(PlannedRequest request);
  void Conclude(CallId call, std::optional<CallFailure> failure);
  void CheckTimeouts();
  void Interrupt();
  Outgoing Compose(const PlannedRequest& request) const;
  bool IsOver() const { return !next_ && calls_.empty(); }
  TimePoint NextDeadline() const;
  void Plan();  // Looks up the next request.

  Clock& clock_;
  Transport& transport_;
  Workload& workload_;
  const LoadOptions options_;
  LoadRecord record_{};
  LoadProgress progress_{};
  std::optional<PlannedRequest> next_{};
  std::unordered_map<CallId, Call> calls_{};
  CallId last_call_ = 0;
  TimePoint next_timeout_check_{};
};

}  // namespace zeus::inference
