// The number of epochs f(b), in logarithms, has a Gaussian process over log2 b as its prior: a mean
// that rises away from the default batch size, plus a smooth deviation (a Matérn covariance). Each
// batch size that was run is one piece of evidence: the mean of the runs that reached the target,
// or, where none did, the longest run that was stopped, which would have needed somewhat more. The
// posterior, by a Cholesky factor of the evidence's covariance, gives each batch size a mean and a
// variance, also those that were never run. Costs of epochs are believed separately, because they
// are measured almost exactly.
#include "zeus/optimizer/batch_size/epoch_belief.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

// Standard deviation of ln cost per octave to the nearest known batch size: between two known ones,
// outside of two or more, and when only one is known.
constexpr double kSigmaBetween = 0.05;
constexpr double kSigmaOutside = 0.12;
constexpr double kSigmaFromOne = 0.20;
// When only one batch size is known, ln cost falls by so much per octave towards larger ones and
// rises by so much towards smaller ones.
constexpr double kFallPerOctave = 0.20;
constexpr double kRisePerOctave = 0.25;
// Standard deviation of ln cost when the cost was measured on another GPU model.
constexpr double kSigmaTranslated = 0.10;

struct Known {
  int batch_size;
  EpochCostBelief belief;

  double octave() const { return std::log2(batch_size); }
  double cost() const { return std::exp(belief.log_cost); }
};

std::vector<Known> KnownCosts(const EpochCostTable& table, std::string_view gpu_model,
                              std::span<const int> batch_sizes) {
  std::vector<Known> known;
  for (const int batch_size : batch_sizes) {
    if (const auto cost = table.Profiled(gpu_model, batch_size))
      known.push_back({batch_size, {.log_cost = std::log(cost->value()), .profiled = true}});
    else if (const auto translated = table.Translated(gpu_model, batch_size))
      known.push_back(
          {batch_size, {.log_cost = std::log(translated->value()), .sigma = kSigmaTranslated}});
  }
  return known;
}

EpochCostBelief Uncertain(double log_cost, double own_sigma, const Known& nearest) {
  return {.log_cost = log_cost, .sigma = std::hypot(own_sigma, nearest.belief.sigma)};
}

EpochCostBelief FromOne(const Known& one, int batch_size) {
  const double octaves = std::log2(batch_size) - one.octave();
  const double slope = octaves > 0 ? kFallPerOctave : kRisePerOctave;
  return Uncertain(one.belief.log_cost - slope * octaves, kSigmaFromOne * std::abs(octaves), one);
}

// The curve A / b + C through two known batch sizes.
struct CostCurve {
  double per_step = 0.0;
  double rest = 0.0;

  CostCurve(const Known& a, const Known& b) {
    const double a_inverse = 1.0 / a.batch_size;
    per_step = (a.cost() - b.cost()) / (a_inverse - 1.0 / b.batch_size);
    rest = a.cost() - per_step * a_inverse;
  }
  double At(int batch_size) const { return per_step / batch_size + rest; }
};

EpochCostBelief Between(const Known& below, const Known& above, int batch_size) {
  const double octave = std::log2(batch_size);
  const Known& nearest = octave - below.octave() <= above.octave() - octave ? below : above;
  return Uncertain(std::log(CostCurve(below, above).At(batch_size)),
                   kSigmaBetween * std::abs(octave - nearest.octave()), nearest);
}

EpochCostBelief Outside(const Known& nearest, const Known& second, int batch_size) {
  const CostCurve curve(nearest, second);
  double cost = curve.At(batch_size);
  // Noise must not make the curve cheaper towards smaller batch sizes, nor let it reach 0 J.
  if (curve.per_step <= 0)
    cost = nearest.cost();
  else if (curve.rest <= 0)
    cost = nearest.cost() * nearest.batch_size / batch_size;
  return Uncertain(std::log(cost),
                   kSigmaOutside * std::abs(std::log2(batch_size) - nearest.octave()), nearest);
}

}  // namespace

