#include "zeus/monitor/inference/duration_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "zeus/monitor/inference/tracked_request.h"

namespace zeus {
namespace {

// The first guesses, in seconds, are of a model with 10^10 parameters on a recent GPU. They are
// wide: one stretch of iterations outweighs them.
constexpr std::array<double, 7> kFirstGuess = {0.010, 50e-6, 50e-9, 30e-6, 0, 0, 0};
constexpr std::array<double, 7> kGuessSigma = {0.030, 100e-6, 100e-9, 300e-6, 3e-9, 10e-6, 0.005};
constexpr double kRelativeError = 0.01;  // The law itself is not exact.
constexpr std::size_t kExpertsColumn = 6;
constexpr double kNone = 1e-12;         // A prior that holds its coefficient.
constexpr double kBecomeMixture = 0.6;  // Error of the mixture's fit over that of the dense one.
constexpr double kStayMixture = 0.9;
constexpr double kRowsToCompare = 100;
constexpr double kSmallExperts = 0.02;  // Less than this part of the fixed time is none.
constexpr double kSlowError = 0.01;     // Weight of a new error in its running average.
constexpr double kOutlier = 4;  // A stretch that is so many times its error off counts less...
constexpr double kRowsBeforeOutliers = 10;    // ...once so many were seen.
constexpr std::size_t kMostStretches = 4096;  // Older ones are forgotten.

std::array<double, 7> Row(const IterationLoad& load) {
  return {load.iterations, load.sequences, load.context, load.prompt,
          load.attention,  load.heavy,     load.experts};
}

}  // namespace

IterationLoad& IterationLoad::operator+=(const IterationLoad& other) {
  iterations += other.iterations;
  sequences += other.sequences;
  context += other.context;
  prompt += other.prompt;
  attention += other.attention;
  heavy += other.heavy;
  experts += other.experts;
  return *this;
}

DurationModel::DurationModel() : dense_(kFirstGuess.size()), mixture_(kFirstGuess.size()) {
  for (std::size_t i = 0; i < kFirstGuess.size(); ++i) {
    dense_.SetPrior(i, kFirstGuess[i], i == kExpertsColumn ? kNone : kGuessSigma[i]);
    mixture_.SetPrior(i, kFirstGuess[i], kGuessSigma[i]);
  }
  Solve();
}

void DurationModel::AddRow(const IterationLoad& load, double duration, double weight) {
  const auto row = Row(load);
  dense_.Add(row, duration, weight);
  mixture_.Add(row, duration, weight);
  dirty_ = true;
}

void DurationModel::Solve() {
  dense_.Solve();
  mixture_.Solve();
}

// Finds out by an iteration whose load is known which of the two fits predicts better.
void DurationModel::Compare(const IterationLoad& load, double duration) {
  const auto row = Row(load);
  const auto follow = [&](const NonNegativeFit& fit, double& error) {
    double predicted = 0;
    for (std::size_t i = 0; i < row.size(); ++i) predicted += row[i] * fit[i];
    const double miss = std::min(1.0, std::abs(predicted / duration - 1));
    error += std::max(kSlowError, 1 / decode_rows_) * (miss - error);
  };
  follow(dense_, dense_error_);
  follow(mixture_, mixture_error_);
  const double clearly = is_mixture_ ? kStayMixture : kBecomeMixture;
  is_mixture_ = decode_rows_ > kRowsToCompare && mixture_error_ < clearly * dense_error_;
}

double DurationModel::ClockWith(double prompt) const {
  if (prompt <= heavy_from_ || fit()[3] <= 0) return 1;
  const double light = fit()[3] * prompt;
  return std::max(0.3, light / (light + fit()[5] * (prompt - heavy_from_)));
}

double DurationModel::TokensIn(double time, double context, double sequences) const {
  double most = DenseTokensIn(time, context);
  if (experts() <= kSmallExperts * fixed()) return most;
  // Tokens also bring in experts. Their time grows with every token, so the number is found by
  // halving.
  const double before = ExpertsRead(sequences);
  double least = 0;
  for (int round = 0; round < 24; ++round) {
    const double middle = (least + most) / 2;
    const double read = ExpertsRead(sequences + middle) - before;
    (DenseTokensIn(time - experts() * read, context) > middle ? least : most) = middle;
  }
  return least;
}

double DurationModel::DenseTokensIn(double time, double context) const {
  const double light = std::max(1e-9, PerPrompt(context));
  const double tokens = std::max(0.0, time) / light;
  if (tokens <= heavy_from_) return tokens;
  return heavy_from_ + (time - heavy_from_ * light) / (light + fit()[5]);
}

double DurationModel::Predict(const IterationLoad& load) const {
  const auto row = Row(load);
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) sum += row[i] * fit()[i];
  return sum;
}

void DurationModel::LearnDecode(const IterationLoad& load, double duration) {
  if (!(duration > 0) || load.iterations <= 0) return;
  const double miss = std::abs(duration - Predict(load));
  decode_rows_ += 1;
  Compare(load, duration);
  // Single outliers, such as a pause of the server, count little.
  const double bound = decode_rows_ < 30 ? 1e9 : 4 * error_;
  const double weight = miss > bound ? bound / miss * bound / miss : 1;
  error_ += std::max(kSlowError, 1 / (decode_rows_ + 1)) * (std::min(miss, bound) - error_);
  const double sigma = 2 * error_ + kRelativeError * duration;
  AddRow(load, duration, weight / (sigma * sigma));
  if (decode_rows_ < 64 &&
      (static_cast<int>(decode_rows_) & (static_cast<int>(decode_rows_) - 1)) == 0)
    Solve();
}

std::uint64_t DurationModel::OpenStretch(const IterationLoad& load, double duration,
                                         std::size_t requests) {
  while (stretches_.size() >= kMostStretches) stretches_.erase(stretches_.begin());
  stretches_.emplace(next_stretch_, Stretch{load, duration, requests});
  return next_stretch_++;
}

void DurationModel::PromptKnown(std::uint64_t stretch, double tokens, double cached, double sigma) {
  const auto found = stretches_.find(stretch);
  if (found == stretches_.end()) return;
  Stretch& row = found->second;
  row.load.prompt += tokens;
  row.load.attention += tokens * (cached + tokens / 2);
  row.variance += sigma * sigma;
  if (--row.missing > 0) return;
  Learn(row.load, row.duration, row.variance);
  stretches_.erase(found);
}

void DurationModel::Learn(const IterationLoad& load, double duration, double variance) {
  const double of_prompt = fit()[3] * std::sqrt(variance);
  const double sigma = 2 * error_ + 2 * kRelativeError * duration;
  const double miss = std::abs(duration - Predict(load));
  const double bound = kOutlier * (sigma + of_prompt);
  prompt_rows_ += 1;
  const double outlier =
      prompt_rows_ > kRowsBeforeOutliers && miss > bound ? bound / miss * bound / miss : 1;
  AddRow(load, duration, outlier / (sigma * sigma + of_prompt * of_prompt));
  if (prompt_rows_ < 16) Solve();
}

void DurationModel::Update(double elapsed, double half_life) {
  if (!dirty_ || !(elapsed > 0)) return;
  const double factor = std::exp2(-elapsed / half_life);
  dense_.Forget(factor);
  mixture_.Forget(factor);
  Solve();
  dirty_ = false;
  // It moves slowly, because rows that were added counted with an older value.
  if (knows_prompts() && fit()[3] > 0)
    heavy_from_ += 0.02 * (std::clamp(fit()[0] / fit()[3], 16.0, 4096.0) - heavy_from_);
}

}  // namespace zeus
