#include "apps/zeus/diff/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/random.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kFewestForWelch = 2;
constexpr std::size_t kFewestForBootstrap = 5;
constexpr std::size_t kMostRunsSuggested = 10000;

Verdict JudgeBounds(const Interval& bounds, double limit) {
  if (bounds.low > limit) return Verdict::kRegression;
  return bounds.high <= limit ? Verdict::kOk : Verdict::kUndecided;
}

// Returns the smallest number of runs on each side that decides, with the present scatter and
// means.
std::optional<std::size_t> RunsNeeded(RatioSide base, RatioSide changed, double limit,
                                      double confidence) {
  const auto decides = [&](std::size_t runs) {
    base.sample.count = changed.sample.count = runs;
    return JudgeBounds(WelchRatioBounds(base, changed, confidence), limit) != Verdict::kUndecided;
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
  judgement.verdict = JudgeBounds(*judgement.bounds, limit);
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

// How a Comparison is shown: for a terminal, a pull request, a test report, a program.

namespace {

std::string RatioText(double ratio) {
  return std::isfinite(ratio) ? ChangeText(ratio, 1) : "anything";
}

std::string MeanText(const SampleSummary& sample, Metric metric) {
  if (sample.count == 0) return "-";
  return fmt::format("{:.6g} {}", sample.mean, MetricUnit(metric));
}

std::string SpreadText(const SampleSummary& sample) {
  if (sample.count < 2 || sample.mean <= 0) return "-";
  return fmt::format("{:.2g} %", 100 * sample.StandardDeviation() / sample.mean);
}

// "+3.5 %, between +2.1 % and +4.9 % (each with 95 % confidence), +3 % is allowed"
std::string ChangeSentence(const Comparison& comparison) {
  const Judgement& judgement = comparison.judgement;
  std::string text = judgement.ratio ? RatioText(*judgement.ratio) : "unknown";
  if (judgement.bounds) {
    text += fmt::format(", between {} and {} (each bound with {:g} % confidence)",
                        RatioText(judgement.bounds->low), RatioText(judgement.bounds->high),
                        100 * comparison.options.confidence);
  }
  return text + fmt::format("; {:+g} % allowed", 100 * comparison.options.max_regress);
}

std::string Subject(const Comparison& comparison) {
  std::string metric = MetricName(comparison.options.metric);
  if (comparison.options.metric == Metric::kTime) return metric;
  return fmt::format("{} of {}", metric, comparison.options.device);
}

std::vector<std::vector<std::string>> Sides(const Comparison& comparison) {
  const Judgement& judgement = comparison.judgement;
  const Metric metric = comparison.options.metric;
  return {{"", "runs", "mean", "spread", "file"},
          {"base", fmt::to_string(judgement.base.count), MeanText(judgement.base, metric),
           SpreadText(judgement.base), Printable(comparison.base_path)},
          {"new", fmt::to_string(judgement.changed.count), MeanText(judgement.changed, metric),
           SpreadText(judgement.changed), Printable(comparison.new_path)}};
}

// Characters with a meaning in Markdown tables.
std::string MarkdownCell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (std::string_view("|\\`*_<>[]").find(c) != std::string_view::npos) cell += '\\';
    cell += c;
  }
  return cell;
}

Json SideJson(const std::string& path, const SampleSummary& sample) {
  return {
      {"file", path},
      {"runs", sample.count},
      {"mean", sample.count > 0 ? Json(sample.mean) : Json(nullptr)},
      {"standard_deviation", sample.count > 1 ? Json(sample.StandardDeviation()) : Json(nullptr)}};
}

Json OptionalJson(std::optional<double> value) {
  return value ? FiniteOrNull(*value) : Json(nullptr);
}

}  // namespace

std::string ToText(const Comparison& comparison) {
  std::string text = fmt::format("zeus diff: {}\n", Subject(comparison));
  auto rows = Sides(comparison);
  for (auto& row : rows) row.front() = "  " + row.front();
  text +=
      AlignedRows({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft}, rows);
  text += fmt::format("  change: {}\n", ChangeSentence(comparison));
  for (const std::string& warning : comparison.warnings)
    text += fmt::format("  warning: {}\n", warning);
  return text + fmt::format("{}: {}\n", VerdictName(comparison.judgement.verdict),
                            comparison.judgement.reason);
}

std::string ToMarkdown(const Comparison& comparison) {
  std::string text = fmt::format("### {}: {}\n\n", MarkdownCell(Subject(comparison)),
                                 VerdictName(comparison.judgement.verdict));
  const auto rows = Sides(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += "|";
    for (const std::string& cell : rows[i]) text += fmt::format(" {} |", MarkdownCell(cell));
    text += i == 0 ? "\n|---|---:|---:|---:|---|\n" : "\n";
  }
  text += fmt::format("\n**Change:** {}: {}.\n", ChangeSentence(comparison),
                      MarkdownCell(comparison.judgement.reason));
  for (const std::string& warning : comparison.warnings)
    text += fmt::format("\n> Warning: {}\n", MarkdownCell(Printable(warning)));
  return text;
}

std::string ToJUnit(const Comparison& comparison) {
  const Judgement& judgement = comparison.judgement;
  const bool failure = judgement.verdict == Verdict::kRegression;
  const bool error = judgement.verdict == Verdict::kUndecided;
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites tests=\"1\" failures=\"{0:d}\" errors=\"{1:d}\">\n"
      "  <testsuite name=\"zeus diff\" tests=\"1\" failures=\"{0:d}\" errors=\"{1:d}\">\n"
      "    <testcase classname=\"zeus.diff\" name=\"{2}\">\n",
      failure ? 1 : 0, error ? 1 : 0,
      EscapeXml(fmt::format("{}: {}", Subject(comparison), Printable(comparison.command))));
  if (failure || error) {
    text += fmt::format(
        "      <{0} message=\"{1}\" type=\"{2}\"></{0}>\n", failure ? "failure" : "error",
        EscapeXml(fmt::format("{} ({})", judgement.reason, ChangeSentence(comparison))),
        VerdictName(judgement.verdict));
  }
  text += fmt::format("      <system-out>{}</system-out>\n", EscapeXml(ToText(comparison)));
  return text + "    </testcase>\n  </testsuite>\n</testsuites>\n";
}

Json ToJson(const Comparison& comparison) {
  const Judgement& judgement = comparison.judgement;
  const DiffOptions& options = comparison.options;
  Json json = {{"schema", "zeus.diff/1"},
               {"verdict", VerdictName(judgement.verdict)},
               {"reason", judgement.reason},
               {"metric", MetricName(options.metric)},
               {"unit", MetricUnit(options.metric)},
               {"device", options.device},
               {"max_regress", options.max_regress},
               {"confidence", options.confidence},
               {"method", options.method == Method::kWelch ? "welch" : "bootstrap"},
               {"base", SideJson(comparison.base_path, judgement.base)},
               {"new", SideJson(comparison.new_path, judgement.changed)},
               {"ratio", OptionalJson(judgement.ratio)}};
  const auto bound = [&](double Interval::*side) {
    return judgement.bounds ? OptionalJson((*judgement.bounds).*side) : Json(nullptr);
  };
  json["ratio_low"] = bound(&Interval::low);
  json["ratio_high"] = bound(&Interval::high);
  json["runs_needed"] = judgement.runs_needed ? Json(*judgement.runs_needed) : Json(nullptr);
  json["warnings"] = comparison.warnings;
  return json;
}

}  // namespace zeus::cli
