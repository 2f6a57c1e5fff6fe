// The file has three parts. Learning feeds windows of about two seconds to the EngineModel and
// adjusts the share of each target against which predictions are held: down by a step with each
// request that was late because of the governor, up by a fraction of a step with each other one.
// Prediction goes through the clocks and asks the model whether every request in flight, and one
// that would come now, is served within its share. Decision takes the lowest clock that does so,
// but not below the one of least energy, for which a sweep downwards measures one clock after the
// other while the load is calm; the clock rises at once and falls by steps.
#include "zeus/optimizer/clock/governor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "zeus/optimizer/clock/request_tracker.h"

namespace zeus {
namespace {

// Neighbouring clocks make no difference that could be measured: this many are tried.
constexpr std::size_t kLevels = 40;
// An observation: long against an iteration and the period of an energy counter.
constexpr double kWindow = 2.0;
// Levels by which the clock falls in one decision at most.
constexpr std::size_t kLevelsDown = 2;
constexpr Seconds kFallPeriod{0.2};
constexpr Seconds kHoldAfterRaise{1.0};
constexpr Seconds kIdleBeforeRest{1.0};
constexpr Seconds kRecent{10.0};
// A clock that was locked is seen by then.
constexpr Seconds kSettled{0.5};
// After the clock was found in other hands it is left alone for this long.
constexpr Seconds kStandStill{60.0};

// A sweep goes down by this share of the highest clock after so many windows at a clock, until the
// energy is this much above the least.
constexpr double kSweepStep = 0.1;
constexpr double kSweepEvidence = 2;
constexpr double kSweepEnd = 1.03;

constexpr double kUsualFloor = 0.55;

// The share of a target against which predictions are held.
constexpr double kFirstShare = 0.7;
constexpr double kLeastShare = 0.15;
constexpr double kMostShare = 1.2;
// Where the highest clock misses the targets too, only time to spare is used.
constexpr double kHopelessShare = 0.3;
constexpr double kShareStep = 0.05;  // By which it falls with each request that it made late.
// The estimate of what the highest clock would have done is an upper bound: queues would have
// been shorter too.
constexpr double kFastBound = 1.3;
// Only a request that was slowed down by more than this can be late because of it.
constexpr double kFaster = 0.98;
// Requests and time that show whether the highest clock keeps the targets.
constexpr double kJudgedFirst = 150;
constexpr Seconds kWatchedFirst{60.0};
// Requests over which the misses of the highest clock are averaged.
constexpr double kMissMemory = 1000;
// Demand at the highest clock as a share of what it can serve. From the first on the clock stays
// there until the demand has fallen to the second; up to the third a sweep may go on.
constexpr double kNearlyFull = 0.85;
constexpr double kNoLongerFull = 0.7;
constexpr double kCalm = 0.55;
// A backlog that makes the next request wait for so many times its target counts as full, too.
constexpr double kBacklog = 5;
// A clock costs no time if iterations are longer by this factor at most, and if it lies above the
// clock at which a power limit holds prompt work by this share of the highest one.
constexpr double kNoTime = 1.015;
constexpr double kAboveCap = 0.06;

// Tokens that a decoding request is expected to get at least, as a share of the mean.
constexpr double kHorizonShare = 0.3;
constexpr double kLeastHorizon = 4;
constexpr double kMostHorizon = 64;

// Latencies as shares of their targets: the worst of the requests that can be served in time.
struct Outlook {
  double ttft = 0;
  double tpot = 0;
};

double Percentile(std::vector<double>& values, double share) {
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 0.0));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

class ClockGovernor::State {
 public:
  explicit State(GovernorOptions options);

  void OnEnd(TimePoint time, std::uint64_t id);
  bool WantsDecision() const;
  ClockDecision Decide(const GovernorSample& sample);
  GovernorStatus Status() const;

  RequestTracker tracker;
  EngineModel model;

 private:
  struct Choice {
    std::size_t level;
    ClockReason reason;
  };

  double Relative(std::size_t level) const { return clocks_[level] / clocks_.back(); }
  double PromptClock(double clock) const { return std::min(clock, prompt_cap_); }
  EngineTimes TimesAt(std::size_t level) const;
  double PowerAt(std::size_t level) const;
  std::size_t top() const { return clocks_.size() - 1; }
  std::size_t LevelAt(double relative) const;

