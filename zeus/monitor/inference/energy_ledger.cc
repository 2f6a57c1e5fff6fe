#include "zeus/monitor/inference/energy_ledger.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zeus {
namespace {

constexpr double kTimeConstant = 60;        // Seconds of running averages that people see.
constexpr double kLawError = 0.012;         // The law is not exact: relative error of a request.
constexpr double kPromptError = 0.02;       // The same for the work on one prompt,
constexpr double kHeavyPromptError = 0.03;  // and beyond it at a low clock.
// The same two, where the residuals of the intervals show that the law is worse than that.
constexpr double kLawResidual = 1.0;
constexpr double kPromptResidual = 1.3;
constexpr double kFirstResidualPower = 20;  // Watts, before anything is known.
constexpr double kFirstRelativeError = 0.1;
constexpr double kHopelessError = 0.29;  // A law with larger residuals is learned anew.
// A correction by late counts moves at most this part of the energy of the others.
constexpr double kLargestMove = 0.2;
constexpr double kLargestOwn = 0.5;  // The same between the phases of a request.
constexpr double kPeakTime = 60;     // Seconds in which the highest power of late is forgotten.
constexpr double kExcessTime = 2;    // Seconds over which an excess of power is averaged.
constexpr double kForgetAtChange = 0.1;
constexpr double kNearHighest = 0.94;
constexpr double kLongestUnseen = 1;       // Seconds at the limit until a stranger is given up.
constexpr double kHighestTime = 3600;      // Seconds in which the highest power is forgotten.
constexpr double kRowsBeforeOthers = 200;  // Intervals to learn from before excess is judged.
constexpr double kSmallestOther = 8;       // Watts.
// Where the clock falls at the power limit, arithmetic takes less energy in proportion, and
// everything else falls by this part of it.
constexpr double kOthersFall = 0.66;
constexpr double kLowClock = 0.97;
// Looking at one token of context takes at most about this part of the work on a prompt token.
constexpr double kAttentionDoubt = 5e-5;
constexpr double kLightError = 0.08;  // The same for others with prompts.
// Errors of prompt work beside tokens of a response do not average out over its intervals.
constexpr double kDecodeBesidePrompts = 1.5;
constexpr double kHeavyError = 0.2;  // Relative error of the law for such iterations.

// The fit has the idle power first, and then the terms of each engine.
std::size_t Column(EngineIndex engine, std::size_t term) {
  return 1 + engine * kEnergyTerms + term;
}

}  // namespace

// Prompt tokens at a low clock have a coefficient of their own, so that an error of that clock does
// not become one of other terms. Engines that share a GPU do not know the clock.
EnergyTerm EnergyLedger::PromptTermAt(double clock) const {
  return clock < kLowClock && engines_.size() == 1 ? kHeavyTerm : kPromptTerm;
}

EnergyLedger::EnergyLedger(RequestTable& requests, Options options)
    : requests_(requests),
      options_(options),
      fit_(1),
      relative_error_(kFirstRelativeError),
      excess_fit_(3),
      residual_power_(kFirstResidualPower) {
  excess_fit_.SetPrior(0, 0, 300);   // Watts of others.
  excess_fit_.SetPrior(1, 1, 0.3);   // Measured over predicted energy of prompts,
  excess_fit_.SetPrior(2, 1, 0.04);  // and of decoding.
  SolveLaw();
}

void EnergyLedger::AddEngine(const InferenceEngineSpec& spec) {
  Engine engine;
  engine.prior = spec.prior;
  engine.prior_sigma = spec.prior_relative_sigma > 0 ? spec.prior_relative_sigma : 0.5;
  engines_.push_back(engine);
  accounts_.engines.emplace_back();
  fit_.Grow(1 + engines_.size() * kEnergyTerms);
  for (auto& [name, fit] : other_settings_) fit.Grow(fit_.size());
  SolveLaw();
}

void EnergyLedger::SetDurations(EngineIndex engine, const EnergyTerms& seconds) {
  engines_[engine].seconds = seconds;
}