std::vector<std::optional<EpochCostBelief>> BelieveEpochCosts(const EpochCostTable& table,
                                                              std::string_view gpu_model,
                                                              std::span<const int> batch_sizes) {
  const std::vector<Known> known = KnownCosts(table, gpu_model, batch_sizes);
  std::vector<std::optional<EpochCostBelief>> beliefs(batch_sizes.size());
  if (known.empty()) return beliefs;
  for (std::size_t i = 0; i < batch_sizes.size(); ++i) {
    const int batch_size = batch_sizes[i];
    const auto above = std::ranges::lower_bound(known, batch_size, {}, &Known::batch_size);
    if (above != known.end() && above->batch_size == batch_size)
      beliefs[i] = above->belief;
    else if (known.size() == 1)
      beliefs[i] = FromOne(known.front(), batch_size);
    else if (above == known.begin())
      beliefs[i] = Outside(known[0], known[1], batch_size);
    else if (above == known.end())
      beliefs[i] = Outside(known.back(), known[known.size() - 2], batch_size);
    else
      beliefs[i] = Between(*std::prev(above), *above, batch_size);
  }
  return beliefs;
}

namespace {

// The prior mean of ln epochs rises with the batch size by so much per octave (doubling), below and
// above the default.
constexpr double kSlopeBelow = 0.15;
constexpr double kSlopeAbove = 0.25;
// The curve strays from the prior mean by this standard deviation, on this length scale.
constexpr double kCurveSigma = 0.8;
constexpr double kLengthOctaves = 4.0;
// The level of the whole curve is practically unknown: one standard deviation is a factor of 20.
constexpr double kLevelVariance = 9.0;
// No evidence is taken to be better than 0.1 %: exact evidence of almost equal batch sizes would
// make the equations singular.
constexpr double kLeastVariance = 1e-6;

// The Matérn covariance function with nu = 5/2; the distance is in length scales.
double Matern52(double distance) {
  const double r = std::sqrt(5.0) * distance;
  return (1 + r + r * r / 3) * std::exp(-r);
}

// The Cholesky factor L of the evidence's covariance K = L L^T, computed in place: fill the lower
// triangle through at(), call Factor(), then Solve().
class Cholesky {
 public:
  explicit Cholesky(std::size_t size) : size_(size), factor_(size * size) {}

  double& at(std::size_t row, std::size_t column) { return factor_[row * size_ + column]; }

  void Factor() {
    for (std::size_t column = 0; column < size_; ++column) {
      for (std::size_t row = column; row < size_; ++row) {
        double rest = at(row, column);
        for (std::size_t i = 0; i < column; ++i) rest -= at(row, i) * at(column, i);
        // The diagonal is at least the variance of the evidence, but for rounding.
        at(row, column) =
            row == column ? std::sqrt(std::max(rest, kLeastVariance)) : rest / at(column, column);
      }
    }
  }

  // Replaces `values` by the x with L x = values.
  void Solve(std::vector<double>& values) {
    for (std::size_t row = 0; row < size_; ++row) {
      for (std::size_t i = 0; i < row; ++i) values[row] -= at(row, i) * values[i];
      values[row] /= at(row, row);
    }
  }

 private:
  std::size_t size_;
  std::vector<double> factor_;
};

}  // namespace

EpochBelief::EpochBelief(std::span<const int> batch_sizes, int default_batch_size) {
  const double origin = std::log2(default_batch_size);
  std::vector<double> x;
  for (const int batch_size : batch_sizes) {
    x.push_back(std::log2(batch_size));
    const double octaves = x.back() - origin;
    mean_.push_back((octaves < 0 ? kSlopeBelow : kSlopeAbove) * octaves);
  }
  for (const double a : x)
    for (const double b : x)
      covariance_.push_back(kCurveSigma * kCurveSigma * Matern52(std::abs(a - b) / kLengthOctaves) +
                            kLevelVariance);
}

std::vector<EpochBelief::Posterior> EpochBelief::Update(
    std::span<const std::optional<Evidence>> evidence,
    std::span<const std::optional<Evidence>> others) const {
  const std::size_t size = mean_.size();
  std::vector<std::size_t> seen;  // The batch size of each piece of evidence.
  std::vector<const Evidence*> pieces;
  std::vector<double> surprise;  // Evidence less prior mean; L^-1 times that after Solve().
  for (const auto& list : {evidence, others}) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i]) continue;
      seen.push_back(i);
      pieces.push_back(&*list[i]);
      surprise.push_back(list[i]->log_epochs - mean_[i]);
    }
  }
  Cholesky cholesky(seen.size());
  for (std::size_t row = 0; row < seen.size(); ++row) {
    for (std::size_t column = 0; column <= row; ++column)
      cholesky.at(row, column) = covariance_[seen[row] * size + seen[column]] +
                                 std::min(pieces[row]->shared, pieces[column]->shared);
    cholesky.at(row, row) += std::max(pieces[row]->variance, kLeastVariance);
  }
  cholesky.Factor();
  cholesky.Solve(surprise);
  std::vector<Posterior> posterior;
  std::vector<double> weights(seen.size());
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < seen.size(); ++j) weights[j] = covariance_[i * size + seen[j]];
    cholesky.Solve(weights);
    Posterior& arm =
        posterior.emplace_back(Posterior{.mean = mean_[i], .variance = covariance_[i * size + i]});
    for (std::size_t j = 0; j < seen.size(); ++j) {
      arm.mean += weights[j] * surprise[j];
      arm.variance -= weights[j] * weights[j];
    }
    arm.variance = std::max(arm.variance, 0.0);
  }
  return posterior;
}

