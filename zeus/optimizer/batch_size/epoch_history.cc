#include "zeus/optimizer/batch_size/epoch_history.h"

#include <algorithm>
#include <cmath>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

// What is expected of the noise before anything was seen: an inverse-gamma distribution.
constexpr double kPriorNoise = 0.10;
constexpr double kPriorShape = 3.0;
// The noise of a batch size with few results is not taken for less than that: the pooled noise is
// mostly that of the batch size that is run most.
constexpr double kLeastNoiseOfFew = 0.15;
constexpr int kFewResults = 2;
// A run that was stopped after n epochs counts as e^0.3 n.
constexpr double kMoreThanStopped = 0.3;
constexpr double kStoppedVariance = 0.09;
// A single epoch says nothing about where the target is.
constexpr int kTellingEpochs = 2;
// One standard deviation of what a drift does to ln epochs.
constexpr double kDriftSigma = 0.5;

void AddResult(ArmEpochs& arm, double log_epochs) {
  ++arm.results;
  const double deviation = log_epochs - arm.mean;
  arm.mean += deviation / static_cast<double>(arm.results);
  arm.squares += deviation * (log_epochs - arm.mean);
}

void RemoveResult(ArmEpochs& arm, double log_epochs) {
  if (--arm.results <= 0) {
    arm.results = 0;
    arm.mean = arm.squares = 0.0;
    return;
  }
  const double deviation = log_epochs - arm.mean;
  arm.mean -= deviation / static_cast<double>(arm.results);
  arm.squares = std::max(0.0, arm.squares - deviation * (log_epochs - arm.mean));
}

// The mean of both, each weighted with its precision.
EpochBelief::Evidence Combine(const EpochBelief::Evidence& a, const EpochBelief::Evidence& b) {
  const double sum = a.variance + b.variance;
  return {.log_epochs = (a.log_epochs * b.variance + b.log_epochs * a.variance) / sum,
          .variance = a.variance * b.variance / sum};
}

std::optional<EpochBelief::Evidence> EvidenceOf(const ArmEpochs& arm, double noise) {
  if (arm.results > 0) {
    const EpochBelief::Evidence results{
        .log_epochs = arm.mean,
        .variance = (arm.results <= kFewResults ? CautiousNoise(noise) : noise) /
                    static_cast<double>(arm.results)};
    return arm.stale ? Combine(*arm.stale, results) : results;
  }
  if (arm.stale) return arm.stale;
  if (arm.longest_stop < kTellingEpochs) return std::nullopt;
  return EpochBelief::Evidence{.log_epochs = std::log(arm.longest_stop) + kMoreThanStopped,
                               .variance = kStoppedVariance};
}

}  // namespace

double CautiousNoise(double noise) { return std::max(noise, kLeastNoiseOfFew * kLeastNoiseOfFew); }

double EpochHistory::LogEpochs(const RunRecord& run) {
  return std::log(std::max(run.epochs, 1)) + (run.converged ? 0.0 : kMoreThanStopped);
}

void EpochHistory::Add(const RunRecord& run) {
  if (window_ == 0) return Apply(run);
  latest_.push_back(run);
  const std::int64_t newest = std::ranges::max(latest_, {}, &RunRecord::recurrence).recurrence;
  const auto forgotten = std::erase_if(
      latest_, [&](const RunRecord& one) { return one.recurrence <= newest - window_; });
  if (forgotten == 0) return Apply(run);
  for (ArmEpochs& arm : arms_) arm = {.ever_converged = arm.ever_converged};
  for (const RunRecord& one : latest_) Apply(one);
}

void EpochHistory::Apply(const RunRecord& run) {
  ArmEpochs& arm = arms_[run.arm];
  ++arm.runs;
  if (run.converged) ++arm.converged;
  arm.ever_converged |= run.converged;
  if (arm.converged == 0) {
    ++arm.stops;
    arm.longest_stop = std::max(arm.longest_stop, run.epochs);
    arm.spent += run.spent;
    arm.dropped |= run.drops;
    return;
  }
  arm.dropped = false;
  const double log_epochs = LogEpochs(run);
  AddResult(arm, log_epochs);
  if (!run.surprising) {
    arm.surprise.reset();
  } else if (!arm.surprise) {
    arm.surprise = log_epochs;
  } else {
    const double before = *arm.surprise;
    RemoveResult(arm, log_epochs);
    RemoveResult(arm, before);
    Drift();
    AddResult(arm, before);
    AddResult(arm, log_epochs);
  }
}

void EpochHistory::Drift() {
  const double noise = NoiseVariance();
  for (ArmEpochs& arm : arms_) {
    auto stale = arm.converged > 0 ? EvidenceOf(arm, noise) : std::nullopt;
    if (stale) stale->variance += kDriftSigma * kDriftSigma;
    arm = {.runs = arm.runs,
           .converged = arm.converged,
           .ever_converged = arm.ever_converged,
           .older_squares = arm.older_squares + arm.squares,
           .older_freedom = arm.older_freedom + std::max<std::int64_t>(arm.results - 1, 0),
           .stale = stale};
  }
}

double EpochHistory::NoiseVariance() const {
  double squares = 0.0;
  std::int64_t freedom = 0;
  for (const ArmEpochs& arm : arms_) {
    squares += arm.squares + arm.older_squares;
    freedom += std::max<std::int64_t>(arm.results - 1, 0) + arm.older_freedom;
  }
  return (kPriorNoise * kPriorNoise * (kPriorShape - 1) + squares / 2) /
         (kPriorShape + static_cast<double>(freedom) / 2 - 1);
}

std::vector<std::optional<EpochBelief::Evidence>> EpochHistory::AllEvidence() const {
  const double noise = NoiseVariance();
  std::vector<std::optional<EpochBelief::Evidence>> evidence;
  for (const ArmEpochs& arm : arms_) evidence.push_back(EvidenceOf(arm, noise));
  return evidence;
}

}  // namespace zeus