void EnergyLedger::ChangeSetting(const std::string& setting) {
  if (setting == setting_) return;
  other_settings_.insert_or_assign(setting_, fit_);
  const auto known = other_settings_.find(setting);
  // A new setting begins with nothing but the durations and the present power.
  if (known != other_settings_.end()) {
    fit_ = known->second;
  } else {
    StartAgain();
  }
  setting_ = setting;
  other_power_ = 0;
  excess_intervals_ = 0;
  excess_fit_.Forget(0);
  SolveLaw();
}

void EnergyLedger::StartAgain() {
  fit_.Forget(0);
  rows_ = 0;
  residual_power_ = kFirstResidualPower;
  relative_error_ = kFirstRelativeError;
  excess_fit_.Forget(0);
}

EnergyLedger::Share& EnergyLedger::ShareOf(RequestIndex index, EngineIndex engine) {
  TrackedRequest& request = requests_[index];
  const bool found = request.slot < shares_.size() && shares_[request.slot].request == index &&
                     shares_[request.slot].engine == engine;
  if (!found) {
    request.slot = static_cast<std::uint32_t>(shares_.size());
    shares_.push_back({.request = index, .engine = engine});
  }
  return shares_[request.slot];
}

// False for a place whose request was forgotten because its end was told before its work.
bool EnergyLedger::IsOpen(const Share& share) const {
  const TrackedRequest& request = requests_[share.request];
  return request.used && request.engine == share.engine;
}

void EnergyLedger::GatherIteration(EngineIndex index, const EngineIteration& iteration,
                                   double part) {
  Engine& engine = engines_[index];
  const double sequences = iteration.sequences();
  const double players = sequences + static_cast<double>(iteration.prompts.size());
  if (players <= 0) return;
  const double whole = part;
  engine.mean_share += 0.05 * whole * (1 / players - engine.mean_share);
  const double experts = ExpertsRead(iteration.tokens());
  engine.mean_experts += 0.05 * whole * (experts - engine.mean_experts);
  part *= 1 - kOthersFall * (1 - iteration.clock);
  engine.total[kFixedTerm] += part;
  engine.total[kExpertsTerm] += part * experts;
  double context = 0;
  for (const DecodePart& decode : iteration.decode) {
    Share& share = ShareOf(decode.request, index);
    const double tokens = part * decode.tokens;
    share.decode[kFixedTerm] += tokens / players;
    share.decode[kExpertsTerm] += tokens / players * experts;
    share.decode[kSequenceTerm] += tokens;
    share.decode[kContextTerm] += tokens * decode.context;
    context += tokens * decode.context;
    requests_[decode.request].settled_decoded += whole * decode.tokens;
    requests_[decode.request].mean_share = 1 / players;
  }
  engine.total[kSequenceTerm] += part * sequences;
  const double ours = sequences - iteration.strangers;
  const double strangers_context =
      ours > 0 ? context * iteration.strangers / ours : 1000 * part * iteration.strangers;
  engine.total[kContextTerm] += context + strangers_context;
  engine.strangers[kFixedTerm] += part * iteration.strangers / players;
  engine.strangers[kExpertsTerm] += part * iteration.strangers / players * experts;
  engine.strangers[kSequenceTerm] += part * iteration.strangers;
  engine.strangers[kContextTerm] += strangers_context;
  for (const PromptPart& prompt : iteration.prompts) {
    Share& share = ShareOf(prompt.request, index);
    const double tokens = whole * iteration.clock * prompt.tokens;
    const double attention = whole * iteration.clock * prompt.attention;
    share.prefill[kFixedTerm] += part / players;
    share.prefill[kExpertsTerm] += part / players * experts;
    const EnergyTerm term = PromptTermAt(iteration.clock);
    share.prefill[term] += tokens;
    share.prefill[kAttentionTerm] += attention;
    engine.total[term] += tokens;
    if (iteration.clock < kLowClock) engine.heavy += tokens;
    engine.total[kAttentionTerm] += attention;
    requests_[prompt.request].settled_prompt += whole * prompt.tokens;
    requests_[prompt.request].mean_share = 1 / players;
  }
  if (!iteration.prompts.empty())
    engine.mean_clock += 0.02 * whole * (iteration.clock - engine.mean_clock);
  const double seconds = whole * (iteration.end - iteration.begin);
  engine.mean_batch += std::min(1.0, seconds / kTimeConstant) * (sequences - engine.mean_batch);
}

