#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus {

// The parameters of the law by which an engine's iterations take energy:
// energy = fixed + per_sequence * D + per_context * C + per_prompt * p, for D decoding sequences
// with C tokens of context together and p prompt tokens.
struct IterationEnergyLaw {
  Joules fixed{};
  Joules per_sequence{};
  Joules per_context{};
  Joules per_prompt{};
};

// One inference engine, such as a vLLM process, with continuous batching.
struct InferenceEngineSpec {
  std::string name{};
  // The first guess of the law and how far it may be wrong (one standard deviation, relative).
  // nullopt: nothing is known, and the first minutes are less certain.
  std::optional<IterationEnergyLaw> prior{};
  double prior_relative_sigma = 0.5;
};

using EngineIndex = std::size_t;
using InferenceRequestId = std::uint64_t;

// How a request came to its end.
enum class RequestOutcome { kCompleted, kFailed, kCancelled };

// Counts that the server itself told, as far as it did.
struct TokenCounts {
  std::optional<double> prompt{};
  std::optional<double> cached{};  // The part of the prompt that needed no work.
  std::optional<double> output{};
};

// Times that some servers tell about one request. They show where the prompt of a response in one
// piece ended.
struct ServerTimings {
  std::optional<Seconds> decode{};  // From the first token to the last.
};

// A request's energy, by phase, with one standard deviation.
struct RequestEnergy {
  Joules energy{};
  Joules sigma{};
  Joules prefill{};
  Joules prefill_sigma{};
  Joules decode{};
  Joules decode_sigma{};
  double prompt_tokens = 0;  // The ones that were worked on.
  double output_tokens = 0;
  bool tokens_estimated = false;  // The server told no counts.
  // The request's part of what the group's GPUs took while it was in flight.
  double ratio = 0;
  bool final = false;  // The sensors have shown all of it.
};

// A request whose energy has become final.
struct SettledRequest {
  InferenceRequestId id = 0;
  EngineIndex engine = 0;
  RequestEnergy energy{};
};

// Where every joule of the group went, since the start. The sum of all is `measured`. The two
// energies of an engine are together the sum over its requests, those in flight included, as far as
// intervals have been settled; how a request divides between its phases may be corrected at its
// end.
struct EnergyAccounts {
  struct Engine {
    Joules prefill{};
    Joules decode{};
  };
  std::vector<Engine> engines{};  // By EngineIndex.
  Joules idle{};
  Joules other{};     // Taken by work that no engine of the group explains.
  Joules measured{};  // Energy of all intervals that have been settled.
};

// The law as it is known now, for people and metrics.
struct LearnedLaw {
  IterationEnergyLaw energy{};
  IterationEnergyLaw sigma{};
  Seconds fixed_time{};  // The same terms of an iteration's duration.
  Seconds time_per_sequence{};
  Seconds time_per_context{};
  Seconds time_per_prompt{};
  double mean_batch = 0;  // Sequences of the last minute's iterations.
};

// Divides the energy of a group of GPUs among the requests of the engines that run on them.
//
// It has no clock, no sockets and no threads. The caller tells what it sees, each kind in the order
// of time: arrivals, tokens and ends of requests, and the energy that sensors measured over
// consecutive intervals. Times of different kinds may be out of order by some seconds. One owner.
class InferenceAttribution {
 public:
  struct Options {
    // A gap between tokens that begins a new iteration, until the engine's own gaps are known.
    Seconds first_gap{0.0025};
    // The memory of the models: observations count half after this time.
    Seconds half_life{600};
    Watts idle_power{};  // The first guess.
  };

  explicit InferenceAttribution(Options options);
  InferenceAttribution();
  ~InferenceAttribution();
  InferenceAttribution(const InferenceAttribution&) = delete;
  InferenceAttribution& operator=(const InferenceAttribution&) = delete;

  EngineIndex AddEngine(const InferenceEngineSpec& spec);

  // The caller knows this about a request before its first token.
  struct Arrival {
    EngineIndex engine = 0;
    TimePoint time{};
    double prompt_bytes = 0;  // Used until the server tells the tokens.
    unsigned sequences = 1;   // More than 1 for `n` and beams.
    bool streamed = true;     // Otherwise no token is seen before the end.
  };
  // `id` must not be in flight.
  void RequestArrived(InferenceRequestId id, const Arrival& arrival);
  // An event with output arrived. `tokens` is 1 unless the dialect tells more.
  void TokensArrived(InferenceRequestId id, TimePoint time, double tokens = 1);
  // Counts that the server told before the end, such as those of the prompt with the first event.
  void CountsSeen(InferenceRequestId id, const TokenCounts& counts);
  void RequestEnded(InferenceRequestId id, TimePoint time, RequestOutcome outcome,
                    const TokenCounts& counts = {}, const ServerTimings& timings = {});
  // The engine's own gauge of running requests, where it has one.
  void RunningRequestsSeen(EngineIndex engine, TimePoint time, double running);

  // The energy of the group's GPUs together from the end of the interval before until `end`. The
  // first call only sets the time from which energy is accounted for. An energy that is not a
  // number is unknown: no request is charged for that interval.
  void EnergyMeasured(TimePoint end, Joules energy, Joules sigma);
  // Energy of intervals that were told as unknown. No request can be charged for it any more: it is
  // added to `other`.
  void LateEnergyMeasured(Joules energy);
  // The clock or the power limit changed: another law holds from now on. `setting` names it, so
  // that a law learned before is used again.
  void SettingChanged(TimePoint time, std::string_view setting);

  // The energy of a request that has ended, or is in flight, as well as it is known now. nullopt
  // for a request that is unknown or was returned by TakeSettled().
  std::optional<RequestEnergy> Estimate(InferenceRequestId id) const;
  // Requests whose energy has become final since the last call. They are forgotten.
  std::vector<SettledRequest> TakeSettled();

  const EnergyAccounts& accounts() const;
  LearnedLaw Law(EngineIndex engine) const;
  // Power that the group takes when nothing is in flight, as learned.
  Watts idle_power() const;
  // Measured energy over predicted energy of the last minute.
  double residual_ratio() const;
  // Tokens for which an iteration of this engine has room, as inferred; 0 while unknown.
  double TokenBudget(EngineIndex engine) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace zeus
