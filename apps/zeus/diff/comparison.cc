#include "apps/zeus/diff/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/base/random.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kFewestForWelch = 2;
constexpr std::size_t kFewestForBootstrap = 5;
constexpr std::size_t kMostRunsSuggested = 10000;

Verdict VerdictOf(const Interval& bounds, double limit) {
  if (bounds.low > limit) return Verdict::kRegression;
  return bounds.high <= limit ? Verdict::kOk : Verdict::kUndecided;
}

// Returns the smallest number of runs on each side that decides, with the present scatter and
// means.
std::optional<std::size_t> RunsNeeded(RatioSide base, RatioSide changed, double limit,
                                      double confidence) {
  const auto decides = [&](std::size_t runs) {
    base.sample.count = changed.sample.count = runs;
    return VerdictOf(WelchRatioBounds(base, changed, confidence), limit) != Verdict::kUndecided;
  };
  std::size_t too_few = std::min(base.sample.count, changed.sample.count);
  std::size_t enough = 2 * too_few;
  while (!decides(enough)) {
    if (enough > kMostRunsSuggested) return std::nullopt;
    too_few = enough;
    enough *= 2;
  }
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    (decides(middle) ? enough : too_few) = middle;
  }
  return enough;
}

std::string WhyUndecided(const Judgement& judgement, const RatioSide& base,
                         const RatioSide& changed) {
  if (judgement.runs_needed) {
    return fmt::format("the runs scatter too much to tell: about {} on each side would",
                       *judgement.runs_needed);
  }
  if (base.shared_error > 0 || changed.shared_error > 0)
    return "the devices may differ by more than that: compare runs of the same devices";
  return "the change is too near to what is allowed: no practical number of runs would tell";
}

std::string TooFew(std::size_t base, std::size_t changed) {
  return fmt::format("not enough data: {} run{} and {} run{}, measure with --repeat {} or more",
                     base, base == 1 ? "" : "s", changed, changed == 1 ? "" : "s",
                     kFewestForBootstrap);
}

// Sets the verdict that the bounds allow, and its reason.
void Decide(Judgement& judgement, const RatioSide& base, const RatioSide& changed,
            const DiffOptions& options) {
  const double limit = 1 + options.max_regress;
  judgement.verdict = VerdictOf(*judgement.bounds, limit);
  switch (judgement.verdict) {
    case Verdict::kOk:
      judgement.reason = "the increase stays below what is allowed";
      break;
    case Verdict::kRegression:
      judgement.reason = "the increase is above what is allowed";
      break;
    case Verdict::kUndecided:
      judgement.runs_needed = RunsNeeded(base, changed, limit, options.confidence);
      judgement.reason = WhyUndecided(judgement, base, changed);
      break;
  }
}

// Adds warnings about runs that were left out and about questionable ones.
void WarnAbout(const Samples& samples, const std::string& path,
               std::vector<std::string>& warnings) {
  const auto warn = [&](int count, const char* one, const char* many) {
    if (count > 0)
      warnings.push_back(fmt::format("{}: {} {}", path, count, count == 1 ? one : many));
  };
  warn(samples.failed, "run failed and is left out", "runs failed and are left out");
  warn(samples.unmeasured, "run has no such number and is left out",
       "runs have no such number and are left out");
  warn(samples.different, "run measured other devices than the first and is left out",
       "runs measured other devices than the first and are left out");
  warn(samples.too_short, "run is shorter than three updates of the sensor: let it do more work",
       "runs are shorter than three updates of the sensor: let them do more work");
}

void WarnAboutDifferences(const RunFile& base, const RunFile& changed,
                          std::vector<std::string>& warnings) {
  if (base.command != changed.command) {
    warnings.push_back(fmt::format("the commands differ: {} and {}",
                                   Quote(fmt::format("{}", fmt::join(base.command, " "))),
                                   Quote(fmt::format("{}", fmt::join(changed.command, " ")))));
  }
}

// If both files hold the same measurements, nothing has changed, however much they scatter.
bool SameRuns(const RunFile& base, const RunFile& changed) {
  return !base.runs.empty() && base.runs == changed.runs;
}

}  // namespace

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kRegression:
      return "regression";
    case Verdict::kUndecided:
      return "undecided";
  }
  return "unknown";
}

Judgement Judge(const std::vector<double>& base, const std::vector<double>& changed,
                double base_shared_error, double changed_shared_error, const DiffOptions& options) {
  const RatioSide base_side{Summarize(base), base_shared_error};
  const RatioSide changed_side{Summarize(changed), changed_shared_error};
  Judgement judgement;
  judgement.base = base_side.sample;
  judgement.changed = changed_side.sample;
  if (base.empty() || changed.empty() || judgement.base.mean <= 0 || judgement.changed.mean <= 0) {
    judgement.reason = "there is no number to compare: both sides need one above zero";
    return judgement;
  }
  judgement.ratio = judgement.changed.mean / judgement.base.mean;
  const std::size_t fewest =
      options.method == Method::kWelch ? kFewestForWelch : kFewestForBootstrap;
  if (std::min(base.size(), changed.size()) < fewest) {
    judgement.runs_needed = kFewestForBootstrap;
    judgement.reason = TooFew(base.size(), changed.size());
    return judgement;
  }
  if (options.method == Method::kWelch) {
    judgement.bounds = WelchRatioBounds(base_side, changed_side, options.confidence);
  } else {
    Random random(options.seed);
    judgement.bounds = BootstrapRatioBounds(base, changed,
                                            {.confidence = options.confidence,
                                             .base_shared_error = base_shared_error,
                                             .changed_shared_error = changed_shared_error},
                                            random);
  }
  Decide(judgement, base_side, changed_side, options);
  return judgement;
}

Result<Comparison> Compare(const RunFile& base, const RunFile& changed,
                           const DiffOptions& options) {
  ZEUS_TRY(const Samples base_samples, CollectSamples(base, options.metric, options.device));
  ZEUS_TRY(const Samples new_samples, CollectSamples(changed, options.metric, options.device));
  Comparison comparison{.options = options,
                        .base_path = base.path,
                        .new_path = changed.path,
                        .command = fmt::format("{}", fmt::join(changed.command, " ")),
                        .judgement = {},
                        .warnings = {}};
  WarnAboutDifferences(base, changed, comparison.warnings);
  WarnAbout(base_samples, base.path, comparison.warnings);
  WarnAbout(new_samples, changed.path, comparison.warnings);
  // The calibration error of a board is the same in all its runs and cancels in the ratio.
  const bool same_devices = base_samples.devices == new_samples.devices;
  if (!same_devices && !base_samples.values.empty() && !new_samples.values.empty()) {
    comparison.warnings.emplace_back(
        "the two files measured different devices: what their sensors may be wrong by is counted "
        "in");
  }
  comparison.judgement =
      Judge(base_samples.values, new_samples.values, same_devices ? 0 : base_samples.relative_sigma,
            same_devices ? 0 : new_samples.relative_sigma, options);
  if (SameRuns(base, changed) && comparison.judgement.verdict != Verdict::kOk) {
    comparison.judgement.verdict = Verdict::kOk;
    comparison.judgement.runs_needed.reset();
    comparison.judgement.reason = "both files hold the same runs";
  }
  return comparison;
}

}  // namespace zeus::cli
