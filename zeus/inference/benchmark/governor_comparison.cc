#include "zeus/inference/benchmark/governor_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/quantity_text.h"

namespace zeus::inference {
namespace {

using report::Cell;
using EnergyMember = std::optional<EnergySummary> RunSummary::*;

GovernorFigures FiguresOf(const std::vector<BenchmarkRun>& runs, EnergyMember source) {
  const auto mean = [&runs](const auto& getter) { return MeanOver(runs, getter); };
  const auto latency = [&mean](LatencySummary RunSummary::*which) {
    return mean([which](const RunSummary& run) -> std::optional<Estimate> {
      if ((run.*which).count == 0) return std::nullopt;
      return (run.*which).p90;
    });
  };
  GovernorFigures figures{.mode = runs.front().governor};
  figures.energy = mean([source](const RunSummary& run) -> std::optional<Estimate> {
    if (!(run.*source)) return std::nullopt;
    return (run.*source)->total;
  });
  figures.per_request = mean([source](const RunSummary& run) -> std::optional<Estimate> {
    if (!(run.*source)) return std::nullopt;
    return (run.*source)->per_request;
  });
  figures.missed = mean([](const RunSummary& run) -> std::optional<Estimate> {
    if (!run.good_share) return std::nullopt;
    // None of a hundred is no proof of none: the error is that of one more of each kind.
    const double missed = 1 - run.good_share->value;
    const double requests = static_cast<double>(run.sent) + 2;
    const double likely = (missed * static_cast<double>(run.sent) + 1) / requests;
    return Estimate{missed, std::sqrt(likely * (1 - likely) / requests)};
  });
  figures.ttft = latency(&RunSummary::ttft);
  figures.tpot = latency(&RunSummary::tpot);
  if (const auto clock = mean([](const RunSummary& run) -> std::optional<Estimate> {
        if (!run.clock) return std::nullopt;
        return Estimate{run.clock->value(), 0};
      }))
    figures.clock = Hertz(clock->value);
  return figures;
}

// 1 - present / baseline with the relative errors of both.
std::optional<Estimate> Saved(const GovernorFigures& baseline, const GovernorFigures& present) {
  if (!baseline.energy || !present.energy || baseline.energy->value <= 0 ||
      present.energy->value <= 0)
    return std::nullopt;
  const double ratio = present.energy->value / baseline.energy->value;
  const double error = std::hypot(present.energy->sigma / present.energy->value,
                                  baseline.energy->sigma / baseline.energy->value);
  return Estimate{1 - ratio, ratio * error};
}

Cell Text(std::string text) { return {std::move(text), std::nullopt}; }

Cell Number(const std::optional<Estimate>& estimate, std::string_view unit) {
  if (!estimate) return Text("-");
  return {WithSigma(estimate->value, estimate->sigma, unit), estimate->value};
}

// A share in per cent with its error.
std::string ShareText(const Estimate& share) {
  return fmt::format("{:.1f} ± {:.1f} %", 100 * share.value, 100 * share.sigma);
}

std::vector<Cell> Row(const GovernorFigures& figures) {
  return {Text(figures.mode),
          Number(figures.energy, "J"),
          Number(figures.per_request, "J"),
          figures.missed ? Cell{ShareText(*figures.missed), figures.missed->value} : Text("-"),
          Number(figures.ttft, "s"),
          Number(figures.tpot, "s"),
          figures.clock
              ? Cell{fmt::format("{:.0f} MHz", figures.clock->ToMega()), figures.clock->ToMega()}
              : Text("-")};
}

}  // namespace

std::optional<GovernorComparison> CompareGovernor(const BenchReport& report) {
  if (report.baseline.empty() || report.runs.empty()) return std::nullopt;
  const auto has_gpus = [](const BenchmarkRun& run) { return run.summary.gpus.has_value(); };
  const bool gpus =
      std::ranges::all_of(report.baseline, has_gpus) && std::ranges::all_of(report.runs, has_gpus);
  const EnergyMember source = gpus ? &RunSummary::gpus : &RunSummary::gateway;
  GovernorComparison comparison{.baseline = FiguresOf(report.baseline, source),
                                .present = FiguresOf(report.runs, source),
                                .energy_source = gpus ? "gpus" : "gateway"};
  comparison.saved = Saved(comparison.baseline, comparison.present);
  return comparison;
}

std::string FindingOf(const GovernorComparison& comparison) {
  const GovernorFigures& baseline = comparison.baseline;
  const GovernorFigures& present = comparison.present;
  std::string text = fmt::format("governor {}: ", present.mode);
  if (comparison.saved)
    text += fmt::format("{} {} energy than {}",
                        ShareText({std::abs(comparison.saved->value), comparison.saved->sigma}),
                        comparison.saved->value >= 0 ? "less" : "more", baseline.mode);
  else
    text += "no energy to compare";
  if (baseline.missed && present.missed)
    text += fmt::format("; {} of requests missed a target instead of {}",
                        ShareText(*present.missed), ShareText(*baseline.missed));
  return text;
}

report::Table ToTable(const GovernorComparison& comparison) {
  return {.id = "governor",
          .title = "governor",
          .columns = {"governor", "energy", "energy per request", "missed targets", "TTFT p90",
                      "TPOT p90", "clock"},
          .rows = {Row(comparison.baseline), Row(comparison.present)}};
}

}  // namespace zeus::inference
