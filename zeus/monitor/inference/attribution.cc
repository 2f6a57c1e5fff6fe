// How energy finds its request, from what a proxy sees.
//
//   tokens      -> IterationTracker   when did the engine's iterations end, and who was in them
//   iterations  -> PromptSchedule     which prompts were worked on in which of them
//   durations   -> DurationModel      how long an iteration takes; what is left is prompt work
//   joules      -> EnergyLedger       shares of each interval, its scale, and the law of the energy
//
// This file holds the requests, brings the kinds of news into one order of time, and corrects a
// request by the counts that a server tells only at its end.

#include "zeus/monitor/inference/attribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "zeus/monitor/inference/duration_model.h"
#include "zeus/monitor/inference/energy_ledger.h"
#include "zeus/monitor/inference/iteration_tracker.h"
#include "zeus/monitor/inference/prompt_schedule.h"
#include "zeus/monitor/inference/tracked_request.h"

namespace zeus {
namespace {

constexpr double kBytesPerToken = 4;    // Until the servers' counts show another number.
constexpr double kPromptScatter = 0.3;  // Relative scatter of the tokens around it, at first.
constexpr double kStepTime = 0.004;     // Iterations are looked for this often.
constexpr double kEnergySlack = 0.3;    // Tokens may be told this much later than energy.
constexpr double kShortestInterval = 0.01;
constexpr double kUpdateTime = 1.0;  // The law of durations is solved this often.
constexpr std::size_t kMostIntervals = 4096;
constexpr double kRestError = 0.05;  // Relative error of energy that is predicted.
constexpr double kMostTokens = 1e8;  // More in one request are a mistake of the server.

double ToSeconds(TimePoint time) { return time.time_since_epoch().count(); }

double NonNegative(double value, double otherwise) {
  return std::isfinite(value) && value >= 0 ? value : otherwise;
}

}  // namespace

class InferenceAttribution::State {
 public:
  explicit State(const Options& options)
      : options_(options),
        ledger_(requests_, {.half_life = std::max(1.0, options.half_life.count()),
                            .idle_power = NonNegative(options.idle_power.value(), 0)}) {}

  EngineIndex AddEngine(const InferenceEngineSpec& spec);
  void Arrived(InferenceRequestId id, const Arrival& arrival);
  void Tokens(InferenceRequestId id, double time, double tokens);
  void Counts(InferenceRequestId id, const TokenCounts& counts);
  void Ended(InferenceRequestId id, double time, RequestOutcome outcome, const TokenCounts& counts,
             const ServerTimings& timings);
  void Running(EngineIndex engine, double time, double running);
  void Energy(double end, double energy, double sigma);
  void LateEnergy(double energy) {
    if (std::isfinite(energy) && energy > 0) ledger_.AddOther(energy);
  }
  void Setting(const std::string& setting) { ledger_.ChangeSetting(setting); }

  std::optional<RequestEnergy> Estimate(InferenceRequestId id) const;
  std::vector<SettledRequest> TakeSettled() { return std::exchange(settled_, {}); }
  const EnergyAccounts& accounts() const { return ledger_.accounts(); }
  LearnedLaw Law(EngineIndex engine) const;
  double idle_power() const { return ledger_.idle_power(); }
  double residual_ratio() const { return ledger_.residual_ratio(); }
  double budget(EngineIndex engine) const { return engines_[engine]->schedule.budget(); }

 private:
  struct Engine {
    Engine(RequestTable& requests, double first_gap)
        : tracker(requests, first_gap), schedule(requests, durations) {}
    DurationModel durations{};
    IterationTracker tracker;
    PromptSchedule schedule;
    // Learned from requests whose counts were told.
    double bytes = 0;
    double byte_tokens = 0;
    double scatter = kPromptScatter;
    // How well each number of tokens per event explains the counts; the first is for 1.
    std::array<double, 16> event_scores{};
    double events = 0;
    double event_tokens = 0;
    double updated = 0;
    double excess_running = 0;
    int excess_seen = 0;

    double BytesPerToken() const { return byte_tokens > 0 ? bytes / byte_tokens : kBytesPerToken; }
    double TokensPerEvent() const;
  };

