#include "zeus/monitor/inference/duration_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zeus {
namespace {

// The first guesses, in seconds, are of a model with 10^10 parameters on a recent GPU. They are
// wide: one stretch of iterations outweighs them.
constexpr std::array<double, 6> kFirstGuess = {0.010, 50e-6, 50e-9, 30e-6, 0, 0};
constexpr std::array<double, 6> kGuessSigma = {0.030, 100e-6, 100e-9, 300e-6, 3e-9, 10e-6};
constexpr double kRelativeError = 0.01;       // The law itself is not exact.
constexpr double kSlowError = 0.01;           // Weight of a new error in its running average.
constexpr std::size_t kMostStretches = 4096;  // Older ones are forgotten.

std::array<double, 6> Row(const IterationLoad& load) {
  return {load.iterations, load.sequences, load.context, load.prompt, load.attention, load.heavy};
}

}  // namespace

IterationLoad& IterationLoad::operator+=(const IterationLoad& other) {
  iterations += other.iterations;
  sequences += other.sequences;
  context += other.context;
  prompt += other.prompt;
  attention += other.attention;
  heavy += other.heavy;
  return *this;
}

DurationModel::DurationModel() : fit_(kFirstGuess.size()) {
  for (std::size_t i = 0; i < kFirstGuess.size(); ++i)
    fit_.SetPrior(i, kFirstGuess[i], kGuessSigma[i]);
  fit_.Solve();
}

double DurationModel::ClockWith(double prompt) const {
  if (prompt <= heavy_from_ || fit_[3] <= 0) return 1;
  const double light = fit_[3] * prompt;
  return std::max(0.3, light / (light + fit_[5] * (prompt - heavy_from_)));
}

double DurationModel::TokensIn(double time, double context) const {
  const double light = std::max(1e-9, PerPrompt(context));
  const double tokens = std::max(0.0, time) / light;
  if (tokens <= heavy_from_) return tokens;
  return heavy_from_ + (time - heavy_from_ * light) / (light + fit_[5]);
}

double DurationModel::Predict(const IterationLoad& load) const {
  const auto row = Row(load);
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) sum += row[i] * fit_[i];
  return sum;
}

void DurationModel::LearnDecode(const IterationLoad& load, double duration) {
  if (!(duration > 0) || load.iterations <= 0) return;
  const double miss = std::abs(duration - Predict(load));
  decode_rows_ += 1;
  // Single outliers, such as a pause of the server, count little.
  const double bound = decode_rows_ < 30 ? 1e9 : 4 * error_;
  const double weight = miss > bound ? bound / miss * bound / miss : 1;
  error_ += std::max(kSlowError, 1 / (decode_rows_ + 1)) * (std::min(miss, bound) - error_);
  const double sigma = 2 * error_ + kRelativeError * duration;
  fit_.Add(Row(load), duration, weight / (sigma * sigma));
  dirty_ = true;
  if (decode_rows_ < 64 &&
      (static_cast<int>(decode_rows_) & (static_cast<int>(decode_rows_) - 1)) == 0)
    fit_.Solve();
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
  const double of_prompt = fit_[3] * std::sqrt(variance);
  const double sigma = 2 * error_ + 2 * kRelativeError * duration;
  const double miss = std::abs(duration - Predict(load));
  const double bound = 5 * (sigma + of_prompt);
  prompt_rows_ += 1;
  const double outlier = prompt_rows_ > 30 && miss > bound ? bound / miss * bound / miss : 1;
  fit_.Add(Row(load), duration, outlier / (sigma * sigma + of_prompt * of_prompt));
  dirty_ = true;
  if (prompt_rows_ < 16) fit_.Solve();
}

void DurationModel::Update(double elapsed, double half_life) {
  if (!dirty_ || !(elapsed > 0)) return;
  fit_.Forget(std::exp2(-elapsed / half_life));
  fit_.Solve();
  dirty_ = false;
  // It moves slowly, because rows that were added counted with an older value.
  if (knows_prompts() && fit_[3] > 0)
    heavy_from_ += 0.02 * (std::clamp(fit_[0] / fit_[3], 16.0, 4096.0) - heavy_from_);
}

}  // namespace zeus
