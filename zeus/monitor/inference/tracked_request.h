#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "zeus/monitor/inference/attribution.h"

namespace zeus {

// Inside the attribution, times are seconds on the caller's clock and energies are joules, both as
// plain numbers: they enter and leave linear algebra. The public header has the units.

// The terms of the law of an iteration. Attention is the sum, over the prompt tokens, of the
// context that each of them looked at. Experts is the part of a mixture's experts that were read.
enum EnergyTerm : std::size_t {
  kFixedTerm,
  kSequenceTerm,
  kContextTerm,
  kPromptTerm,
  kAttentionTerm,
  kExpertsTerm,
  kHeavyTerm,
  kEnergyTerms,
};
using EnergyTerms = std::array<double, kEnergyTerms>;

inline double Dot(const EnergyTerms& a, const EnergyTerms& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kEnergyTerms; ++i) sum += a[i] * b[i];
  return sum;
}

// The part of the experts of a mixture model that an iteration with so many new tokens reads. Eight
// of 128 experts for each token, as is usual, would be 15.5 instead of 16; a dense model has a
// coefficient of 0.
inline double ExpertsRead(double tokens) { return -std::expm1(-tokens / 16); }

using RequestIndex = std::uint32_t;
constexpr RequestIndex kNoRequest = static_cast<RequestIndex>(-1);

// Everything that is known about a request that is in flight or not yet settled.
struct TrackedRequest {
  InferenceRequestId id = 0;
  EngineIndex engine = 0;

  double arrival = 0;
  double prompt_bytes = 0;
  double sequences = 1;

  // The prompt tokens that need work, as well as known, and those that were cached.
  double prompt = 0;
  double prompt_sigma = 0;  // 0: the server told the number.
  double cached = 0;
  double worked = 0;        // Prompt tokens given to iterations so far.
  double prior_prompt = 0;  // The number of tokens guessed from the bytes.
  // The prompt that got the rest of the iteration in which this one was finished: the two share a
  // known number of tokens, so what one got too much the other lacks.
  RequestIndex successor = kNoRequest;
  bool succeeds = false;      // It is the successor of another.
  std::uint64_t episode = 0;  // The stretch of prompt work that ended with its first token.

  // The place in the engine's sequence of iterations.
  std::int64_t first_iteration = 0;
  double progress = 0;         // Iterations since the first one, by the tokens seen.
  std::int64_t delivered = 0;  // The last iteration that this request took part in.

  double events = 0;       // Events with output.
  double tokens_seen = 0;  // Tokens that these are believed to hold.
  double decoded = 0;      // Decoded tokens given to iterations so far, of all sequences.
  double last_token = 0;   // Time of the last event.

  double end = 0;
  double prompt_end = 0;  // The end of the work on the prompt, where the server told; 0: unknown.
  double last_touch = 0;  // The end of the last iteration that it took part in.
  TokenCounts counts{};

  // Energy of the intervals that have been settled, and how it reacts to the law.
  double prefill = 0;
  double decode = 0;
  double prefill_variance = 0;  // Without the part of the law.
  double decode_variance = 0;
  double prefill_unseen = 0;  // Predicted energy of intervals that were not measured.
  double decode_unseen = 0;
  double decode_placed = 0;  // Possible error of `decode` by prompt work that was placed wrongly.
  EnergyTerms prefill_gradient{};
  EnergyTerms decode_gradient{};
  // The parts of the predictions that other work of the same interval could have taken: where a
  // request is alone in an interval, the measurement has corrected every error of its own.
  double prefill_open = 0;
  double prefill_heavy = 0;  // The part of `prefill` at a low clock, whose law is less exact.
  double prefill_predicted = 0;
  double split_tokens = 0;  // Prompt tokens whose number traded places with those of other prompts.
  double decode_open = 0;
  double decode_predicted = 0;
  double scale_weight = 0;  // Mean of measured over predicted, weighted by predicted energy.
  double scale_sum = 0;
  double measured_before = 0;  // Energy of the group up to the arrival.
  double settled_decoded = 0;  // The part of `decoded` in settled intervals.
  double settled_prompt = 0;
  double mean_share = 1;   // A token's part of its iteration's fixed energy, lately.
  std::uint32_t slot = 0;  // Used by the ledger while it settles an interval.

  RequestOutcome outcome = RequestOutcome::kCompleted;
  bool used = false;  // False: the place is free.
  bool streamed = true;
  bool prompt_done = false;  // The first token has come, or must have.
  bool aligned = false;      // Its place in the engine's sequence of iterations is known.
  bool ended = false;

  double context() const { return prompt + cached + decoded / sequences; }
  // Tokens that are decoded after the first ones, as told by the server.
  std::optional<double> DecodedTold() const {
    if (!counts.output) return std::nullopt;
    return std::max(0.0, *counts.output - sequences);
  }
};

// The requests by id, in places that are used again.
class RequestTable {
 public:
  TrackedRequest& operator[](RequestIndex index) { return places_[index]; }
  const TrackedRequest& operator[](RequestIndex index) const { return places_[index]; }

  // The place of `id`, or kNone.
  static constexpr RequestIndex kNone = kNoRequest;
  RequestIndex Find(InferenceRequestId id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? kNone : found->second;
  }
  RequestIndex Add(InferenceRequestId id) {
    RequestIndex index = 0;
    if (free_.empty()) {
      index = static_cast<RequestIndex>(places_.size());
      places_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
      places_[index] = TrackedRequest{};
    }
    places_[index].id = id;
    places_[index].used = true;
    by_id_[id] = index;
    return index;
  }
  void Remove(RequestIndex index) {
    // Those before it now trade with the one behind it.
    if (places_[index].succeeds)
      for (TrackedRequest& other : places_)
        if (other.successor == index) other.successor = places_[index].successor;
    by_id_.erase(places_[index].id);
    places_[index].used = false;
    places_[index].successor = kNone;
    free_.push_back(index);
  }
  std::size_t size() const { return by_id_.size(); }

 private:
  std::vector<TrackedRequest> places_;
  std::vector<RequestIndex> free_;
  std::unordered_map<InferenceRequestId, RequestIndex> by_id_;
};

// A sequence's part in one iteration: `tokens` were decoded with `context` tokens before each.
struct DecodePart {
  RequestIndex request = 0;
  double tokens = 1;
  double context = 0;
};

// A prompt's part in one iteration.
struct PromptPart {
  RequestIndex request = 0;
  double tokens = 0;
  double attention = 0;
};

// One iteration of an engine.
struct EngineIteration {
  double begin = 0;
  double end = 0;
  std::vector<DecodePart> decode{};
  std::vector<RequestIndex> firsts{};  // Requests whose first token it gave.
  std::vector<PromptPart> prompts{};   // Filled by the schedule of prompt work.
  double strangers = 0;  // Sequences that the engine runs for others than our requests.
  double busy_from = 0;  // Before this moment, the engine stalled or waited.
  double clock = 1;      // The GPU's clock, relative to that of light iterations.

  // New tokens of all sequences and prompts.
  double tokens() const {
    double sum = sequences();
    for (const PromptPart& prompt : prompts) sum += prompt.tokens;
    return sum;
  }
  double sequences() const {
    double sum = strangers;
    for (const DecodePart& part : decode) sum += part.tokens;
    return sum;
  }
};

}  // namespace zeus
