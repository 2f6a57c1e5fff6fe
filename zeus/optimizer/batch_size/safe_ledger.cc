// The confidence is for the whole life of a job. It is spent on its risks one after the other: the
// k-th risky run may exceed the bound with probability 5 % / (k (k + 1)), and these add up to 5 %.
// A run that is repeated with a batch size whose cost is well known is hardly a risk, and allowed
// by the same rule.
#include "zeus/optimizer/batch_size/safe_ledger.h"

#include <cmath>
#include <numbers>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

constexpr double kChanceOfExcess = 0.05;
constexpr std::string_view kSafe = "safe";

// Returns z such that a normal variable exceeds z standard deviations with this probability, by
// Newton's method on the distribution function, which is convex there.
double UpperQuantile(double probability) {
  double z = 0.0;
  for (int i = 0; i < 50; ++i) {
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double above = 0.5 * std::erfc(z / std::sqrt(2.0));
    const double step = (above - probability) / density;
    z += step;
    if (std::abs(step) < 1e-12) break;
  }
  return z;
}

double MeanCost(const SafeLedger::Default& usual) {
  return std::exp(usual.log_epochs + usual.noise / 2);
}

}  // namespace

double SafeLedger::Quantile() const {
  const auto k = static_cast<double>(risks_ + 1);
  return UpperQuantile(kChanceOfExcess / (k * (k + 1)));
}

bool SafeLedger::Allows(const Default& usual, const Risk& risk) const {
  const double z = Quantile();
  // One error counts once: of the default's level and of the run.
  const double sigma = std::sqrt(risk.variance + usual.variance);
  const double bad_end = std::exp(risk.log_cost + z * sigma) + risk.extra;
  const double saved = static_cast<double>(replaced_ + 1) * MeanCost(usual);
  return spent_ + bad_end - saved <= share_ * (own_ + saved);
}

double SafeLedger::Allowance(const Default& usual) const {
  const double saved = static_cast<double>(replaced_) * MeanCost(usual);
  return share_ * (own_ + saved + MeanCost(usual)) + saved - spent_;
}

void SafeLedger::AddDefaultRun(double cost) { own_ += cost; }

void SafeLedger::AddOtherRun(double cost, bool converged) {
  spent_ += cost;
  replaced_ += converged ? 1 : 0;
}

Json SafeLedger::Save() const { return Json::array({own_, spent_, replaced_, risks_}); }

Status SafeLedger::Restore(const Json& state) {
  ZEUS_TRY(own_, NumberAt(state, 0, kSafe));
  ZEUS_TRY(spent_, NumberAt(state, 1, kSafe));
  ZEUS_TRY(replaced_, ElementAt<std::int64_t>(state, 2, kSafe));
  ZEUS_TRY(risks_, ElementAt<std::int64_t>(state, 3, kSafe));
  if (own_ < 0 || spent_ < 0 || replaced_ < 0 || risks_ < 0) return DamagedState(kSafe);
  return Ok();
}

}  // namespace zeus