  double InOrder(double time);
  void Step(double now);
  void Update(Engine& engine, EngineIndex index, double now);
  void SettleReady();
  void Finalize();
  void ApplyPromptCount(TrackedRequest& request, const TokenCounts& counts);
  void LearnCounts(Engine& engine, const TrackedRequest& request);
  void TradeWithSuccessor(RequestIndex index);
  struct Correction {
    double prefill;
    double decode;
  };
  Correction CorrectionByCounts(const TrackedRequest& request) const;
  RequestEnergy Describe(const TrackedRequest& request) const;

  Options options_;
  RequestTable requests_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::deque<EngineIteration>> iterations_;
  EnergyLedger ledger_;
  std::deque<MeasuredInterval> intervals_;
  std::optional<double> measured_until_;
  double settled_until_ = -std::numeric_limits<double>::infinity();
  double leftover_energy_ = 0;  // Energy of intervals too short to be told apart.
  double leftover_variance_ = 0;
  double now_ = -std::numeric_limits<double>::infinity();
  double stepped_ = -std::numeric_limits<double>::infinity();
  std::vector<RequestIndex> ended_;  // Not yet settled.
  std::vector<SettledRequest> settled_;
};

double InferenceAttribution::State::Engine::TokensPerEvent() const {
  if (events < 20) return 1;
  const auto best = std::max_element(event_scores.begin(), event_scores.end());
  if (*best > 0.7) return static_cast<double>(best - event_scores.begin() + 1);
  const double ratio = event_tokens / events;
  return std::abs(ratio - 1) < 0.02 ? 1 : std::max(1.0, ratio);
}

EngineIndex InferenceAttribution::State::AddEngine(const InferenceEngineSpec& spec) {
  engines_.push_back(std::make_unique<Engine>(requests_, options_.first_gap.count()));
  iterations_.emplace_back();
  ledger_.AddEngine(spec);
  Update(*engines_.back(), engines_.size() - 1, 0);
  return engines_.size() - 1;
}

// Times that jump back are thought to be now.
double InferenceAttribution::State::InOrder(double time) {
  if (!std::isfinite(time)) return std::isfinite(now_) ? now_ : 0;
  now_ = std::max(now_, time);
  return time;
}

void InferenceAttribution::State::Arrived(InferenceRequestId id, const Arrival& arrival) {
  if (arrival.engine >= engines_.size() || requests_.Find(id) != RequestTable::kNone) return;
  const double time = InOrder(ToSeconds(arrival.time));
  Engine& engine = *engines_[arrival.engine];
  const RequestIndex index = requests_.Add(id);
  TrackedRequest& request = requests_[index];
  request.engine = arrival.engine;
  request.arrival = time;
  request.prompt_bytes = std::min(NonNegative(arrival.prompt_bytes, 0), kMostTokens);
  request.sequences = std::max(1U, arrival.sequences);
  request.streamed = arrival.streamed;
  request.prompt = std::max(1.0, request.prompt_bytes / engine.BytesPerToken());
  request.prior_prompt = request.prompt;
  request.prompt_sigma = std::max(2.0, engine.scatter * request.prompt);
  request.measured_before = ledger_.accounts().measured.value();
  engine.tracker.Arrived(index, time);
  engine.schedule.Arrived(index);
  Step(now_);
}

void InferenceAttribution::State::Tokens(InferenceRequestId id, double time, double tokens) {
  const RequestIndex index = requests_.Find(id);
  if (index == RequestTable::kNone || requests_[index].ended || !(tokens > 0)) return;
  time = InOrder(time);
  TrackedRequest& request = requests_[index];
  Engine& engine = *engines_[request.engine];
  const double per_event = tokens == 1 ? engine.TokensPerEvent() : std::min(tokens, 4096.0);
  request.events += 1;
  request.tokens_seen += per_event;
  request.last_token = time;
  engine.tracker.TokenArrived(index, time, per_event / request.sequences);
  if (now_ > stepped_ + kStepTime) Step(now_);
}

void InferenceAttribution::State::ApplyPromptCount(TrackedRequest& request,
                                                   const TokenCounts& counts) {
  const auto take = [](const std::optional<double>& told, std::optional<double>& known) {
    if (told && *told >= 0 && *told <= kMostTokens) known = told;
  };
  take(counts.prompt, request.counts.prompt);
  take(counts.cached, request.counts.cached);
  take(counts.output, request.counts.output);
  if (!request.counts.prompt) return;
  request.cached = std::min(request.counts.cached.value_or(0), *request.counts.prompt);
  request.prompt = std::max(1.0, *request.counts.prompt - request.cached);
  request.prompt_sigma = 0;
}

void InferenceAttribution::State::Counts(InferenceRequestId id, const TokenCounts& counts) {
  const RequestIndex index = requests_.Find(id);
  if (index == RequestTable::kNone || requests_[index].ended) return;
  ApplyPromptCount(requests_[index], counts);
}

void InferenceAttribution::State::LearnCounts(Engine& engine, const TrackedRequest& request) {
  constexpr double kFade = 0.995;
  if (request.counts.prompt && request.prompt_bytes > 0 && *request.counts.prompt > 0) {
    const double tokens = *request.counts.prompt;
    const double miss = std::abs(request.prompt_bytes / engine.BytesPerToken() / tokens - 1);
    engine.scatter += 0.05 * (std::min(1.0, 1.3 * miss) - engine.scatter);
    engine.bytes = kFade * engine.bytes + request.prompt_bytes;
    engine.byte_tokens = kFade * engine.byte_tokens + tokens;
  }
  if (request.counts.output && request.events > 0 && request.streamed &&
      request.outcome == RequestOutcome::kCompleted) {
    const double before = engine.TokensPerEvent();
    engine.events = kFade * engine.events + request.events;
    engine.event_tokens = kFade * engine.event_tokens + *request.counts.output;
    // A server that sends m tokens per event may send fewer with the last one.
    for (std::size_t i = 0; i < engine.event_scores.size(); ++i) {
      const bool fits =
          std::ceil(*request.counts.output / static_cast<double>(i + 1)) == request.events;
      engine.event_scores[i] += 0.05 * ((fits ? 1 : 0) - engine.event_scores[i]);
    }
    if (engine.TokensPerEvent() != before) {
      // Everything was learned with another idea of what an event is.
      engine.durations = DurationModel();
      ledger_.StartAgain();
    }
    engine.tracker.set_event_iterations(engine.TokensPerEvent());
  }
}

void InferenceAttribution::State::Ended(InferenceRequestId id, double time, RequestOutcome outcome,
                                        const TokenCounts& counts, const ServerTimings& timings) {
  const RequestIndex index = requests_.Find(id);
  if (index == RequestTable::kNone || requests_[index].ended) return;
  time = InOrder(time);
  TrackedRequest& request = requests_[index];
  Engine& engine = *engines_[request.engine];
  request.end = std::max(time, request.arrival);
  request.outcome = outcome;
  const bool was_known = request.prompt_sigma <= 0;
  ApplyPromptCount(request, counts);
  request.ended = true;
  // The response came at once, right after its last token.
  if (!request.streamed && timings.decode && *timings.decode >= Seconds(0))
    request.prompt_end = std::max(request.arrival, request.end - timings.decode->count());
  engine.tracker.Ended(index, request.end);
  if (!was_known && request.episode != 0)
    engine.durations.PromptKnown(request.episode, request.prompt, request.cached,
                                 request.prompt_sigma);
  LearnCounts(engine, request);
  TradeWithSuccessor(index);
  ended_.push_back(index);
  Step(now_);
}

void InferenceAttribution::State::Running(EngineIndex index, double time, double running) {
  if (index >= engines_.size() || !std::isfinite(running)) return;
  InOrder(time);
  Engine& engine = *engines_[index];
  // Both counts change between their moments, so a single difference of one means nothing.
  const double excess = running - static_cast<double>(engine.tracker.in_flight());
  engine.excess_seen = excess >= 1 ? engine.excess_seen + 1 : 0;
  engine.excess_running = engine.excess_seen >= 2 ? std::min(excess, std::max(1.0, excess)) : 0;
  engine.schedule.set_strangers(engine.excess_running);
}

void InferenceAttribution::State::Energy(double end, double energy, double sigma) {
  if (!std::isfinite(end)) return;
  if (!measured_until_) {
    measured_until_ = end;
    settled_until_ = end;
    return;
  }
  const bool known = std::isfinite(energy);
  if (known) {
    leftover_energy_ += std::max(0.0, energy);
    leftover_variance_ += std::pow(NonNegative(sigma, 0), 2);
  }
  if (end - *measured_until_ < kShortestInterval && known) return;
  if (end <= *measured_until_) return;
  const double total =
      known ? std::exchange(leftover_energy_, 0.0) : std::numeric_limits<double>::quiet_NaN();
  intervals_.push_back(
      {*measured_until_, end, total, std::sqrt(std::exchange(leftover_variance_, 0.0))});
  measured_until_ = end;
  now_ = std::max(now_, end - kEnergySlack);
  Step(now_);
}

void InferenceAttribution::State::Update(Engine& engine, EngineIndex index, double now) {
  if (now > engine.updated + kUpdateTime) {
    engine.durations.Update(now - engine.updated, std::max(1.0, options_.half_life.count()));
    engine.updated = now;
  }
  const double prompt = engine.durations.PerPrompt(0);
  ledger_.SetDurations(index, {engine.durations.fixed(), engine.durations.per_sequence(),
                               engine.durations.per_context(), prompt,
                               std::max(engine.durations.per_attention(), 1e-6 * prompt),
                               engine.durations.experts(), prompt});
}

// Moves everything forward to `now`: iterations are found, prompt work is given to them, and
// intervals whose iterations are complete are settled.
void InferenceAttribution::State::Step(double now) {
  stepped_ = now;
  for (EngineIndex index = 0; index < engines_.size(); ++index) {
    Engine& engine = *engines_[index];
    engine.tracker.Advance(now);
    std::deque<EngineIteration>& closed = engine.tracker.closed();
    if (!closed.empty()) {
      engine.schedule.set_jitter(engine.tracker.jitter());
      engine.schedule.set_shared(
          std::any_of(engines_.begin(), engines_.end(), [&](const auto& other) {
            return other.get() != &engine && other->tracker.in_flight() > 0;
          }));
      if (engine.updated <= 0) engine.updated = now;
      Update(engine, index, now);
    }
    while (!closed.empty()) {
      std::deque<EngineIteration>& done = iterations_[index];
      const std::size_t before = done.size();
      engine.schedule.Process(std::move(closed.front()), done);
      closed.pop_front();
      if (const double usual = engine.schedule.decode_time(); usual > 0)
        engine.tracker.set_typical_duration(usual);
      for (std::size_t i = before; i < done.size(); ++i) {
        double prompt = 0;
        for (const PromptPart& part : done[i].prompts) prompt += part.tokens;
        done[i].clock = engine.durations.ClockWith(prompt);
      }
    }
  }
  SettleReady();
}

void InferenceAttribution::State::SettleReady() {
  while (!intervals_.empty()) {
    double frontier = now_;
    for (const auto& engine : engines_) frontier = std::min(frontier, engine->tracker.frontier());
    if (intervals_.front().end > frontier && intervals_.size() < kMostIntervals) break;
    ledger_.Settle(intervals_.front(), iterations_);
    settled_until_ = intervals_.front().end;
    intervals_.pop_front();
    Finalize();
  }
}

// The energy was divided with the counts that were known then. The difference to the final counts
// is small, and is paid by the requests that are still open.
InferenceAttribution::State::Correction InferenceAttribution::State::CorrectionByCounts(
    const TrackedRequest& request) const {
  const double scale = request.scale_weight > 0 ? request.scale_sum / request.scale_weight : 1;
  double prefill = 0;
  double decode = 0;
  if (request.counts.prompt && request.worked > 0) {
    const double missing = request.prompt - request.worked;
    const double alone =
        request.prefill_predicted > 0 ? request.prefill_open / request.prefill_predicted : 1;
    const double split = std::min(1.0, request.split_tokens / request.worked);
    const double open = split + (1 - split) * alone;
    prefill = open * scale *
              (ledger_.PredictPrompt(request, request.prompt, 0) -
               ledger_.PredictPrompt(request, request.worked, 0));
    decode = scale * ledger_.Law(request.engine)[kContextTerm] * request.decoded * missing;
  }
  const std::optional<double> told = request.DecodedTold();
  if (told && request.decoded > 0 && request.outcome == RequestOutcome::kCompleted) {
    const double open =
        request.decode_predicted > 0 ? request.decode_open / request.decode_predicted : 1;
    decode += open * request.decode * (*told / request.decoded - 1);
  }
  return {prefill, decode};
}

// A prompt that was finished with too many tokens took them from the one behind it.
void InferenceAttribution::State::TradeWithSuccessor(RequestIndex index) {
  TrackedRequest& request = requests_[index];
  if (request.successor == RequestTable::kNone || !request.counts.prompt || !request.prompt_done)
    return;
  const double scale = request.scale_weight > 0 ? request.scale_sum / request.scale_weight : 1;
  const double energy = scale * (ledger_.PredictPrompt(request, request.prompt, 0) -
                                 ledger_.PredictPrompt(request, request.worked, 0));
  TrackedRequest& successor = requests_[request.successor];
  const double tokens =
      (request.prompt - request.worked) * ledger_.Trade(index, request.successor, energy);
  request.worked += tokens;
  request.settled_prompt += tokens;
  successor.worked -= tokens;
  successor.settled_prompt -= tokens;
  if (successor.prompt_done && successor.prompt_sigma > 0)
    successor.prompt = std::max(1.0, successor.prompt - tokens);
}

void InferenceAttribution::State::Finalize() {
  std::erase_if(ended_, [&](RequestIndex index) {
    TrackedRequest& request = requests_[index];
    if (settled_until_ < std::max(request.end, request.last_touch)) return false;
    const Correction correction = CorrectionByCounts(request);
    ledger_.Correct(index, correction.prefill, correction.decode);
    RequestEnergy energy = Describe(request);
    energy.final = true;
    settled_.push_back({request.id, request.engine, energy});
    engines_[request.engine]->schedule.Remove(index);
    requests_.Remove(index);
    return true;
  });
}

RequestEnergy InferenceAttribution::State::Describe(const TrackedRequest& request) const {
  RequestEnergy energy;
  const auto sigmas = ledger_.SigmasOf(request, request.prefill, request.decode);
  energy.prefill = Joules(request.prefill);
  energy.decode = Joules(request.decode);
  energy.energy = energy.prefill + energy.decode;
  energy.sigma = Joules(sigmas.total);
  energy.prefill_sigma = Joules(sigmas.prefill);
  energy.decode_sigma = Joules(sigmas.decode);
  energy.prompt_tokens = request.prompt;
  energy.output_tokens = request.counts.output.value_or(request.tokens_seen);
  energy.tokens_estimated = !request.counts.prompt || !request.counts.output;
  const double measured = ledger_.accounts().measured.value() - request.measured_before;
  energy.ratio = measured > 0 ? std::clamp(energy.energy.value() / measured, 0.0, 1.0) : 0;
  return energy;
}

// Energy of the intervals that were settled, and a prediction of the rest.
std::optional<RequestEnergy> InferenceAttribution::State::Estimate(InferenceRequestId id) const {
  const RequestIndex index = requests_.Find(id);
  if (index == RequestTable::kNone) {
    for (const SettledRequest& settled : settled_)
      if (settled.id == id) return settled.energy;
    return std::nullopt;
  }
  TrackedRequest request = requests_[index];
  const EnergyLedger::Rest rest = ledger_.PredictRest(index, iterations_[request.engine]);
  // No more can have been used since the last measurement than the GPUs are likely to have taken.
  const double until = request.ended ? request.end : now_;
  const double unmeasured = std::max(0.0, until - std::max(request.arrival, settled_until_));
  const double predicted = rest.prefill + rest.decode;
  const double most = ledger_.power_bound() * unmeasured;
  const double part = predicted > most ? most / predicted : 1;
  request.prefill = std::max(0.0, request.prefill + part * rest.prefill);
  request.decode += part * rest.decode;
  for (std::size_t i = 0; i < kEnergyTerms; ++i) {
    request.prefill_gradient[i] += part * rest.prefill_terms[i];
    request.decode_gradient[i] += part * rest.decode_terms[i];
  }
  request.worked = rest.worked;
  request.decoded = std::max(request.decoded, request.settled_decoded + rest.decoded);
  if (request.ended) {
    const Correction correction = CorrectionByCounts(request);
    const auto plan = ledger_.PlanCorrection(index, request, correction.prefill, correction.decode);
    request.prefill += plan.prefill + plan.own;
    request.decode += plan.decode - plan.own;
  }
  RequestEnergy energy = Describe(request);
  // The rest is predicted, not measured.
  const double doubt = std::max({kRestError, 2 * ledger_.relative_error(), 1 - part});
  const auto widen = [&](Joules& sigma, double joules) {
    sigma = Joules(std::hypot(sigma.value(), doubt * part * std::abs(joules)));
  };
  widen(energy.sigma, predicted);
  widen(energy.prefill_sigma, rest.prefill);
  widen(energy.decode_sigma, rest.decode);
  return energy;
}

LearnedLaw InferenceAttribution::State::Law(EngineIndex index) const {
  const Engine& engine = *engines_[index];
  const EnergyTerms law = ledger_.Law(index);
  const EnergyTerms sigma = ledger_.LawSigma(index);
  const auto to_law = [](const EnergyTerms& terms) {
    return IterationEnergyLaw{Joules(terms[kFixedTerm]), Joules(terms[kSequenceTerm]),
                              Joules(terms[kContextTerm]), Joules(terms[kPromptTerm])};
  };
  return {.energy = to_law(law),
          .sigma = to_law(sigma),
          .fixed_time = Seconds(engine.durations.fixed()),
          .time_per_sequence = Seconds(engine.durations.per_sequence()),
          .time_per_context = Seconds(engine.durations.per_context()),
          .time_per_prompt = Seconds(engine.durations.PerPrompt(0)),
          .mean_batch = ledger_.mean_batch(index)};
}

InferenceAttribution::InferenceAttribution(Options options)
    : state_(std::make_unique<State>(options)) {}
InferenceAttribution::InferenceAttribution() : InferenceAttribution(Options()) {}
InferenceAttribution::~InferenceAttribution() = default;

EngineIndex InferenceAttribution::AddEngine(const InferenceEngineSpec& spec) {
  return state_->AddEngine(spec);
}
void InferenceAttribution::RequestArrived(InferenceRequestId id, const Arrival& arrival) {
  state_->Arrived(id, arrival);
}
void InferenceAttribution::TokensArrived(InferenceRequestId id, TimePoint time, double tokens) {
  state_->Tokens(id, ToSeconds(time), tokens);
}
void InferenceAttribution::CountsSeen(InferenceRequestId id, const TokenCounts& counts) {
  state_->Counts(id, counts);
}
void InferenceAttribution::RequestEnded(InferenceRequestId id, TimePoint time,
                                        RequestOutcome outcome, const TokenCounts& counts,
                                        const ServerTimings& timings) {
  state_->Ended(id, ToSeconds(time), outcome, counts, timings);
}
void InferenceAttribution::RunningRequestsSeen(EngineIndex engine, TimePoint time, double running) {
  state_->Running(engine, ToSeconds(time), running);
}
void InferenceAttribution::EnergyMeasured(TimePoint end, Joules energy, Joules sigma) {
  state_->Energy(ToSeconds(end), energy.value(), sigma.value());
}
void InferenceAttribution::LateEnergyMeasured(Joules energy) { state_->LateEnergy(energy.value()); }
void InferenceAttribution::SettingChanged(TimePoint, std::string_view setting) {
  state_->Setting(std::string(setting));
}
std::optional<RequestEnergy> InferenceAttribution::Estimate(InferenceRequestId id) const {
  return state_->Estimate(id);
}
std::vector<SettledRequest> InferenceAttribution::TakeSettled() { return state_->TakeSettled(); }
const EnergyAccounts& InferenceAttribution::accounts() const { return state_->accounts(); }
LearnedLaw InferenceAttribution::Law(EngineIndex engine) const { return state_->Law(engine); }
Watts InferenceAttribution::idle_power() const { return Watts(state_->idle_power()); }
double InferenceAttribution::residual_ratio() const { return state_->residual_ratio(); }
double InferenceAttribution::TokenBudget(EngineIndex engine) const {
  return state_->budget(engine);
}

}  // namespace zeus
