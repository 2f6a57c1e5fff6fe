#include "zeus/optimizer/clock/request_tracker.h"

#include <algorithm>
#include <cmath>

namespace zeus {
namespace {

constexpr double kRateMemory = 20;     // Seconds.
constexpr double kLengthMemory = 300;  // Requests.

// An exponential mean that starts as a plain one.
void AddTo(double& mean, double& seen, double value) {
  seen = std::min(seen + 1, kLengthMemory);
  mean += (value - mean) / seen;
}

}  // namespace

void RequestTracker::AdvanceTo(TimePoint time) {
  if (!started_) {
    started_ = true;
    start_ = now_ = idle_since_ = time;
  }
  const double passed = std::max(0.0, (time - now_).count());
  now_ = std::max(now_, time);
  arrival_rate_ *= std::exp(-passed / kRateMemory);
  if (live_.empty()) return;
  busy_ += passed;
  fast_prompt_ += passed / prompt_slowdown_;
  fast_decode_ += passed / decode_slowdown_;
  if (const auto sequences = static_cast<double>(decoding()); sequences > 0) {
    decode_time_ += passed;
    decoding_time_ += passed * sequences;
  }
}

void RequestTracker::OnArrival(TimePoint time, std::uint64_t id, double prompt_tokens) {
  AdvanceTo(time);
  const double prompt = std::max(1.0, prompt_tokens);
  const auto [entry, is_new] = live_.try_emplace(
      id, LiveRequest{.arrival = now_, .prompt_tokens = prompt, .prompt_start = fast_prompt_});
  if (!is_new) return;
  waiting_.emplace(next_order_, id);
  orders_.emplace(id, next_order_++);
  arrival_rate_ += 1.0 / kRateMemory;
  AddTo(mean_prompt_, prompts_seen_, prompt);
}

void RequestTracker::OnPromptTokens(std::uint64_t id, double prompt_tokens) {
  if (const auto found = live_.find(id); found != live_.end())
    found->second.prompt_tokens = std::max(1.0, prompt_tokens);
}

void RequestTracker::OnTokens(TimePoint time, std::uint64_t id, unsigned tokens) {
  AdvanceTo(time);
  const auto found = live_.find(id);
  if (found == live_.end() || tokens == 0) return;
  LiveRequest& request = found->second;
  double counted = tokens;
  if (!request.first) {
    request.first = now_;
    request.prompt_end = fast_prompt_;
    request.decode_start = fast_decode_;
    prompt_ += request.prompt_tokens;
    const auto order = orders_.find(id);
    waiting_.erase(order->second);
    orders_.erase(order);
    counted -= 1;
  }
  outputs_ += tokens;
  request.tokens += counted;
  tokens_ += counted;
  request.last = now_;
  request.decode_end = fast_decode_;
}

std::optional<EndedRequest> RequestTracker::OnEnd(TimePoint time, std::uint64_t id) {
  AdvanceTo(time);
  const auto found = live_.find(id);
  if (found == live_.end()) return std::nullopt;
  const LiveRequest request = found->second;
  live_.erase(found);
  if (const auto order = orders_.find(id); order != orders_.end()) {
    waiting_.erase(order->second);
    orders_.erase(order);
  }
  if (live_.empty()) idle_since_ = now_;
  if (!request.first) return std::nullopt;
  constexpr double kKeep = 1.0 - 1.0 / kLengthMemory;
  outputs_ *= kKeep;
  ends_ = ends_ * kKeep + 1.0;
  EndedRequest ended{.end = now_,
                     .ttft = *request.first - request.arrival,
                     .fast_ttft = Seconds(request.prompt_end - request.prompt_start)};
  if (request.tokens > 0) {
    ended.tpot = (request.last - *request.first) / request.tokens;
    ended.fast_tpot = Seconds((request.decode_end - request.decode_start) / request.tokens);
  }
  return ended;
}

EngineWork RequestTracker::CollectWork(TimePoint time) {
  AdvanceTo(time);
  EngineWork work{.busy = busy_, .decoded = tokens_, .prompt = prompt_};
  // Each sequence that decodes gets one token per iteration.
  if (decoding_time_ > 0) work.iterations = tokens_ * decode_time_ / decoding_time_;
  busy_ = decode_time_ = decoding_time_ = tokens_ = prompt_ = 0;
  return work;
}

void RequestTracker::SetSlowdown(TimePoint time, double prompt, double decode) {
  AdvanceTo(time);
  prompt_slowdown_ = std::max(1.0, prompt);
  decode_slowdown_ = std::max(1.0, decode);
}

std::vector<const LiveRequest*> RequestTracker::WaitingInOrder() const {
  std::vector<const LiveRequest*> ordered;
  ordered.reserve(waiting_.size());
  for (const auto& [order, id] : waiting_) ordered.push_back(&live_.at(id));
  return ordered;
}

EngineDemand RequestTracker::Demand(TimePoint time) const {
  const double passed = std::max(0.0, (time - now_).count());
  // Shortly after the start the exponential mean has not yet seen a whole memory.
  const double seen = 1.0 - std::exp(-(time - start_).count() / kRateMemory);
  const double rate = arrival_rate_ * std::exp(-passed / kRateMemory) / std::max(seen, 0.1);
  return {.tokens = rate * mean_output(), .prompt = rate * mean_prompt_};
}

}  // namespace zeus
