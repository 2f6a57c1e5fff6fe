#include <fmt/format.h>

#include <cmath>

#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/evaluation_figures.h"
#include "zeus/replay/paper/sensitivity.h"

// What the parameters and parts of zeus are worth: figures 12, 13 and 22.
namespace zeus::replay::paper {
namespace {

using report::Mark;
using report::Panel;
using report::Series;

constexpr const char* kMeanName = "geometric mean";

void Push(Series& series, double x, const SampleSummary& value) {
  series.x.push_back(x);
  series.y.push_back(value.mean);
  series.low.push_back(value.mean - value.StandardError());
  series.high.push_back(value.mean + value.StandardError());
}

// A line for each workload and one for their geometric mean, by what varies.
void AddLines(Panel& panel, std::span<const WorkloadResults> variants, const RatioOf& ratio) {
  const std::size_t workloads = variants.front().workloads.size();
  std::vector<Series> lines;
  for (std::size_t i = 0; i < workloads; ++i) {
    const std::string title = variants.front().workloads[i].match.job->title;
    lines.push_back({.name = title, .role = title, .mark = Mark::kLine});
  }
  Series mean{.name = kMeanName, .role = "zeus", .mark = Mark::kLine};
  for (const WorkloadResults& variant : variants) {
    for (std::size_t i = 0; i < workloads; ++i)
      Push(lines[i], variant.parameter, zeus::Summarize(ratio(variant, i)));
    Push(mean, variant.parameter, zeus::Summarize(GeometricMeans(variant, ratio)));
  }
  for (Series& line : lines) panel.series.push_back(std::move(line));
  panel.series.push_back(std::move(mean));
}

Panel AblationPanel(const Study& study, std::string title, const RatioOf& ratio) {
  Panel panel{.title = std::move(title),
              .x = {.categories = WorkloadTitles(study.usual_jobs())},
              .y = {.title = "of that of zeus", .logarithmic = true}};
  panel.x.categories.emplace_back(kMeanName);
  for (const WorkloadResults& ablation : study.ablations) {
    Series bars{.name = ablation.name, .role = ablation.name, .mark = Mark::kBars};
    for (std::size_t i = 0; i < ablation.workloads.size(); ++i)
      Push(bars, static_cast<double>(i), zeus::Summarize(ratio(ablation, i)));
    Push(bars, static_cast<double>(ablation.workloads.size()),
         zeus::Summarize(GeometricMeans(ablation, ratio)));
    panel.series.push_back(std::move(bars));
  }
  panel.series.push_back(LevelAcross("zeus", "zeus", 1.0, panel.x.categories.size()));
  return panel;
}

// What the least and the greatest threshold take, beside the usual one.
std::string BetaCaption(const Study& study) {
  const RatioOf ratio = CumulativeEnergyOf(study.usual().contender("zeus"));
  const auto change = [&](const WorkloadResults& variant) {
    const double more = zeus::Summarize(GeometricMeans(variant, ratio)).mean - 1;
    return fmt::format("{} takes {:.1f} % {} energy", variant.name, 100 * std::abs(more),
                       more > 0 ? "more" : "less");
  };
  return fmt::format(
      "A low threshold stops runs that may have been worth it, a high one lets bad runs go on. "
      "Geometric mean, beside β = 2: {}, {}. Spread is the standard error over the seeds.",
      change(study.betas.front()), change(study.betas.back()));
}

}  // namespace

report::Figure BetaFigure(const Study& study) {
  Panel panel{.title = "cumulative energy, of that with β = 2",
              .x = {.title = "early stopping threshold β"},
              .y = {.title = "energy of all recurrences, of that with β = 2"}};
  AddLines(panel, study.betas, CumulativeEnergyOf(study.usual().contender("zeus")));
  return {.id = "figure-12",
          .title = "Figure 12: Energy by early stopping threshold",
          .caption = BetaCaption(study),
          .panels = {std::move(panel)}};
}

report::Figure AblationFigure(const Study& study) {
  const WorkloadResults& whole = study.usual().contender("zeus");
  return {.id = "figure-13",
          .title = "Figure 13: What each part of zeus contributes",
          .caption =
              "Energy and time of all recurrences without early stopping, without pruning "
              "and without just-in-time profiling, of those of zeus.",
          .panels = {AblationPanel(study, "energy", CumulativeEnergyOf(whole)),
                     AblationPanel(study, "time", CumulativeTimeOf(whole))}};
}

report::Figure EtaFigure(const Study& study) {
  Panel energy{.title = "energy",
               .x = {.title = "priority of energy η"},
               .y = {.title = "improvement factor of energy"}};
  AddLines(energy, study.etas, ImprovementOf(&ReplaySummary::last_five_energy));
  Panel time{.title = "time",
             .x = {.title = "priority of energy η"},
             .y = {.title = "improvement factor of time"}};
  AddLines(time, study.etas, ImprovementOf(&ReplaySummary::last_five_time));
  return {.id = "figure-22",
          .title = "Figure 22: Impact of η on energy and time",
          .caption =
              "The default's energy and time divided by those of zeus: the higher η, the "
              "more energy is saved, and the less time.",
          .panels = {std::move(energy), std::move(time)}};
}

}  // namespace zeus::replay::paper
