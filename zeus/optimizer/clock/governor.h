#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/clock/engine_model.h"
#include "zeus/optimizer/clock/service_targets.h"

// Chooses the clock of the GPUs behind an inference server: the one of least energy that keeps the
// latency targets.
//
// Prediction proposes. An EngineModel learns, from the tokens that arrive, how long an iteration
// takes at each clock, and from the energy counter what it costs. For every request in flight the
// governor predicts time to first token and time per output token at each clock, and takes the
// lowest clock at which every request that can still be served in time is.
//
// Feedback bounds. Predictions are held against a share of the target. The share falls with every
// request that was late because of the governor and rises slowly with the others, such that in the
// long run at most `added_misses` of all requests are late that would have been in time at the
// highest clock, whatever the model believes.
//
// A driver calls Decide() every 250 ms and when an arrival WantsDecision(), and locks the clock of
// the decision:
//
//   governor.OnArrival(now, id, prompt_tokens);
//   governor.OnTokens(now, id, 1);
//   governor.OnEnd(now, id);
//   const ClockDecision decision = governor.Decide({.time = now, .energy = counter, …});
//   if (decision.lock) knob.Lock(*decision.lock);
namespace zeus {

enum class GovernorMode {
  kActive,
  kObserver,  // Decides and says what it would save; no decision has a clock to lock.
};

struct GovernorOptions {
  ServiceTargets targets;
  std::vector<Hertz> clocks;  // Those that can be locked, ascending.
  GovernorMode mode = GovernorMode::kActive;
  // From knowledge() of an earlier run with the same model on the same kind of GPU.
  std::optional<EngineKnowledge> knowledge{};
  // Share of requests that may be late because of the governor.
  double added_misses = 0.003;
  // Prompt tokens that the engine works on in one iteration.
  double chunk_tokens = 2048;
};

// State of the GPUs at the time of a decision.
struct GovernorSample {
  TimePoint time;
  // Energy counters of all GPUs of the engine, summed; nullopt while no sensor answers.
  std::optional<Joules> energy{};
  // The clock at which the slowest GPU runs.
  std::optional<Hertz> clock{};
  // Why the clock is not the governor's to set: another program holds it or has set it, for example
  // the error of a Lock() that failed. The governor then stands still for a minute.
  std::optional<std::string> foreign{};
};

enum class ClockReason {
  kLearning,     // The highest clock, until the model of the engine is known.
  kSweep,        // Measures the energy at this clock while the load is calm.
  kTargets,      // The lowest clock that keeps the targets.
  kLeastEnergy,  // Even lower clocks would keep the targets but cost more energy.
  kMissed,       // Targets are missed at the highest clock: it stays.
  kIdle,         // Nothing is in flight.
  kForeign,      // Another program set the clock: the governor stands still.
};

// "learning", "sweep", "targets", "least_energy", "missed", "idle", "foreign"
const char* ClockReasonName(ClockReason reason);

struct ClockDecision {
  Hertz clock;                  // The one that is right now; in observer mode the one it would be.
  std::optional<Hertz> lock{};  // To be locked now; nullopt when nothing is to be done.
  ClockReason reason;
  std::string text;  // One sentence for people.
};

struct GovernorStatus {
  std::uint64_t finished = 0;  // Requests that ended with at least one token.
  std::uint64_t missed = 0;    // Finished requests that missed a target.
  std::uint64_t added = 0;     // Missed ones that would have been in time at the highest clock.
  // Latencies at the percentiles of the targets, of requests that ended in the last 10 s.
  std::optional<Seconds> ttft{};
  std::optional<Seconds> tpot{};
  double share = 0;  // Share of a target against which predictions are held.
  Hertz floor{};     // The clock of least energy for the present load.
  Joules used{};     // Since the first sample.
  // Energy saved against the highest clock; in observer mode, that would have been. An estimate
  // of the model.
  Joules saved{};
};

// Deterministic; no clock, files or threads of its own. Times must not go back. Ids are unique
// among the requests in flight; unknown ones are ignored. One owner.
class ClockGovernor {
 public:
  // kInvalidArgument without targets or with fewer than two clocks.
  static Result<ClockGovernor> Create(GovernorOptions options);
  ~ClockGovernor();
  ClockGovernor(ClockGovernor&&) noexcept;
  ClockGovernor& operator=(ClockGovernor&&) noexcept;

  // A request was sent to the engine. `prompt_tokens` without those in the prefix cache, as far as
  // known: an estimate will do.
  void OnArrival(TimePoint time, std::uint64_t id, double prompt_tokens);
  // Corrects the number of prompt tokens when the server has told it.
  void OnPromptTokens(std::uint64_t id, double prompt_tokens);
  // So many tokens of an answer came. The first call ends the prompt phase. Of several sequences
  // of one request those of one are enough.
  void OnTokens(TimePoint time, std::uint64_t id, unsigned tokens);
  // The request is over, for whatever reason.
  void OnEnd(TimePoint time, std::uint64_t id);

  // Whether a decision should not wait for the next 250 ms: the first request after a rest came,
  // or a burst.
  bool WantsDecision() const;
  ClockDecision Decide(const GovernorSample& sample);

  GovernorStatus status() const;
  // To be stored under the names of model and GPU, and given to the next run.
  EngineKnowledge knowledge() const;

 private:
  class State;
  explicit ClockGovernor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zeus