  void Learn(const GovernorSample& sample);
  void CountEnergy(double joules);
  void SeeClock(const GovernorSample& sample);
  void StandStill(const std::string& why);
  void JudgeMisses(const EndedRequest& ended);
  // Whether the highest clock misses the targets by its percentiles.
  bool Hopeless() const;
  void SetSlowdown();

  Outlook Predict(std::size_t level) const;
  double WorstTtft(const EngineTimes& times) const;
  double WorstTpot(const EngineTimes& times) const;
  bool Keeps(std::size_t level) const;
  double LoadAt(std::size_t level) const;
  std::size_t LowestWithoutCost() const;
  std::size_t LowestThatKeeps() const;
  Choice Choose();
  Choice ChooseByEnergy(std::size_t lowest);
  std::size_t Approach(std::size_t wanted);
  std::string Sentence(const Choice& choice) const;

  GovernorOptions options_;
  std::vector<Hertz> clocks_;  // Levels, ascending.
  TimePoint now_{};
  std::size_t level_;  // The one that is right now.
  std::size_t floor_;  // The clock of least energy for the present demand.
  std::optional<Hertz> locked_;
  TimePoint last_raise_{};
  TimePoint last_change_{};
  std::optional<std::string> foreign_;  // Why the clock is left alone.
  TimePoint foreign_until_{};
  unsigned too_fast_ = 0;  // Samples in a row with a clock above the locked one.
  double prompt_cap_ = 1;  // Relative clock at which a power limit holds prompt work.

  std::optional<Joules> window_start_;
  std::optional<Joules> first_energy_;
  std::optional<Joules> last_energy_;
  std::optional<TimePoint> last_observed_;