void EnergyLedger::Gather(const MeasuredInterval& interval,
                          std::vector<std::deque<EngineIteration>>& iterations) {
  shares_.clear();
  busy_.clear();
  for (EngineIndex index = 0; index < engines_.size(); ++index) {
    engines_[index].total = {};
    engines_[index].strangers = {};
    engines_[index].heavy = 0;
    engines_[index].predicted_prefill = 0;
    engines_[index].predicted_decode = 0;
    engines_[index].paid_prefill = 0;
    engines_[index].paid_decode = 0;
    std::deque<EngineIteration>& list = iterations[index];
    for (const EngineIteration& iteration : list) {
      if (iteration.busy_from >= interval.end) break;
      GatherOverlap(index, iteration, interval);
    }
    while (!list.empty() && list.front().end <= interval.end) list.pop_front();
  }
  idle_time_ = std::max(0.0, interval.end - interval.begin - BusyTime(interval));
}

// Counts the part of an iteration that lies in the interval.
void EnergyLedger::GatherOverlap(EngineIndex index, const EngineIteration& iteration,
                                 const MeasuredInterval& interval) {
  const double begin = std::max(iteration.busy_from, interval.begin);
  const double end = std::min(iteration.end, interval.end);
  const double length = iteration.end - iteration.busy_from;
  if (end > begin) busy_.emplace_back(begin, end);
  const bool moment = length <= 0 && iteration.end > interval.begin;
  const double part = length > 0 ? std::max(0.0, end - begin) / length : (moment ? 1 : 0);
  if (part > 0) GatherIteration(index, iteration, part);
}

