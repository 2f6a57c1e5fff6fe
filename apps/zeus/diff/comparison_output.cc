// How a Comparison is shown: for a terminal, a pull request, a test report, a program.
#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "apps/zeus/diff/comparison.h"
#include "zeus/base/json.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

std::string ChangeText(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "anything";
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
  std::string text = judgement.ratio ? ChangeText(*judgement.ratio) : "unknown";
  if (judgement.bounds) {
    text += fmt::format(", between {} and {} (each bound with {:g} % confidence)",
                        ChangeText(judgement.bounds->low), ChangeText(judgement.bounds->high),
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

Json Finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
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
               {"ratio", Finite(judgement.ratio)}};
  const auto bound = [&](double Interval::*side) {
    return judgement.bounds ? Finite((*judgement.bounds).*side) : Json(nullptr);
  };
  json["ratio_low"] = bound(&Interval::low);
  json["ratio_high"] = bound(&Interval::high);
  json["runs_needed"] = judgement.runs_needed ? Json(*judgement.runs_needed) : Json(nullptr);
  json["warnings"] = comparison.warnings;
  return json;
}

}  // namespace zeus::cli