  double ttft_share_ = kFirstShare;
  double tpot_share_ = kFirstShare;
  double fast_misses_ = 0;  // Share of requests that the highest clock would miss as well.
  double judged_ = 0;
  double mean_decoding_ = 0;  // Sequences, over the last half minute of decisions.
  std::optional<TimePoint> first_work_;
  bool full_ = false;  // The engine can hardly keep up at the highest clock.
  std::deque<EndedRequest> recent_;
  GovernorStatus status_;
};

ClockGovernor::State::State(GovernorOptions options) : options_(std::move(options)) {
  const std::size_t count = options_.clocks.size();
  const std::size_t stride = (count + kLevels - 1) / kLevels;
  for (std::size_t i = (count - 1) % stride; i < count; i += stride)
    clocks_.push_back(options_.clocks[i]);
  if (clocks_.front() != options_.clocks.front())
    clocks_.insert(clocks_.begin(), options_.clocks.front());
  level_ = top();
  floor_ = 0;
  if (options_.knowledge) model = EngineModel(*options_.knowledge);
}

EngineTimes ClockGovernor::State::TimesAt(std::size_t level) const {
  return model.TimesAt(Relative(level), PromptClock(Relative(level)));
}

double ClockGovernor::State::PowerAt(std::size_t level) const {
  return model.PowerAt(Relative(level), PromptClock(Relative(level)), tracker.Demand(now_));
}

std::size_t ClockGovernor::State::LevelAt(double relative) const {
  std::size_t level = 0;
  while (level < top() && Relative(level) < relative - 1e-9) ++level;
  return level;
}

// Learning.

void ClockGovernor::State::Learn(const GovernorSample& sample) {
  const EngineWork work = tracker.CollectWork(now_);
  const double length = last_observed_ ? (now_ - *last_observed_).count() : 0;
  last_observed_ = now_;
  const double clock = options_.mode == GovernorMode::kActive ? Relative(level_) : 1.0;
  if (foreign_ || (sample.energy && !window_start_)) {
    window_start_ = sample.energy;
    if (!first_energy_) first_energy_ = sample.energy;
    model.DropWindow();
    return;
  }
  model.Observe(work, length, clock, PromptClock(clock));
  if (model.window_length() < kWindow) return;
  if (!sample.energy || !window_start_) {
    window_start_.reset();
    model.EndWindow(-1);
    return;
  }
  const double joules = (*sample.energy - *window_start_).value();
  CountEnergy(joules - model.idle_watts() * model.window_length());
  model.EndWindow(joules);
  window_start_ = last_energy_ = sample.energy;
}

// Counts savings over a window whose energy above idle was `joules`.
void ClockGovernor::State::CountEnergy(double joules) {
  if (!model.knows_energy() || joules <= 0) return;
  const double here = PowerAt(level_);
  const double full = PowerAt(top());
  if (!std::isfinite(here) || !std::isfinite(full) || here <= 0 || full <= 0) return;
  status_.saved += Joules(options_.mode == GovernorMode::kActive ? joules * (full / here - 1)
                                                                 : joules * (1 - here / full));
}

void ClockGovernor::State::SeeClock(const GovernorSample& sample) {
  if (sample.foreign) StandStill(*sample.foreign);
  if (foreign_ && now_ >= foreign_until_) foreign_.reset();
  if (!sample.clock || tracker.empty() || foreign_) return;
  const double clock = *sample.clock / clocks_.back();
  const Hertz step = clocks_.size() > 1 ? clocks_[1] - clocks_[0] : Hertz(0);
  if (locked_ && *sample.clock > *locked_ + step) {
    constexpr unsigned kSamplesToBelieve = 4;
    if (now_ - last_change_ > kSettled && ++too_fast_ >= kSamplesToBelieve)
      StandStill(fmt::format("the GPU runs at {:.0f} MHz though {:.0f} MHz was locked",
                             sample.clock->ToMega(), locked_->ToMega()));
    return;
  }
  too_fast_ = 0;
  // A power limit or heat holds the clock below ours: it does so in the heaviest work, prompts.
  constexpr double kReturn = 0.002;
  prompt_cap_ = std::min(1.0, prompt_cap_ + kReturn * (1.0 - prompt_cap_));
  const double ours = locked_ ? *locked_ / clocks_.back() : 1.0;
  if (clock < ours - 0.01 && tracker.waiting() > 0 && now_ - last_change_ > kSettled)
    prompt_cap_ += 0.2 * (std::min(clock, prompt_cap_ + 0.05) - prompt_cap_);
}

void ClockGovernor::State::StandStill(const std::string& why) {
  foreign_ = why;
  foreign_until_ = now_ + kStandStill;
  too_fast_ = 0;
}

void ClockGovernor::State::SetSlowdown() {
  if (options_.mode == GovernorMode::kObserver || !model.knows_time()) return;
  const EngineTimes here = TimesAt(level_);
  const EngineTimes full = TimesAt(top());
  const double sequences = std::max<double>(1, static_cast<double>(tracker.decoding()));
  const EngineDemand demand = tracker.Demand(now_);
  const auto iteration = [&](const EngineTimes& times, double prompt) {
    return times.iteration + times.token * sequences + times.prompt * prompt;
  };
  const double prompts = demand.prompt * iteration(full, 0);
  tracker.SetSlowdown(
      now_, iteration(here, options_.chunk_tokens) / iteration(full, options_.chunk_tokens),
      iteration(here, prompts) / iteration(full, prompts));
}

void ClockGovernor::State::OnEnd(TimePoint time, std::uint64_t id) {
  if (const auto ended = tracker.OnEnd(time, id)) JudgeMisses(*ended);
}

// The shares follow a rule that holds the rate of requests that were late because of the governor
// at `added_misses`, whatever the predictions are worth: down by a step with each such request, up
// by `added_misses` of a step with each other one.
void ClockGovernor::State::JudgeMisses(const EndedRequest& ended) {
  recent_.push_back(ended);
  while (recent_.front().end < ended.end - kRecent) recent_.pop_front();
  const ServiceTargets& targets = options_.targets;
  const bool late_first = targets.ttft && ended.ttft > *targets.ttft;
  const bool late_tokens = targets.tpot && ended.tpot && *ended.tpot > *targets.tpot;
  const bool added_first = late_first && ended.fast_ttft < *targets.ttft * kFastBound &&
                           ended.fast_ttft < ended.ttft * kFaster;
  const bool added_tokens = late_tokens && ended.fast_tpot < *targets.tpot * kFastBound &&
                            ended.fast_tpot < *ended.tpot * kFaster;
  const bool missed = late_first || late_tokens;
  const bool added = missed && (!late_first || added_first) && (!late_tokens || added_tokens);
  ++status_.finished;
  if (missed) ++status_.missed;
  if (added) ++status_.added;
  judged_ = std::min(judged_ + 1, kMissMemory);
  fast_misses_ += ((missed && !added ? 1.0 : 0.0) - fast_misses_) / std::max(judged_, 50.0);
  const double rise = Hopeless() ? 0.0 : kShareStep * options_.added_misses;
  const auto follow = [rise](double& share, bool late) {
    share = std::clamp(share + (late ? -kShareStep : rise), kLeastShare, kMostShare);
  };
  follow(ttft_share_, added && late_first);
  follow(tpot_share_, added && late_tokens);
}

bool ClockGovernor::State::Hopeless() const {
  const ServiceTargets& targets = options_.targets;
  return fast_misses_ > 1.0 - std::max(targets.ttft_percentile, targets.tpot_percentile);
}

// Prediction.

double ClockGovernor::State::LoadAt(std::size_t level) const {
  const EngineTimes times = TimesAt(level);
  const EngineDemand demand = tracker.Demand(now_);
  return demand.tokens * times.token + demand.prompt * times.prompt;
}

// Users cannot tell this clock from the highest one: decoding waits for the memory, and a power
// limit holds the clock of prompt work anyway.
std::size_t ClockGovernor::State::LowestWithoutCost() const {
  const EngineTimes full = TimesAt(top());
  const double sequences = mean_decoding_;
  std::size_t lowest = top();
  while (lowest > 0 && Relative(lowest - 1) >= std::min(1.0, prompt_cap_ + kAboveCap)) {
    const EngineTimes times = TimesAt(lowest - 1);
    if (times.iteration + times.token * sequences >
        kNoTime * (full.iteration + full.token * sequences))
      break;
    --lowest;
  }
  return lowest;
}

double ClockGovernor::State::WorstTtft(const EngineTimes& times) const {
  if (!options_.targets.ttft) return 0;
  const double target = options_.targets.ttft->count();
  const auto decoding = static_cast<double>(tracker.decoding());
  const double iteration = times.iteration + times.token * decoding;
  const double chunk = std::max(1.0, options_.chunk_tokens - decoding);
  const auto served = [&](double prompt) {
    return prompt * times.prompt + std::ceil(prompt / chunk) * iteration;
  };
  double ahead = 0;
  double worst = 0;
  for (const LiveRequest* request : tracker.WaitingInOrder()) {
    ahead += request->prompt_tokens;
    worst = std::max(worst, (now_ - request->arrival).count() + served(ahead));
  }
  // One that would come now.
  worst = std::max(worst, served(ahead + tracker.mean_prompt()));
  return worst / target;
}

double ClockGovernor::State::WorstTpot(const EngineTimes& times) const {
  if (!options_.targets.tpot) return 0;
  const double target = options_.targets.tpot->count();
  const EngineDemand demand = tracker.Demand(now_);
  const double steady = EngineModel::SteadyIteration(times, demand);
  if (!std::isfinite(steady)) return steady;
  double queued = 0;
  for (const LiveRequest* request : tracker.WaitingInOrder()) queued += request->prompt_tokens;
  const double iteration =
      times.iteration + times.token * static_cast<double>(tracker.live().size());
  const double prompts = std::min(0.9, demand.prompt * times.prompt);
  const auto time_for = [&](double tokens) {
    return (tokens * iteration + queued * times.prompt) / (1.0 - prompts);
  };
  const EngineTimes full = TimesAt(top());
  const double fastest = full.iteration + full.token * static_cast<double>(tracker.live().size());
  const double horizon =
      std::clamp(kHorizonShare * tracker.mean_output(), kLeastHorizon, kMostHorizon);
  const double expected = time_for(horizon);
  double worst = std::max(steady, expected / horizon);
  for (const auto& [id, request] : tracker.live()) {
    if (!request.first) continue;
    const double passed = (now_ - *request.first).count();
    // A request that is late even if the rest of it runs as fast as can be.
    const double rest = 2 * tracker.mean_output();
    if (passed + rest * fastest > target * (request.tokens + rest)) continue;
    worst = std::max(worst, (passed + expected) / (request.tokens + horizon));
  }
  return worst / target;
}

Outlook ClockGovernor::State::Predict(std::size_t level) const {
  const EngineTimes times = TimesAt(level);
  return {.ttft = WorstTtft(times), .tpot = WorstTpot(times)};
}

bool ClockGovernor::State::Keeps(std::size_t level) const {
  const Outlook outlook = Predict(level);
  const double most = Hopeless() ? kHopelessShare : kMostShare;
  return outlook.ttft <= std::min(ttft_share_, most) && outlook.tpot <= std::min(tpot_share_, most);
}

// The highest level if none keeps the targets.
std::size_t ClockGovernor::State::LowestThatKeeps() const {
  std::size_t low = 0;
  std::size_t high = top();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (Keeps(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

bool ClockGovernor::State::WantsDecision() const {
  if (level_ == top() || foreign_ || options_.mode == GovernorMode::kObserver) return false;
  return tracker.live().size() == 1 || !Keeps(level_);
}

// Decision.

ClockGovernor::State::Choice ClockGovernor::State::ChooseByEnergy(std::size_t lowest) {
  std::size_t measured = top();
  for (std::size_t level = 0; level <= top(); ++level)
    if (model.EvidenceAt(Relative(level)) >= kSweepEvidence) {
      measured = level;
      break;
    }
  if (options_.mode == GovernorMode::kObserver) measured = 0;
  std::size_t best = top();
  for (std::size_t level = measured; level <= top(); ++level)
    if (PowerAt(level) < PowerAt(best)) best = level;
  floor_ = best;
  // While the energy still falls with the clock, the next lower one is measured.
  if (measured > 0 && lowest < measured && LoadAt(top()) < kCalm &&
      PowerAt(measured) < kSweepEnd * PowerAt(best)) {
    const std::size_t next =
        std::max(lowest, LevelAt(std::max(Relative(0), Relative(measured) - kSweepStep)));
    return {.level = std::min(next, measured - 1), .reason = ClockReason::kSweep};
  }
  if (floor_ > lowest) return {.level = floor_, .reason = ClockReason::kLeastEnergy};
  return {.level = lowest, .reason = ClockReason::kTargets};
}

ClockGovernor::State::Choice ClockGovernor::State::Choose() {
  if (tracker.empty()) {
    const bool rests = now_ - tracker.idle_since() >= kIdleBeforeRest || status_.finished == 0;
    return {.level = rests ? 0 : level_, .reason = ClockReason::kIdle};
  }
  if (!first_work_) first_work_ = now_;
  constexpr double kDecisionsRemembered = 120;
  mean_decoding_ +=
      (static_cast<double>(tracker.decoding()) - mean_decoding_) / kDecisionsRemembered;
  if (!model.knows_time() || (first_energy_ && !model.knows_energy()) ||
      (!options_.knowledge && (judged_ < kJudgedFirst || now_ - *first_work_ < kWatchedFirst)))
    return {.level = top(), .reason = ClockReason::kLearning};
  const std::size_t fast = LowestWithoutCost();
  full_ = LoadAt(top()) > (full_ ? kNoLongerFull : kNearlyFull) || Predict(top()).ttft > kBacklog;
  if (full_) return {.level = top(), .reason = ClockReason::kMissed};
  const std::size_t lowest = LowestThatKeeps();
  // Without a sensor the floor is where energy is least on most GPUs.
  if (!model.knows_energy()) floor_ = LevelAt(kUsualFloor);
  if (lowest >= fast)
    return {.level = fast, .reason = Hopeless() ? ClockReason::kMissed : ClockReason::kTargets};
  if (!model.knows_energy())
    return {.level = std::max(lowest, floor_), .reason = ClockReason::kTargets};
  return ChooseByEnergy(lowest);
}

// Up at once, down by steps.
std::size_t ClockGovernor::State::Approach(std::size_t wanted) {
  if (wanted > level_) {
    last_raise_ = now_;
    return wanted;
  }
  if (wanted == level_ || now_ - last_raise_ < kHoldAfterRaise || now_ - last_change_ < kFallPeriod)
    return level_;
  return std::max(wanted, level_ > kLevelsDown ? level_ - kLevelsDown : 0);
}

ClockDecision ClockGovernor::State::Decide(const GovernorSample& sample) {
  now_ = std::max(now_, sample.time);
  Learn(sample);
  SeeClock(sample);
  if (foreign_) {
    locked_.reset();
    level_ = top();
    SetSlowdown();
    return {.clock = sample.clock.value_or(clocks_.back()),
            .reason = ClockReason::kForeign,
            .text = fmt::format("The governor stands still: {}.", *foreign_)};
  }
  const Choice choice = Choose();
  level_ = choice.reason == ClockReason::kIdle ? choice.level : Approach(choice.level);
  SetSlowdown();
  ClockDecision decision{
      .clock = clocks_[level_], .reason = choice.reason, .text = Sentence(choice)};
  if (options_.mode == GovernorMode::kActive && locked_ != decision.clock) {
    decision.lock = locked_ = decision.clock;
    last_change_ = now_;
  }
  return decision;
}

std::string ClockGovernor::State::Sentence(const Choice& choice) const {
  const double clock = clocks_[level_].ToMega();
  const std::string load =
      fmt::format("{} requests decode and {} wait", tracker.decoding(), tracker.waiting());
  switch (choice.reason) {
    case ClockReason::kLearning:
      return fmt::format("{:.0f} MHz, the highest clock, while the engine's speed is learned.",
                         clock);
    case ClockReason::kSweep:
      return fmt::format("{:.0f} MHz to measure its energy while the load is calm: {}.", clock,
                         load);
    case ClockReason::kTargets:
      return fmt::format("{:.0f} MHz is the lowest clock that keeps {}: {}.", clock,
                         ToText(options_.targets), load);
    case ClockReason::kLeastEnergy:
      return fmt::format(
          "{:.0f} MHz takes the least energy; lower clocks would keep the targets: {}.", clock,
          load);
    case ClockReason::kMissed:
      return fmt::format("{:.0f} MHz, as fast as can be: the highest clock misses {} too; {}.",
                         clock, ToText(options_.targets), load);
    case ClockReason::kIdle:
      return fmt::format("{:.0f} MHz: nothing is in flight.", clock);
    case ClockReason::kForeign:
      break;
  }
  return "";
}

GovernorStatus ClockGovernor::State::Status() const {
  GovernorStatus status = status_;
  std::vector<double> ttfts;
  std::vector<double> tpots;
  for (const EndedRequest& ended : recent_) {
    ttfts.push_back(ended.ttft.count());
    if (ended.tpot) tpots.push_back(ended.tpot->count());
  }
  if (!ttfts.empty()) status.ttft = Seconds(Percentile(ttfts, options_.targets.ttft_percentile));
  if (!tpots.empty()) status.tpot = Seconds(Percentile(tpots, options_.targets.tpot_percentile));
  status.share = std::min(ttft_share_, tpot_share_);
  status.floor = clocks_[floor_];
  if (last_energy_) status.used = *last_energy_ - *first_energy_;
  return status;
}

const char* ClockReasonName(ClockReason reason) {
  switch (reason) {
    case ClockReason::kLearning:
      return "learning";
    case ClockReason::kSweep:
      return "sweep";
    case ClockReason::kTargets:
      return "targets";
    case ClockReason::kLeastEnergy:
      return "least_energy";
    case ClockReason::kMissed:
      return "missed";
    case ClockReason::kIdle:
      return "idle";
    case ClockReason::kForeign:
      return "foreign";
  }
  return "unknown";
}

Result<ClockGovernor> ClockGovernor::Create(GovernorOptions options) {
  if (!options.targets.ttft && !options.targets.tpot)
    return InvalidArgument("a governor needs a target: ttft, tpot or both");
  if (options.clocks.size() < 2)
    return InvalidArgument("a governor needs at least two clocks that can be locked");
  if (!std::is_sorted(options.clocks.begin(), options.clocks.end()) ||
      options.clocks.front() <= Hertz(0))
    return InvalidArgument("the clocks of a governor must be positive and ascending");
  return ClockGovernor(std::make_unique<State>(std::move(options)));
}

ClockGovernor::ClockGovernor(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClockGovernor::~ClockGovernor() = default;
ClockGovernor::ClockGovernor(ClockGovernor&&) noexcept = default;
ClockGovernor& ClockGovernor::operator=(ClockGovernor&&) noexcept = default;

void ClockGovernor::OnArrival(TimePoint time, std::uint64_t id, double prompt_tokens) {
  state_->tracker.OnArrival(time, id, prompt_tokens);
}
void ClockGovernor::OnPromptTokens(std::uint64_t id, double prompt_tokens) {
  state_->tracker.OnPromptTokens(id, prompt_tokens);
}
void ClockGovernor::OnTokens(TimePoint time, std::uint64_t id, unsigned tokens) {
  state_->tracker.OnTokens(time, id, tokens);
}
void ClockGovernor::OnEnd(TimePoint time, std::uint64_t id) { state_->OnEnd(time, id); }
bool ClockGovernor::WantsDecision() const { return state_->WantsDecision(); }
ClockDecision ClockGovernor::Decide(const GovernorSample& sample) { return state_->Decide(sample); }
GovernorStatus ClockGovernor::status() const { return state_->Status(); }
EngineKnowledge ClockGovernor::knowledge() const { return state_->model.knowledge(); }

}  // namespace zeus
