#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/inference/engine.h"
#include "zeus/device/sim/shared_node.h"
#include "zeus/http/pushed_response.h"
#include "zeus/inference/server/answer_text.h"
#include "zeus/inference/server/completion_format.h"
#include "zeus/inference/server/engine_metrics.h"

namespace zeus::inference {

// Bad habits of real servers, to try clients and gateways against. Probabilities are per request.
struct ServerFaults {
  unsigned tokens_per_event = 1;  // As servers with speculative decoding do.
  Seconds jitter{};               // Standard deviation of a delay of each event.
  bool no_usage = false;          // The counts are never sent.
  bool no_done = false;           // Streams end without [DONE].
  double stall = 0.0;             // Probability of one pause in the midst of a stream …
  Seconds stall_time{2.0};        // … and how long it is.
  double disconnect = 0.0;        // Probability that the connection breaks mid-stream.
  double error = 0.0;             // Probability of an error event mid-stream.
};

struct ServedEngineOptions {
  std::string model_name{};  // As clients see it.
  sim::EngineOptions engine{};
  ServerFaults faults{};
  double mean_output_tokens = 200;  // Where the request does not fix the length.
  std::uint64_t seed = 1;
};

// A request on its way to the engine.
struct IncomingRequest {
  std::uint64_t serial = 0;  // From NextSerial().
  std::string name{};        // The id under which its truth is kept.
  CompletionRequest completion{};
  std::string text{};  // Words of the answer; empty: embedded ones.
  std::shared_ptr<http::PushedResponse> response{};
};

// An inference engine on GPUs of a node in the node's time: a thread advances it and pushes tokens
// into the responses of its requests as they come. Thread-safe. Clock and node must outlive it.
class ServedEngine final : private sim::EngineListener {
 public:
  static Result<std::unique_ptr<ServedEngine>> Create(const sim::LanguageModel& model,
                                                      sim::SharedNode& node,
                                                      const std::vector<unsigned>& gpus,
                                                      const Clock& clock,
                                                      const ServedEngineOptions& options);
  ~ServedEngine() override;

  std::uint64_t NextSerial() { return ++serials_; }
  // The response is completed from now on; an error is part of it.
  void Submit(IncomingRequest request);
  // The client has left.
  void Cancel(std::uint64_t serial);

  // kNotFound while the request runs and when it is unknown or too long ago. The energy of requests
  // with the same name is added up, as those of a gateway that sends a request once more.
  Result<sim::RequestTruth> FindTruth(const std::string& name);
  Result<sim::InferenceEngine::Accounts> ReadAccounts();
  std::string MetricsText();

  // Completes no response from now on. To be called before the server of the responses is
  // destroyed.
  void Stop();

  // The error that ended the engine, if one did: the node was stopped, for instance.
  Status status();

 private:
  struct Live;
  struct Order {  // From other threads, in the order in which they came.
    Seconds time;
    std::optional<IncomingRequest> submit{};
    std::uint64_t cancel = 0;
  };

  ServedEngine(sim::SharedNode& node, const Clock& clock, const ServedEngineOptions& options);

  TimePoint Step();
  Status Advance(Seconds now);
  void Begin(Seconds time, IncomingRequest request);
  void DrawFaults(Live& live);
  void OnIteration(const sim::IterationReport& iteration) override;
  void OnEnd(const sim::RequestTruth& truth) override;
  void OnToken(Live& live, const sim::OutputToken& token, Seconds time);
  void Disturb(Live& live, sim::RequestId id, Seconds time);
  void Complete(Live& live, const sim::RequestTruth& truth);
  void KeepTruth(const std::string& name, sim::RequestTruth truth);
  Usage CountsOf(const Live& live) const;
  void Send(Live& live, Seconds time, std::string text);
  void SendAt(Live& live, Seconds time, std::function<void()> send);
  void SendDue(Seconds now);
  void Fail(const Error& error);

  sim::SharedNode& node_;
  const Clock& clock_;
  const ServedEngineOptions options_;
  Random random_;

  std::atomic<std::uint64_t> serials_ = 0;
  std::mutex orders_mutex_;
  std::deque<Order> orders_;  // Guarded by orders_mutex_.

  std::mutex mutex_;  // Guards all below but ticker_.
  std::unique_ptr<sim::InferenceEngine> engine_;
  std::unordered_map<sim::RequestId, std::unique_ptr<Live>> live_;
  std::unordered_map<std::uint64_t, sim::RequestId> serial_ids_;
  // Parts of responses by the time at which they are sent. Those of one response never overtake
  // one another.
  std::multimap<Seconds, std::function<void()>> outbox_;
  std::vector<sim::RequestId> to_cancel_;
  std::unordered_map<std::string, sim::RequestTruth> truths_;
  std::deque<std::string> truth_order_;  // Oldest first.
  EngineMetrics metrics_;
  TimePoint last_heartbeat_{};
  std::optional<Error> failure_;
  bool stopped_ = false;

  std::unique_ptr<Ticker> ticker_;
};

}  // namespace zeus::inference