// The time of the interval in which at least one engine worked.
double EnergyLedger::BusyTime(const MeasuredInterval& interval) {
  std::sort(busy_.begin(), busy_.end());
  double busy = 0;
  double until = interval.begin;
  for (const auto& [begin, end] : busy_) {
    busy += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return busy;
}

EnergyLedger::Sums EnergyLedger::Predict(const MeasuredInterval&) {
  Sums sums{.idle_time = idle_time_, .predicted_idle = idle_time_ * idle_power()};
  for (Engine& engine : engines_) {
    const double all = Dot(engine.law, engine.total);
    sums.predicted_strangers += Dot(engine.law, engine.strangers);
    sums.predicted_requests += all;
  }
  sums.predicted_requests -= sums.predicted_strangers;
  return sums;
}

// Prompt work is placed less well than decoding, and its law is less exact.
double EnergyLedger::PlacementError() const {
  double error = 0;
  for (const Engine& engine : engines_) {
    const double light = engine.law[kPromptTerm] * engine.total[kPromptTerm];
    const double heavy = engine.law[PromptTermAt(0)] * engine.heavy;
    error += kLightError * light + kHeavyError * heavy;
  }

  return error;
}

// Power that stays above the prediction is taken by somebody else. An error of the law grows with
// the engines' work, a stranger's power does not: a fit over the last seconds tells them apart.
double EnergyLedger::FindOther(const MeasuredInterval& interval, const Sums& sums) {
  const double length = interval.end - interval.begin;
  if (rows_ < kRowsBeforeOthers || length <= 0) return 0;
  highest_power_ =
      std::max(highest_power_ * std::exp(-length / kHighestTime), interval.energy / length);
  const double most = std::max(0.0, interval.energy - 0.7 * sums.predicted());
  // At the power limit of the GPU nobody's work shows as more power.
  if (interval.energy / length > kNearHighest * highest_power_) {
    unseen_time_ += length;
    if (unseen_time_ > kLongestUnseen) other_power_ = 0;
    if (other_power_ <= 0) excess_intervals_ = 0;
    return std::clamp(other_power_ * length, 0.0, most);
  }
  unseen_time_ = 0;
  double prompts = 0;
  for (const Engine& engine : engines_)
    prompts += engine.law[kPromptTerm] * engine.total[kPromptTerm] +
               engine.law[kHeavyTerm] * engine.total[kHeavyTerm] +
               engine.law[kAttentionTerm] * engine.total[kAttentionTerm];
  const double decode = sums.predicted() - sums.predicted_idle - prompts;
  const double measured = interval.energy - sums.predicted_idle;
  const std::array<double, 3> row = {length, prompts, decode};
  const double sigma =
      std::hypot(1.5 * std::max(residual_power_, 4.0) * length, interval.sigma, 0.05 * prompts);
  const double expected =
      excess_fit_[0] * length + excess_fit_[1] * prompts + excess_fit_[2] * decode;
  const bool changed = std::abs(measured - expected) > 5 * sigma;
  excess_fit_.Forget(changed ? kForgetAtChange : std::exp(-length / kExcessTime));
  excess_fit_.Add(row, measured, 1 / (sigma * sigma));
  excess_fit_.Solve();
  const double power = excess_fit_[0];
  const double doubt = std::sqrt(std::max(0.0, excess_fit_.Covariance(0, 0)));
  const double usual = kSmallestOther + 0.05 * sums.predicted() / length;
  if (other_power_ <= 0) {
    excess_intervals_ = power > 5 * doubt + usual ? excess_intervals_ + 1 : 0;
    if (excess_intervals_ >= 3) other_power_ = power;
  } else {
    other_power_ = power > 1.5 * doubt + 0.5 * usual ? power : 0;
    if (other_power_ <= 0) excess_intervals_ = 0;
  }
  return std::clamp(other_power_ * length, 0.0, most);
}

void EnergyLedger::Divide(const MeasuredInterval& interval, const Sums& sums, double other) {
  const bool known = std::isfinite(interval.energy);
  const double energy = known ? interval.energy : sums.predicted();
  const double own = std::max(0.0, energy - other);
  const double busy = sums.predicted_requests + sums.predicted_strangers;
  // The idle power is known better than the law: it takes only a small part of the residual.
  double idle = own;
  if (busy > 0) {
    const double trust = sums.predicted_idle * sums.predicted_idle;
    const double residual = own - sums.predicted();
    idle = sums.predicted_idle + residual * trust / (trust + 4 * busy * busy + 1e-30);
    idle = std::clamp(idle, 0.0, own);
  }
  const double factor = busy > 0 ? (own - idle) / busy : 1;
  if (!known) {
    // Energy that was not measured is charged to no request.
    for (const Share& share : shares_) Doubt(share);
    return;
  }
  accounts_.idle += Joules(idle);
  accounts_.other += Joules(other + sums.predicted_strangers * factor);
  accounts_.measured += Joules(energy);
  if (busy > 0) scale_ += 0.1 * (std::clamp(factor, 0.5, 2.0) - scale_);
  if (sums.predicted_requests <= 0) return;
  // An error of one interval, of its measurement or because prompt work belongs to its neighbours,
  // is not passed on to the requests of just that interval.
  const double noise = interval.sigma / busy;
  const double usual = std::max(relative_error_, 0.01);
  const double placed = PlacementError() / busy;
  const double doubt = std::hypot(noise, placed);
  const double trust = usual * usual / (usual * usual + doubt * doubt);
  const double smooth = trust * factor + (1 - trust) * std::min(scale_, 2 * factor + 1);
  const Scaling scaling{
      .busy = busy, .factor = factor, .smooth = smooth, .noise = noise, .placed = placed};
  for (const Share& share : shares_) Credit(share, scaling);
  SpreadNoise(scaling);
}

// Gives a request its part of an interval, as it would be without the noise of the measurement.
void EnergyLedger::Credit(const Share& share, const Scaling& scaling) {
  TrackedRequest& request = requests_[share.request];
  Engine& engine = engines_[share.engine];
  const double prefill = Dot(engine.law, share.prefill);
  const double decode = Dot(engine.law, share.decode);
  if (!IsOpen(share)) {
    accounts_.other += Joules((prefill + decode) * scaling.factor);
    return;
  }
  request.prefill += prefill * scaling.smooth;
  request.decode += decode * scaling.smooth;
  request.prefill_heavy += engine.law[kHeavyTerm] * share.prefill[kHeavyTerm] * scaling.smooth;
  engine.predicted_prefill += prefill;
  engine.predicted_decode += decode;
  engine.paid_prefill += request.prefill;
  engine.paid_decode += request.decode;
  const double part = (prefill + decode) / scaling.busy;
  const double by_residual = relative_error_ * relative_error_ * (1 - part) * (1 - part);
  const double variance = scaling.noise * scaling.noise + by_residual;
  request.prefill_variance += prefill * prefill * variance;
  request.decode_variance += decode * decode * variance;
  for (std::size_t i = 0; i < kEnergyTerms; ++i) {
    const double whole = engine.total[i] / scaling.busy;
    request.prefill_gradient[i] += scaling.factor * (share.prefill[i] - prefill * whole);
    request.decode_gradient[i] += scaling.factor * (share.decode[i] - decode * whole);
  }
  request.prefill_predicted += prefill;
  request.prefill_open += prefill * (1 - prefill / scaling.busy);
  request.decode_predicted += decode;
  request.decode_open += decode * (1 - decode / scaling.busy);
  request.decode_placed += decode * scaling.placed;
  request.scale_weight += prefill + decode;
  request.scale_sum += (prefill + decode) * scaling.smooth;
}

// Brings the requests to the sum that was measured. The noise of one interval is spread over
// everything that those who took part in it have used so far, where it is a small part.
void EnergyLedger::SpreadNoise(const Scaling& scaling) {
  const auto correction = [&](double predicted, double paid) {
    return paid > 0 ? 1 + (scaling.factor - scaling.smooth) * predicted / paid : 1;
  };
  for (const Share& share : shares_) {
    if (!IsOpen(share)) continue;
    TrackedRequest& request = requests_[share.request];
    const Engine& engine = engines_[share.engine];
    request.prefill *= std::max(0.0, correction(engine.predicted_prefill, engine.paid_prefill));
    request.decode *= std::max(0.0, correction(engine.predicted_decode, engine.paid_decode));
  }
  for (EngineIndex index = 0; index < engines_.size(); ++index) {
    const Engine& engine = engines_[index];
    accounts_.engines[index].prefill += Joules(engine.predicted_prefill * scaling.factor);
    accounts_.engines[index].decode += Joules(engine.predicted_decode * scaling.factor);
  }
}

// An interval without measurement: the part of it that the request has used is not known.
void EnergyLedger::Doubt(const Share& share) {
  TrackedRequest& request = requests_[share.request];
  const Engine& engine = engines_[request.engine];
  request.prefill_unseen += Dot(engine.law, share.prefill);
  request.decode_unseen += Dot(engine.law, share.decode);
}

void EnergyLedger::Learn(const MeasuredInterval& interval, const Sums& sums, double other) {
  const double length = interval.end - interval.begin;
  const double residual = interval.energy - other - sums.predicted();
  const double busy = sums.predicted() - sums.predicted_idle;
  const double quick = rows_ < 50 ? 1 / (rows_ + 1) : 0.02;
  if (length > 0 && other <= 0) {
    const double bounded = std::min(std::abs(residual), 4 * length * residual_power_ + 1);
    residual_power_ += quick * (bounded / length - residual_power_);
    if (busy > 0.2 * sums.predicted()) {
      const double relative = std::min(0.3, std::abs(residual) / sums.predicted());
      relative_error_ += quick * (1.25 * relative - relative_error_);
    }
  }
  if (length > 0)
    peak_power_ = std::max(peak_power_ * std::exp(-length / kPeakTime), interval.energy / length);
  const double fade = std::exp(-length / kTimeConstant);
  recent_measured_ = fade * recent_measured_ + interval.energy;
  recent_predicted_ = fade * recent_predicted_ + sums.predicted();
  if (other > 0 || other_power_ > 0 || interval.energy <= 0) return;
  if (rows_ > kRowsBeforeOthers && relative_error_ > kHopelessError) StartAgain();
  std::vector<double> row(fit_.size());
  row[0] = sums.idle_time;
  for (EngineIndex index = 0; index < engines_.size(); ++index)
    for (std::size_t term = 0; term < kEnergyTerms; ++term)
      row[Column(index, term)] = engines_[index].total[term];
  const double usual = std::max({1.25 * residual_power_ * length, 0.005 * interval.energy, 0.05});
  const double sigma = std::hypot(usual, interval.sigma, PlacementError());
  const double outlier = rows_ > 100 ? std::min(1.0, 4 * sigma / (std::abs(residual) + 1e-9)) : 1;
  fit_.Add(row, interval.energy, outlier * outlier / (sigma * sigma));
  rows_ += 1;
  unsolved_rows_ += 1;
  unforgotten_ += length;
  if (length > 0 && busy > 0 && sums.idle_time < 0.2 * length)
    busy_power_ += quick * (interval.energy / length - busy_power_);
  if (unsolved_rows_ >= std::clamp(rows_ / 8, 1.0, 10.0)) SolveLaw();
}

void EnergyLedger::SolveLaw() {
  fit_.SetPrior(0, options_.idle_power, options_.idle_power > 0 ? options_.idle_power : 100);
  if (unforgotten_ > 0) fit_.Forget(std::exp2(-unforgotten_ / options_.half_life));
  unforgotten_ = 0;
  unsolved_rows_ = 0;
  for (EngineIndex index = 0; index < engines_.size(); ++index) {
    Engine& engine = engines_[index];
    EnergyTerms mean{};
    for (std::size_t i = 0; i < kEnergyTerms; ++i) mean[i] = busy_power_ * engine.seconds[i];
    double sigma = 0.7;
    if (engine.prior) {
      sigma = engine.prior_sigma;
      mean = {engine.prior->fixed.value(),
              engine.prior->per_sequence.value(),
              engine.prior->per_context.value(),
              engine.prior->per_prompt.value(),
              mean[kAttentionTerm],
              mean[kExpertsTerm],
              engine.prior->per_prompt.value()};
    }
    for (std::size_t i = 0; i < kEnergyTerms; ++i)
      fit_.SetPrior(Column(index, i), mean[i], std::max(1e-15, sigma * mean[i]));
    fit_.SetPrior(Column(index, kAttentionTerm), mean[kAttentionTerm],
                  kAttentionDoubt * mean[kPromptTerm]);
  }
  fit_.Solve();
  for (EngineIndex index = 0; index < engines_.size(); ++index)
    for (std::size_t i = 0; i < kEnergyTerms; ++i) engines_[index].law[i] = fit_[Column(index, i)];
}

void EnergyLedger::Settle(const MeasuredInterval& interval,
                          std::vector<std::deque<EngineIteration>>& iterations) {
  Gather(interval, iterations);
  const Sums sums = Predict(interval);
  const bool known = std::isfinite(interval.energy);
  const double other = known ? FindOther(interval, sums) : 0;
  Divide(interval, sums, other);
  settled_until_ = interval.end;
  if (known) Learn(interval, sums, other);
}

double EnergyLedger::PredictPrompt(const TrackedRequest& request, double tokens,
                                   double before) const {
  const Engine& engine = engines_[request.engine];
  return engine.mean_clock * tokens *
         (engine.law[PromptTermAt(engine.mean_clock)] +
          engine.law[kAttentionTerm] * (request.cached + before + tokens / 2));
}

// Adds the part of a request in an iteration, as far as it is not settled.
void EnergyLedger::AddUnsettled(RequestIndex index, const EngineIteration& iteration,
                                Rest& rest) const {
  const double length = iteration.end - iteration.busy_from;
  const double left = iteration.end - std::max(iteration.busy_from, settled_until_);
  const double whole = length > 0 ? std::clamp(left / length, 0.0, 1.0) : 1;
  const double part = whole * (1 - kOthersFall * (1 - iteration.clock));
  const double players = iteration.sequences() + static_cast<double>(iteration.prompts.size());
  const double experts = ExpertsRead(iteration.tokens());
  for (const DecodePart& decode : iteration.decode) {
    if (decode.request != index) continue;
    rest.decoded += whole * decode.tokens;
    rest.decode_terms[kFixedTerm] += part * decode.tokens / players;
    rest.decode_terms[kExpertsTerm] += part * decode.tokens / players * experts;
    rest.decode_terms[kSequenceTerm] += part * decode.tokens;
    rest.decode_terms[kContextTerm] += part * decode.tokens * decode.context;
    rest.share = 1 / players;
  }
  for (const PromptPart& prompt : iteration.prompts) {
    if (prompt.request != index) continue;
    rest.prompt += whole * prompt.tokens;
    rest.prefill_terms[kFixedTerm] += part / players;
    rest.prefill_terms[kExpertsTerm] += part / players * experts;
    rest.prefill_terms[PromptTermAt(iteration.clock)] += whole * iteration.clock * prompt.tokens;
    rest.prefill_terms[kAttentionTerm] += whole * iteration.clock * prompt.attention;
    rest.share = 1 / players;
  }
}

EnergyLedger::Rest EnergyLedger::PredictRest(RequestIndex index,
                                             const std::deque<EngineIteration>& iterations) const {
  const TrackedRequest& request = requests_[index];
  const Engine& engine = engines_[request.engine];
  const bool seen = request.settled_prompt > 0 || request.settled_decoded > 0;
  Rest rest{.share = seen ? request.mean_share : engine.mean_share};
  for (const EngineIteration& iteration : iterations) AddUnsettled(index, iteration, rest);
  // Work that has no iteration yet.
  const bool worked = request.events > 0 || (request.ended && request.counts.output);
  rest.worked = worked && request.worked <= 0 ? request.prompt : request.worked;
  const double before = request.settled_prompt + rest.prompt;
  const double prompt = engine.mean_clock * (rest.worked - before);
  rest.prefill_terms[PromptTermAt(engine.mean_clock)] += prompt;
  rest.prefill_terms[kAttentionTerm] += prompt * (request.cached + (before + rest.worked) / 2);
  if (before <= 0 && worked) {
    rest.prefill_terms[kFixedTerm] += rest.share;
    rest.prefill_terms[kExpertsTerm] += rest.share;
  }
  const double output = request.counts.output.value_or(request.tokens_seen);
  const double tokens =
      std::max(0.0, output - request.sequences - request.settled_decoded - rest.decoded);
  rest.decoded += tokens;
  rest.decode_terms[kFixedTerm] += tokens * rest.share;
  rest.decode_terms[kExpertsTerm] += tokens * rest.share * engine.mean_experts;
  rest.decode_terms[kSequenceTerm] += tokens;
  rest.decode_terms[kContextTerm] += tokens * request.context();
  for (std::size_t i = 0; i < kEnergyTerms; ++i) {
    rest.prefill_terms[i] *= scale_;
    rest.decode_terms[i] *= scale_;
  }
  rest.prefill = Dot(engine.law, rest.prefill_terms);
  rest.decode = Dot(engine.law, rest.decode_terms);
  return rest;
}

EnergyLedger::Correction EnergyLedger::PlanCorrection(RequestIndex index,
                                                      const TrackedRequest& request, double prefill,
                                                      double decode) const {
  const double peers = EnergyOfPeers(index, &TrackedRequest::prefill);
  const double most_prefill = kLargestMove * peers;
  const double most_decode = kLargestMove * EnergyOfPeers(index, &TrackedRequest::decode);
  // Prompt tokens took the place of other prompts, or of tokens of the same response.
  const double part = peers + request.decode > 0 ? peers / (peers + request.decode) : 0;
  Correction plan;
  plan.prefill =
      std::max(std::clamp(prefill * part, -most_prefill, most_prefill), -request.prefill);
  plan.decode = std::max(std::clamp(decode, -most_decode, most_decode), -request.decode);
  plan.own = std::clamp(prefill - plan.prefill, -kLargestOwn * (request.prefill + plan.prefill),
                        kLargestOwn * (request.decode + plan.decode));
  return plan;
}

void EnergyLedger::Correct(RequestIndex index, double prefill, double decode) {
  TrackedRequest& request = requests_[index];
  const Correction plan = PlanCorrection(index, request, prefill, decode);
  Move(index, &TrackedRequest::prefill, plan.prefill);
  Move(index, &TrackedRequest::decode, plan.decode);
  request.prefill += plan.own;
  request.decode -= plan.own;
}

double EnergyLedger::Trade(RequestIndex index, RequestIndex other, double amount) {
  const double moved = std::clamp(amount, -kLargestOwn * requests_[index].prefill,
                                  kLargestOwn * requests_[other].prefill);
  requests_[index].prefill += moved;
  requests_[other].prefill -= moved;
  return amount != 0 ? moved / amount : 0;
}

bool EnergyLedger::IsPeer(const Share& share, RequestIndex request) const {
  return share.request != request && share.engine == requests_[request].engine && IsOpen(share);
}

double EnergyLedger::EnergyOfPeers(RequestIndex request, Phase phase) const {
  double sum = 0;
  for (const Share& share : shares_)
    if (IsPeer(share, request)) sum += requests_[share.request].*phase;
  return sum;
}

// Moves energy of one phase from the other requests of the last interval to this one.
void EnergyLedger::Move(RequestIndex to, Phase phase, double amount) {
  const double peers = EnergyOfPeers(to, phase);
  if (!(peers > 0)) return;
  requests_[to].*phase += amount;
  for (const Share& share : shares_)
    if (IsPeer(share, to)) requests_[share.request].*phase *= 1 - amount / peers;
}

double EnergyLedger::power_bound() const {
  return peak_power_ > 0 ? 1.1 * std::max(peak_power_, busy_power_) : 2 * busy_power_;
}

EnergyLedger::Sigmas EnergyLedger::SigmasOf(const TrackedRequest& request, double prefill,
                                            double decode) const {
  const auto by_law = [&](const EnergyTerms& gradient) {
    double sum = 0;
    for (std::size_t i = 0; i < kEnergyTerms; ++i)
      for (std::size_t j = 0; j < kEnergyTerms; ++j)
        sum += gradient[i] * gradient[j] *
               fit_.Covariance(Column(request.engine, i), Column(request.engine, j));
    return std::max(0.0, sum);
  };
  EnergyTerms both{};
  for (std::size_t i = 0; i < kEnergyTerms; ++i)
    both[i] = request.prefill_gradient[i] + request.decode_gradient[i];
  const double prompt = (kPromptError + kPromptResidual * relative_error_) * prefill +
                        kHeavyPromptError * request.prefill_heavy;
  const double law_error = std::max(kLawError, kLawResidual * relative_error_);
  const double tokens =
      request.prompt > 0 ? prefill * request.prompt_sigma / std::max(1.0, request.prompt) : 0;
  const double law = law_error * (prefill + decode);
  const double unseen = request.prefill_unseen + request.decode_unseen;
  return {std::sqrt(request.prefill_variance + request.decode_variance + by_law(both) + law * law +
                    prompt * prompt + tokens * tokens + unseen * unseen),
          std::sqrt(request.prefill_variance + by_law(request.prefill_gradient) +
                    std::pow(law_error * prefill, 2) + prompt * prompt + tokens * tokens +
                    std::pow(request.prefill_unseen, 2)),
          std::sqrt(request.decode_variance + by_law(request.decode_gradient) +
                    std::pow(law_error * decode, 2) + std::pow(request.decode_unseen, 2) +
                    std::pow(kDecodeBesidePrompts * request.decode_placed, 2))};
}

EnergyTerms EnergyLedger::Law(EngineIndex engine) const { return engines_[engine].law; }

EnergyTerms EnergyLedger::LawSigma(EngineIndex engine) const {
  EnergyTerms sigma{};
  for (std::size_t i = 0; i < kEnergyTerms; ++i)
    sigma[i] = std::sqrt(fit_.Covariance(Column(engine, i), Column(engine, i)));
  return sigma;
}

double EnergyLedger::idle_power() const { return fit_[0]; }

}  // namespace zeus
