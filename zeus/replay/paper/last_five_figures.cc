#include <fmt/format.h>

#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/evaluation_figures.h"

// What policies converge to: figures 6, 14 and 23.
namespace zeus::replay::paper {
namespace {

using report::Mark;
using report::Panel;
using report::Series;

struct Quantity {
  const char* name;
  const char* title;
  double ReplaySummary::*figure;
};

constexpr Quantity kEnergy{"energy", "energy, of the default's", &ReplaySummary::last_five_energy};
constexpr Quantity kTime{"time", "time, of the default's", &ReplaySummary::last_five_time};

Series Bars(std::string_view contender) {
  return {.name = std::string(contender), .role = std::string(contender), .mark = Mark::kBars};
}

// Mean and one standard deviation over the seeds.
void Push(Series& bars, std::size_t place, const SampleSummary& value) {
  bars.x.push_back(static_cast<double>(place));
  bars.y.push_back(value.mean);
  bars.low.push_back(value.mean - value.StandardDeviation());
  bars.high.push_back(value.mean + value.StandardDeviation());
}

Panel LastFivePanel(const GpuResults& gpu, std::span<const ReplayJob> jobs,
                    const Quantity& quantity) {
  Panel panel{.title = fmt::format("{}: {}", GpuTitle(gpu.gpu_model), quantity.name),
              .x = {.categories = WorkloadTitles(jobs)},
              .y = {.title = quantity.title, .from_zero = true}};
  for (const WorkloadResults& contender : gpu.contenders) {
    Series bars = Bars(contender.name);
    for (std::size_t i = 0; i < contender.workloads.size(); ++i)
      Push(bars, i, Mean(contender.workloads[i], quantity.figure));
    panel.series.push_back(std::move(bars));
  }
  panel.series.push_back(LevelAcross("default", "default", 1.0, jobs.size()));
  return panel;
}

struct PaperLevel {
  const char* name;
  double level;
};

void AddPaperLevels(Panel& panel, std::initializer_list<PaperLevel> levels) {
  for (const PaperLevel& level : levels)
    panel.series.push_back(
        LevelAcross(level.name, "paper", level.level, panel.x.categories.size()));
}

}  // namespace

report::Figure LastFiveFigure(const Study& study) {
  Panel energy = LastFivePanel(study.usual(), study.usual_jobs(), kEnergy);
  energy.title = "energy";
  AddPaperLevels(energy, {{"paper: zeus saves at least 15.3 %", 0.847},
                          {"paper: zeus saves at most 75.8 %", 0.242}});
  Panel time = LastFivePanel(study.usual(), study.usual_jobs(), kTime);
  time.title = "time";
  AddPaperLevels(time, {{"paper: zeus takes at most 12.8 % longer", 1.128},
                        {"paper: zeus is at most 60.1 % shorter", 0.399}});
  return {.id = "figure-6",
          .title = "Figure 6: Energy and time of the last five recurrences",
          .caption =
              "What each policy converges to, normalised by the default: all save energy on "
              "every workload, and most of them time too.",
          .panels = {std::move(energy), std::move(time)}};
}

report::Figure LastFiveByGpuFigure(const Study& study) {
  report::Figure figure{
      .id = "figure-23",
      .title = "Figure 23: Energy and time of the last five recurrences on all GPUs",
      .caption = "The savings are of the same kind on all four generations of GPUs."};
  for (std::size_t i = 0; i < study.gpus.size(); ++i) {
    for (const Quantity& quantity : {kEnergy, kTime})
      figure.panels.push_back(LastFivePanel(study.settings[i], study.gpus[i], quantity));
  }
  return figure;
}

report::Figure GpuFigure(const Study& study) {
  Panel panel{.title = "geometric mean over the workloads",
              .y = {.title = kEnergy.title, .from_zero = true}};
  for (const GpuResults& gpu : study.settings)
    panel.x.categories.push_back(GpuTitle(gpu.gpu_model));
  for (const char* const name : kContenders) {
    Series bars = Bars(name);
    for (std::size_t i = 0; i < study.settings.size(); ++i) {
      const auto energy = [](const ReplaySummary& seed) { return seed.last_five_energy; };
      Push(bars, i,
           zeus::Summarize(AcrossWorkloads(study.settings[i].contender(name).workloads, energy,
                                           GeometricMean)));
    }
    panel.series.push_back(std::move(bars));
  }
  panel.series.push_back(LevelAcross("default", "default", 1.0, study.settings.size()));
  return {.id = "figure-14",
          .title = "Figure 14: Energy by GPU model",
          .caption =
              "Energy of the last five recurrences, normalised by the default: the saving "
              "is much the same on each generation.",
          .panels = {std::move(panel)}};
}

}  // namespace zeus::replay::paper
