#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/optimizer/clock/engine_model.h"
#include "zeus/optimizer/clock/service_targets.h"

namespace zeus {

// A request that was sent to the engine and has not ended.
struct LiveRequest {
  TimePoint arrival{};
  double prompt_tokens = 0;
  std::optional<TimePoint> first{};  // First token.
  TimePoint last{};                  // Last token so far.
  double tokens = 0;                 // After the first one.
  // Readings of the tracker's counters of seconds at the highest clock.
  double prompt_start = 0;
  double prompt_end = 0;
  double decode_start = 0;
  double decode_end = 0;
};

// A request that ended after its first token.
struct EndedRequest {
  TimePoint end{};
  Seconds ttft{};
  std::optional<Seconds> tpot{};  // nullopt with a single token.
  // About the latencies that it would have had at the highest clock, at most.
  Seconds fast_ttft{};
  Seconds fast_tpot{};
};

// The requests in flight, the work that they made the engine do, and the demand of those to come.
// Times must not go back. One owner.
class RequestTracker {
 public:
  void OnArrival(TimePoint time, std::uint64_t id, double prompt_tokens);
  void OnPromptTokens(std::uint64_t id, double prompt_tokens);
  void OnTokens(TimePoint time, std::uint64_t id, unsigned tokens);
  // The ended request, if it had a token.
  std::optional<EndedRequest> OnEnd(TimePoint time, std::uint64_t id);

  // Work since the last call.
  EngineWork CollectWork(TimePoint time);
  // From now on prompts take `prompt` times and tokens `decode` times as long as at the highest
  // clock.
  void SetSlowdown(TimePoint time, double prompt, double decode);

  bool empty() const { return live_.empty(); }
  // When the last request ended, while none is in flight.
  TimePoint idle_since() const { return idle_since_; }
  std::size_t decoding() const { return live_.size() - waiting_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  const std::unordered_map<std::uint64_t, LiveRequest>& live() const { return live_; }
  // Those without a token, in the order of arrival.
  std::vector<const LiveRequest*> WaitingInOrder() const;

  // Expected of the next requests.
  EngineDemand Demand(TimePoint time) const;
  // Counts the tokens of requests in flight too: those that ended first are the short ones.
  double mean_output() const { return outputs_ / ends_; }
  double mean_prompt() const { return mean_prompt_; }

 private:
  void AdvanceTo(TimePoint time);

  std::unordered_map<std::uint64_t, LiveRequest> live_;
  std::map<std::uint64_t, std::uint64_t> waiting_;  // Ids by order of arrival.
  std::unordered_map<std::uint64_t, std::uint64_t>
      orders_;  // Order of arrival of waiting requests, by id.
  std::uint64_t next_order_ = 0;
  TimePoint now_{};
  bool started_ = false;
  TimePoint start_{};
  TimePoint idle_since_{};

  // Since work was last collected.
  double busy_ = 0;
  double decode_time_ = 0;    // Seconds with a sequence that decodes.
  double decoding_time_ = 0;  // Summed over sequences.
  double tokens_ = 0;
  double prompt_ = 0;

  // Time at the present speed, in seconds of the highest clock.
  double prompt_slowdown_ = 1;
  double decode_slowdown_ = 1;
  double fast_prompt_ = 0;
  double fast_decode_ = 0;

  // Exponential means; rates per second as of now_.
  double arrival_rate_ = 0;
  double mean_prompt_ = 512;
  double prompts_seen_ = 0;
  double outputs_ = 128;  // Tokens, forgotten with `ends_`.
  double ends_ = 1;
};

}  // namespace zeus
