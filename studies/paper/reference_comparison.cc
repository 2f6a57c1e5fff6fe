#include "studies/paper/reference_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "studies/paper/drawing.h"
#include "zeus/replay/reference_figures.h"

namespace zeus::replay::paper {
namespace {

constexpr int kReferenceSeeds = 50;
constexpr double kAgreement = 3.0;  // Standard errors of the difference.

struct ComparedFigure {
  const char* name;
  double ReferenceFigures::*reference;
  double ReplaySummary::*ours;
  double rounding;
  int decimals;
};

constexpr ComparedFigure kCompared[] = {
    {"energy", &ReferenceFigures::energy, &ReplaySummary::last_five_energy, 0.0005, 3},
    {"time", &ReferenceFigures::time, &ReplaySummary::last_five_time, 0.0005, 3},
    {"cost", &ReferenceFigures::cost, &ReplaySummary::last_five_cost, 0.0005, 3},
    {"regret of 50", &ReferenceFigures::regret_of_50, &ReplaySummary::regret_of_50, 0.005, 2},
    {"regret", &ReferenceFigures::regret, &ReplaySummary::regret, 0.005, 2},
};

struct Difference {
  const ReferenceFigures* setting = nullptr;
  const ComparedFigure* figure = nullptr;
  double reference = 0.0;
  SampleSummary ours{};

  // In standard errors, beyond what the reference was rounded by: its 50 seeds scatter as ours do.
  // nullopt: beyond it, but the seeds came to the same, so that nothing is known of the scatter.
  std::optional<double> StandardErrors() const {
    const double apart = std::abs(ours.mean - reference) - figure->rounding;
    if (apart <= 0.0) return 0.0;
    if (ours.StandardDeviation() <= 0.0) return std::nullopt;
    return apart /
           std::hypot(ours.StandardError(), ours.StandardDeviation() / std::sqrt(kReferenceSeeds));
  }
};

std::vector<Difference> Differences(const Study& study) {
  std::vector<Difference> differences;
  for (const GpuResults& gpu : study.settings) {
    for (const MatchResult& result : gpu.contender("zeus").workloads) {
      const auto setting =
          std::ranges::find(kReferenceFigures, result.match.job->name(), &ReferenceFigures::name);
      if (setting == kReferenceFigures.end()) continue;
      for (const ComparedFigure& figure : kCompared)
        differences.push_back({.setting = &*setting,
                               .figure = &figure,
                               .reference = (*setting).*figure.reference,
                               .ours = Mean(result, figure.ours)});
    }
  }
  return differences;
}

}  // namespace

report::Table ReferenceTable(const Study& study) {
  report::Table table{
      .id = "table-reference",
      .title = "zeus here and in the reference's simulator",
      .caption =
          "Means over the seeds; apart: standard errors of the difference, beyond what the "
          "reference was rounded by.",
      .columns = {"setting", "figure", "reference", "ours", "± deviation", "apart"}};
  for (const Difference& difference : Differences(study))
    table.rows.push_back(
        {{.text = std::string(difference.setting->name)},
         {.text = difference.figure->name},
         NumberCell(difference.reference, difference.figure->decimals),
         NumberCell(difference.ours.mean, difference.figure->decimals),
         NumberCell(difference.ours.StandardDeviation(), difference.figure->decimals),
         difference.StandardErrors() ? NumberCell(*difference.StandardErrors(), 1)
                                     : report::Cell{.text = "-"}});
  return table;
}

Claim ReferenceClaim(const Study& study) {
  const std::vector<Difference> differences = Differences(study);
  double furthest = 0.0;
  std::size_t agree = 0, unjudged = 0;
  for (const Difference& difference : differences) {
    const std::optional<double> apart = difference.StandardErrors();
    furthest = std::max(furthest, apart.value_or(0.0));
    if (!apart)
      ++unjudged;
    else if (*apart <= kAgreement)
      ++agree;
  }
  return {.section = "reference",
          .claim = "energy, time and regret of zeus are those of the reference's simulator",
          .paper = fmt::format("{} figures of 50 seeds", differences.size()),
          .ours = fmt::format("{} agree within {:g} standard errors; furthest {:.1f}", agree,
                              kAgreement, furthest),
          .verdict = agree == differences.size() ? Verdict::kWithinSpread : Verdict::kDiffers,
          .remark = unjudged == 0 ? ""
                                  : fmt::format("{} are the same with all seeds, and not that of "
                                                "the reference: there may be too few seeds",
                                                unjudged)};
}

}  // namespace zeus::replay::paper