// How runs become evidence about ln epochs. A batch size that converged contributes the mean of its
// results, with the pooled noise divided by their number as its variance. One that never converged
// contributes its longest stopped run, which would have needed somewhat more. After a drift,
// earlier results stay as one piece of stale evidence whose variance is widened by the drift, so
// that new results soon outweigh it.

namespace {

// The prior of the noise variance is an inverse-gamma distribution with this shape and with the
// square of this standard deviation as its mean.
constexpr double kPriorNoise = 0.10;
constexpr double kPriorShape = 3.0;
// Least standard deviation to assume for a batch size with few results: the pooled noise is mostly
// that of the batch size that is run most, and may be too small for others.
constexpr double kLeastCautiousSigma = 0.15;
constexpr int kFewResults = 2;
// A run that was stopped after n epochs counts as one that needs e^0.3 n epochs, with this
// variance.
constexpr double kMoreThanStopped = 0.3;
constexpr double kStoppedVariance = 0.09;
// A stopped run counts as evidence from this many epochs on: a single epoch says nothing about how
// far the target is.
constexpr int kLeastEvidenceEpochs = 2;
// Standard deviation of the change of ln epochs by a drift.
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

// Returns the mean of both, weighted by precision.
EpochBelief::Evidence Combine(const EpochBelief::Evidence& a, const EpochBelief::Evidence& b) {
  const double sum = a.variance + b.variance;
  return {.log_epochs = (a.log_epochs * b.variance + b.log_epochs * a.variance) / sum,
          .variance = a.variance * b.variance / sum};
}

std::optional<EpochBelief::Evidence> ToEvidence(const ArmEpochs& arm, double noise) {
  if (arm.results > 0) {
    const EpochBelief::Evidence results{
        .log_epochs = arm.mean,
        .variance = (arm.results <= kFewResults ? CautiousNoise(noise) : noise) /
                    static_cast<double>(arm.results)};
    return arm.stale ? Combine(*arm.stale, results) : results;
  }
  if (arm.stale) return arm.stale;
  if (arm.longest_stop < kLeastEvidenceEpochs) return std::nullopt;
  return EpochBelief::Evidence{.log_epochs = std::log(arm.longest_stop) + kMoreThanStopped,
                               .variance = kStoppedVariance};
}

}  // namespace

double CautiousNoise(double noise) {
  return std::max(noise, kLeastCautiousSigma * kLeastCautiousSigma);
}

namespace {

// Other jobs of the kind differ from this one by this standard deviation in level and in shape,
// divided by the root of their number; and as their runs differ from each other.
constexpr double kOtherLevelSigma = 0.5;
constexpr double kOtherShapeSigma = 0.15;
// Other jobs count as at most so many results for the noise.
constexpr std::int64_t kMostFreedomOfOthers = 10;
// The level of other jobs is practically unknown after a run that contradicts them.
constexpr double kDistrustedLevelVariance = kLevelVariance;

}  // namespace

EpochHistory::EpochHistory(const JobPrior& prior, std::size_t arms, int window)
    : window_(window), arms_(arms) {
  if (prior.jobs == 0 || prior.arms.size() != arms) return;
  double squares = 0.0;
  std::int64_t freedom = 0;
  for (const PriorArm& arm : prior.arms) {
    squares += arm.squares;
    freedom += std::max<std::int64_t>(arm.converged - 1, 0);
  }
  others_freedom_ = std::min(freedom, kMostFreedomOfOthers);
  if (freedom > 0)
    others_squares_ = squares * static_cast<double>(others_freedom_) / static_cast<double>(freedom);
  const double noise = NoiseVariance();
  const auto jobs = static_cast<double>(prior.jobs);
  for (const PriorArm& arm : prior.arms) {
    assumed_.push_back(arm.converged > arm.stopped);
    EpochBelief::Evidence& evidence = others_.emplace_back(EpochBelief::Evidence()).value();
    evidence.shared = noise + kOtherLevelSigma * kOtherLevelSigma / jobs;
    evidence.variance = kOtherShapeSigma * kOtherShapeSigma / jobs;
    if (arm.converged > 0) {
      evidence.log_epochs = arm.mean;
      evidence.variance += CautiousNoise(noise) / static_cast<double>(arm.converged);
    } else if (arm.longest_stop >= kLeastEvidenceEpochs) {
      evidence.log_epochs = std::log(arm.longest_stop) + kMoreThanStopped;
      evidence.variance += kStoppedVariance;
    } else {
      others_.back().reset();
    }
  }
  trust_ = PriorTrust::kFull;
}

