#include <fmt/format.h>

#include <optional>

#include "zeus/replay/paper/configurations.h"
#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/motivation_figures.h"

// What trying everything saves: figures 1 and 15.
namespace zeus::replay::paper {
namespace {

// §2.2: what joint optimisation saves on a V100.
constexpr double kPaperLeastSaving = 0.238;
constexpr double kPaperGreatestSaving = 0.747;

struct Variant {
  const char* name;
  const char* role;
  Configuration ExhaustiveSweep::*configuration;
};

constexpr Variant kVariants[] = {
    {"baseline", "default", &ExhaustiveSweep::usual},
    {"best batch size", "batch size", &ExhaustiveSweep::best_batch_size},
    {"best power limit", "power limit", &ExhaustiveSweep::best_limit},
    {"both", "oracle", &ExhaustiveSweep::best},
};

report::Panel SavingsPanel(std::span<const ReplayJob> jobs) {
  report::Panel panel{.title = jobs.empty() ? "" : GpuTitle(jobs.front().gpu_model),
                      .x = {.categories = WorkloadTitles(jobs)},
                      .y = {.title = "energy, of the baseline's", .from_zero = true}};
  for (const Variant& variant : kVariants) {
    report::Series bars{.name = variant.name, .role = variant.role, .mark = report::Mark::kBars};
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::optional<ExhaustiveSweep> sweep = SweepExhaustively(jobs[i]);
      if (!sweep) continue;
      const Configuration& configuration = (*sweep).*variant.configuration;
      bars.x.push_back(static_cast<double>(i));
      bars.y.push_back(configuration.usage.energy / sweep->usual.usage.energy);
      bars.labels.push_back(Knobs(configuration.batch_size, configuration.limit));
    }
    panel.series.push_back(std::move(bars));
  }
  return panel;
}

void AddPaperBounds(report::Panel& panel) {
  const std::size_t count = panel.x.categories.size();
  panel.series.push_back(
      LevelAcross("paper: both, least saving 23.8 %", "paper", 1 - kPaperLeastSaving, count));
  panel.series.push_back(
      LevelAcross("paper: both, greatest saving 74.7 %", "paper", 1 - kPaperGreatestSaving, count));
}

}  // namespace

report::Figure SavingsFigure(std::span<const ReplayJob> jobs) {
  report::Figure figure{
      .id = "figure-1",
      .title = "Figure 1: Energy to accuracy, normalised by the baseline",
      .caption =
          "The best batch size and the best power limit each save energy, and both together "
          "save most, on every workload.",
      .panels = {SavingsPanel(jobs)}};
  AddPaperBounds(figure.panels.front());
  return figure;
}

report::Figure SavingsByGpuFigure(std::span<const JobsOfGpu> gpus) {
  report::Figure figure{
      .id = "figure-15",
      .title = "Figure 15: Energy to accuracy by GPU model, normalised by the baseline",
      .caption =
          "On all four generations of GPUs there is much to save, most of it where the "
          "default batch size is far from the best one."};
  for (const JobsOfGpu& jobs : gpus) figure.panels.push_back(SavingsPanel(jobs));
  return figure;
}

report::Table SweepTable(std::span<const JobsOfGpu> gpus) {
  report::Table table{
      .id = "table-sweep",
      .title = "What an exhaustive sweep saves",
      .caption =
          "Energy saved against the default batch size at the greatest power limit, by one "
          "knob and by both, and the configurations of least energy and of least time.",
      .columns = {"GPU", "workload", "default", "batch size", "saves", "power limit", "saves",
                  "both", "saves", "fastest"}};
  for (const JobsOfGpu& jobs : gpus) {
    for (const ReplayJob& job : jobs) {
      const std::optional<ExhaustiveSweep> sweep = SweepExhaustively(job);
      if (!sweep) continue;
      const auto knobs = [](const Configuration& configuration) {
        return report::Cell{.text = Knobs(configuration.batch_size, configuration.limit)};
      };
      const auto saving = [&](const Configuration& configuration) {
        return PercentCell(sweep->Saving(configuration));
      };
      table.rows.push_back({{.text = GpuTitle(job.gpu_model)},
                            {.text = job.title},
                            knobs(sweep->usual),
                            {.text = fmt::to_string(sweep->best_batch_size.batch_size)},
                            saving(sweep->best_batch_size),
                            {.text = fmt::format("{:g} W", sweep->best_limit.limit.value())},
                            saving(sweep->best_limit),
                            knobs(sweep->best),
                            saving(sweep->best),
                            knobs(sweep->fastest)});
    }
  }
  return table;
}

}  // namespace zeus::replay::paper
