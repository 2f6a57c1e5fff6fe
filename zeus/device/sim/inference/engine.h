#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/inference/board.h"
#include "zeus/device/sim/inference/model.h"
#include "zeus/device/sim/inference/physics.h"
#include "zeus/device/sim/power_history.h"

// A server of a language model with continuous batching, on simulated GPUs.
//
// In each iteration every running sequence decodes one token; the rest of the token budget goes to
// prompts in the order of their arrival, in parts if they are longer. The iteration takes the time
// and the energy that zeus/device/sim/inference/physics.h says at the clock of the GPUs. When it
// ends, its exact energy is divided among the requests that took part, by the Shapley value of a
// game of fixed plus additive cost: an equal part of the weights that were read, plus the
// request's own work. Energy while no iteration runs is idle.
namespace zeus::sim {

using RequestId = std::uint64_t;

struct RequestSpec {
  unsigned prompt_tokens = 1;
  // Tokens of each sequence of the answer, at least one; empty for a request that is prompt only.
  std::vector<unsigned> output_tokens{};
  // Prompt tokens found in the prefix cache; where absent, the engine's hit rate decides.
  std::optional<unsigned> cached_tokens{};
};

enum class RequestOutcome { kFinished, kCancelled };

// The exact energy of a request, and when it got what.
struct RequestTruth {
  RequestId id;
  RequestOutcome outcome;
  Joules prefill;
  Joules decode;
  unsigned prompt_tokens;
  unsigned cached_tokens;
  unsigned output_tokens;  // Tokens that were made, in all sequences together.
  unsigned preemptions;
  Seconds arrival;
  std::optional<Seconds> first_token;
  Seconds end;

  Joules energy() const { return prefill + decode; }
};

struct OutputToken {
  RequestId request;
  unsigned sequence;  // Which sequence of the request, from 0.
  unsigned number;    // Which token of the sequence, from 1.
  bool last;          // It is the last token of its sequence.
};

// One iteration that has ended.
struct IterationReport {
  Seconds start;
  Seconds end;  // When all its tokens came.
  unsigned decodes;
  double context;          // Tokens in the contexts of the decoding sequences, summed.
  unsigned prompts;        // Prompts worked on.
  unsigned prompt_tokens;  // Processed, without cached ones.
  Joules energy;           // Exact, of all GPUs.
  Hertz clock;             // When it began.
  std::span<const OutputToken> tokens;
};

// Both functions may call Submit() and Cancel() of the engine.
class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual void OnIteration(const IterationReport& iteration) = 0;
  // The request is over and its energy final. Comes after the iteration's own report.
  virtual void OnEnd(const RequestTruth& truth) = 0;
};

struct EngineOptions {
  unsigned token_budget = 2048;  // Decoded and prompt tokens of one iteration.
  unsigned max_sequences = 256;  // Running at once.
  double prefix_hit_rate = 0.0;  // Share of each prompt that the prefix cache holds, 0 to 1.
  // Largest number of tokens in the KV cache; the memory that the weights leave if absent.
  std::optional<std::uint64_t> kv_tokens{};
  // For GPUs that are shared with other processes: see LoadSpec.
  int pid = 0;
  Seconds heartbeat_timeout{3.0};
};

// Deterministic: the same calls give the same results. Times are those of the GPUs and must not go
// back. One owner.
class InferenceEngine {
 public:
  // kInvalidArgument when the model does not fit into the GPUs' memory. The listener must outlive
  // the engine.
  static Result<std::unique_ptr<InferenceEngine>> Create(const LanguageModel& model,
                                                         std::unique_ptr<CoreAccess> gpus,
                                                         const EngineOptions& options,
                                                         EngineListener& listener);
  ~InferenceEngine();
  InferenceEngine(const InferenceEngine&) = delete;
  InferenceEngine& operator=(const InferenceEngine&) = delete;

  // kInvalidArgument when the request can never run: it is empty or larger than the KV cache.
  Result<RequestId> Submit(Seconds time, const RequestSpec& request);

  // The request leaves the engine at the end of the present iteration, of which it pays its part;
  // at once if it never ran. Unknown ids are ignored: the request may have ended meanwhile.
  Status Cancel(Seconds time, RequestId id);

  // Ends all iterations that are over by `time`, in order, and starts the next ones without a gap.
  Status AdvanceTo(Seconds time);

  // When the present iteration ends if no knob changes; infinite if nothing runs.
  Result<Seconds> NextEvent();

  unsigned running() const;  // Sequences that decode or whose prompt is being worked on.
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t kv_tokens() const { return kv_used_; }
  std::uint64_t kv_capacity() const { return kv_capacity_; }
  const LanguageModel& model() const { return model_; }
  const EngineBoard& board() const { return *board_; }

  // Every joule of the GPUs since the engine was created.
  struct Accounts {
    Joules prefill;
    Joules decode;
    Joules unfinished;  // The present iteration so far.
    Joules idle;        // No iteration of this engine ran, or another load had its part.

    Joules total() const { return prefill + decode + unfinished + idle; }
  };
  Result<Accounts> ReadAccounts(Seconds time);

  // Keeps the engine's load alive on GPUs that are shared with other processes: to be called a few
  // times per heartbeat timeout.
  Status Heartbeat(Seconds time) { return board_->Heartbeat(time); }

 private:
  struct Request;
  struct Plan;  // One iteration: who takes part and with what work.

  InferenceEngine(const LanguageModel& model, const EngineOptions& options,
                  EngineListener& listener);
  Status Attach(std::unique_ptr<CoreAccess> gpus);

  Status StartNext(Seconds time);
  void PlanDecodes();
  void PlanPrompts();
  bool Admit(Request& request);
  void AddPrompt(Request& request, unsigned& budget);
  bool MakeRoom(const Request& request, std::uint64_t tokens);
  void Preempt(Request& request);

  Status Finish(const EngineBoard::State& state);
  void Divide(Joules energy);
  void Emit(Request& request);
  void RemoveEnded(Seconds end);
  void Report(Request& request, RequestOutcome outcome, Seconds end);
  void CountEnergy(const EngineBoard::State& state);

  const LanguageModel model_;
  const EngineOptions options_;
  EngineListener& listener_;
  std::unique_ptr<EngineBoard> board_;
  std::optional<IterationParts> parts_;
  std::uint64_t kv_capacity_ = 0;

  RequestId next_id_ = 1;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::vector<Request*> running_;  // In the order of admission.
  std::deque<Request*> waiting_;
  std::uint64_t kv_used_ = 0;

  std::unique_ptr<Plan> plan_;
  bool iterating_ = false;
  bool reporting_ = false;
  std::vector<OutputToken> tokens_;

  EngineBoard::State last_{};  // When energy was last counted.
  EnergySum prefill_;
  EnergySum decode_;
  EnergySum idle_;
};

}  // namespace zeus::sim