std::vector<std::optional<EpochBelief::Evidence>> EpochHistory::EvidenceOfOthers() const {
  if (trust_ == PriorTrust::kNone) return {};
  auto evidence = others_;
  if (trust_ == PriorTrust::kFull) return evidence;
  for (auto& one : evidence) {
    if (!one) continue;
    one->variance += kDriftSigma * kDriftSigma;
    one->shared = kDistrustedLevelVariance;
  }
  return evidence;
}

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
  // Recompute the statistics without the runs that left the window.
  for (ArmEpochs& arm : arms_) arm = {.ever_converged = arm.ever_converged};
  for (const RunRecord& one : latest_) Apply(one);
}

void EpochHistory::Apply(const RunRecord& run) {
  ArmEpochs& arm = arms_[run.arm];
  if (Assumes(run.arm) && arm.converged == 0 && (!run.converged || run.surprising))
    trust_ = PriorTrust::kShape;
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
    // The second surprise in a row: both runs belong to the time after the drift.
    const double before = *arm.surprise;
    RemoveResult(arm, log_epochs);
    RemoveResult(arm, before);
    HandleDrift();
    AddResult(arm, before);
    AddResult(arm, log_epochs);
  }
}

// Results of batch sizes that converged become stale evidence, and everything else that depends on
// the data is forgotten.
void EpochHistory::HandleDrift() {
  const double noise = NoiseVariance();
  trust_ = PriorTrust::kNone;
  for (ArmEpochs& arm : arms_) {
    auto stale = arm.converged > 0 ? ToEvidence(arm, noise) : std::nullopt;
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
  double squares = others_squares_;
  std::int64_t freedom = others_freedom_;
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
  for (const ArmEpochs& arm : arms_) evidence.push_back(ToEvidence(arm, noise));
  return evidence;
}

// Saves and restores an EpochHistory: with a window the runs themselves, without one the statistics
// of each batch size, as lists of numbers with rare parts at the end.

namespace {

constexpr std::string_view kArms = "arms";
constexpr std::string_view kRuns = "runs";

Json ToJson(const ArmEpochs& arm) {
  Json state = Json::array({arm.runs, arm.converged, arm.results, arm.mean, arm.squares, arm.stops,
                            arm.longest_stop, arm.spent, arm.dropped ? 1 : 0});
  if (!arm.surprise && !arm.stale && arm.older_freedom == 0) return state;
  Json& rare = state.emplace_back(Json::object());
  if (arm.surprise) rare["surprise"] = *arm.surprise;
  if (arm.stale) rare["stale"] = Json::array({arm.stale->log_epochs, arm.stale->variance});
  rare["older"] = Json::array({arm.older_squares, arm.older_freedom});
  return state;
}

Status ReadRareParts(const Json& state, ArmEpochs& arm) {
  ZEUS_TRY(arm.surprise, GetOptionalField<double>(state, "surprise"));
  if (const auto stale = state.find("stale"); stale != state.end()) {
    arm.stale.emplace();
    ZEUS_TRY(arm.stale->log_epochs, NumberAt(*stale, 0, kArms));
    ZEUS_TRY(arm.stale->variance, NumberAt(*stale, 1, kArms));
    if (arm.stale->variance <= 0) return DamagedState(kArms);
  }
  ZEUS_TRY(const Json* const older, FindPart(state, "older"));
  ZEUS_TRY(arm.older_squares, NumberAt(*older, 0, kArms));
  ZEUS_TRY(arm.older_freedom, ElementAt<std::int64_t>(*older, 1, kArms));
  return Ok();
}

Result<ArmEpochs> ArmFromJson(const Json& state) {
  constexpr std::size_t kRareParts = 9;
  ArmEpochs arm;
  ZEUS_TRY(arm.runs, ElementAt<std::int64_t>(state, 0, kArms));
  ZEUS_TRY(arm.converged, ElementAt<std::int64_t>(state, 1, kArms));
  ZEUS_TRY(arm.results, ElementAt<std::int64_t>(state, 2, kArms));
  ZEUS_TRY(arm.mean, NumberAt(state, 3, kArms));
  ZEUS_TRY(arm.squares, NumberAt(state, 4, kArms));
  ZEUS_TRY(arm.stops, ElementAt<int>(state, 5, kArms));
  ZEUS_TRY(arm.longest_stop, ElementAt<int>(state, 6, kArms));
  ZEUS_TRY(arm.spent, NumberAt(state, 7, kArms));
  ZEUS_TRY(const int dropped, ElementAt<int>(state, 8, kArms));
  arm.dropped = dropped != 0;
  arm.ever_converged = arm.converged > 0;
  if (state.size() > kRareParts) ZEUS_RETURN_IF_ERROR(ReadRareParts(state[kRareParts], arm));
  if (arm.converged < 0 || arm.converged > arm.runs || arm.results < 0 || arm.squares < 0 ||
      arm.older_squares < 0 || arm.older_freedom < 0)
    return DamagedState(kArms);
  return arm;
}

Json ToJson(const RunRecord& run) {
  return Json::array({run.recurrence, run.arm, run.converged ? 1 : 0, run.epochs, run.spent,
                      run.drops ? 1 : 0, run.surprising ? 1 : 0});
}

Result<RunRecord> RunFromJson(const Json& state, std::size_t arms) {
  RunRecord run;
  ZEUS_TRY(run.recurrence, ElementAt<std::int64_t>(state, 0, kRuns));
  ZEUS_TRY(run.arm, ElementAt<std::size_t>(state, 1, kRuns));
  ZEUS_TRY(const int converged, ElementAt<int>(state, 2, kRuns));
  ZEUS_TRY(run.epochs, ElementAt<int>(state, 3, kRuns));
  ZEUS_TRY(run.spent, NumberAt(state, 4, kRuns));
  ZEUS_TRY(const int drops, ElementAt<int>(state, 5, kRuns));
  ZEUS_TRY(const int surprising, ElementAt<int>(state, 6, kRuns));
  run.converged = converged != 0;
  run.drops = drops != 0;
  run.surprising = surprising != 0;
  if (run.arm >= arms || run.epochs < 0) return DamagedState(kRuns);
  return run;
}

}  // namespace

Json EpochHistory::Save() const {
  Json state;
  if (!others_.empty()) state["trust_of_others"] = static_cast<int>(trust_);
  if (window_ == 0) {
    Json& arms = state["arms"] = Json::array();
    for (const ArmEpochs& arm : arms_) arms.push_back(ToJson(arm));
    return state;
  }
  Json& ever = state["ever_converged"] = Json::array();
  for (const ArmEpochs& arm : arms_) ever.push_back(arm.ever_converged);
  Json& runs = state["runs"] = Json::array();
  for (const RunRecord& run : latest_) runs.push_back(ToJson(run));
  return state;
}

Status EpochHistory::RestoreTrust(const Json& state) {
  constexpr std::string_view kTrust = "trust_of_others";
  if (others_.empty()) return Ok();
  ZEUS_TRY(const int trust, GetField<int>(state, kTrust));
  if (trust < 0 || trust > static_cast<int>(PriorTrust::kFull)) return DamagedState(kTrust);
  trust_ = static_cast<PriorTrust>(trust);
  return Ok();
}

Status EpochHistory::Restore(const Json& state) {
  ZEUS_RETURN_IF_ERROR(RestoreTrust(state));
  if (window_ == 0) {
    ZEUS_TRY(const Json* const arms, FindPart(state, kArms));
    if (!arms->is_array() || arms->size() != arms_.size()) return DamagedState(kArms);
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      ZEUS_TRY(arms_[i], ArmFromJson((*arms)[i]));
    }
    return Ok();
  }
  ZEUS_TRY(const auto ever, GetField<std::vector<bool>>(state, "ever_converged"));
  if (ever.size() != arms_.size()) return DamagedState("ever_converged");
  for (std::size_t i = 0; i < arms_.size(); ++i) arms_[i].ever_converged = ever[i];
  ZEUS_TRY(const Json* const runs, FindPart(state, kRuns));
  ZEUS_RETURN_IF_ERROR(CheckArray(*runs, kRuns));
  for (const Json& entry : *runs) {
    ZEUS_TRY(const RunRecord run, RunFromJson(entry, arms_.size()));
    latest_.push_back(run);
    Apply(run);
  }
  return Ok();
}

}  // namespace zeus
