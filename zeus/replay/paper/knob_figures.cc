#include <fmt/format.h>

#include <algorithm>

#include "zeus/replay/paper/configurations.h"
#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/motivation_figures.h"
#include "zeus/replay/paper/valleys.h"

// Energy against one knob, the other as it is by default: figures 5, 17 and 18.
namespace zeus::replay::paper {
namespace {

using report::Mark;
using report::Panel;
using report::Series;

Panel BatchSizePanel(const ReplayJob& job) {
  Series mean{.name = "mean of the recorded runs", .role = "energy", .mark = Mark::kLine};
  Series spread{.name = "least and most of them", .role = "energy", .mark = Mark::kArea};
  for (const ReplayArm& arm : job.arms) {
    const std::optional<double> epochs = arm.MeanEpochs(job.max_epochs);
    if (!epochs) continue;
    const auto energy = [&](double count) {
      return (count * arm.full_power_epoch.energy).value() / kMega;
    };
    const auto [fewest, most] = std::ranges::minmax(arm.epochs_to_target);
    for (Series* const series : {&spread, &mean}) {
      series->x.push_back(arm.batch_size);
      series->y.push_back(energy(*epochs));
    }
    spread.low.push_back(energy(*fewest));
    spread.high.push_back(energy(*most));
  }
  return {.title = job.title,
          .x = {.title = "batch size", .logarithmic = true},
          .y = EnergyAxis(),
          .series = {std::move(spread), std::move(mean)}};
}

Panel LimitPanel(const ReplayJob& job) {
  const ReplayArm& usual = job.arm(job.default_batch_size);
  const double epochs = usual.MeanEpochs(job.max_epochs).value_or(job.max_epochs);
  Series line{.name = "default batch size", .role = "energy", .mark = Mark::kLine};
  for (const LimitRecord& record : usual.limits) {
    line.x.push_back(record.limit.value());
    line.y.push_back((epochs * record.epoch.energy).value() / kMega);
    line.labels.push_back(Knobs(usual.batch_size, record.limit));
  }
  return {.title = job.title,
          .x = {.title = "power limit (W)"},
          .y = EnergyAxis(),
          .series = {std::move(line)}};
}

// Of which workloads the energy falls and then rises, and of which it does not.
std::string ValleyCaption(std::span<const ReplayJob> jobs) {
  const Valleys valleys = ValleysOf(jobs);
  std::string caption = "Energy to accuracy by batch size, at the greatest power limit.";
  if (!valleys.one.empty()) caption += " It falls and then rises: " + valleys.one + ".";
  if (!valleys.one_within_scatter.empty())
    caption += " So it does within two standard errors: " + valleys.one_within_scatter + ".";
  if (!valleys.several.empty())
    caption += " There is more than one valley: " + valleys.several + ".";
  return caption;
}

bool SavesBelowGreatestLimit(const ReplayJob& job) {
  const std::vector<LimitRecord>& limits = job.arm(job.default_batch_size).limits;
  const auto energy = [](const LimitRecord& record) { return record.epoch.energy; };
  return std::ranges::min(limits, {}, energy).epoch.energy < limits.back().epoch.energy;
}

}  // namespace

report::Figure BatchSizeFigure(const ReplayJob& job) {
  return {.id = "figure-5",
          .title = "Figure 5: Energy of " + job.title + " by batch size",
          .caption = ValleyCaption({&job, 1}) + " Recorded runs of one batch size scatter.",
          .panels = {BatchSizePanel(job)}};
}

report::Figure BatchSizesFigure(std::span<const ReplayJob> jobs) {
  report::Figure figure{
      .id = "figure-17",
      .title = "Figure 17: Energy by batch size, all workloads",
      .caption = ValleyCaption(jobs) +
                 " Pruning by walking down and up from the default relies on a single valley."};
  for (const ReplayJob& job : jobs) figure.panels.push_back(BatchSizePanel(job));
  return figure;
}

report::Figure LimitsFigure(std::span<const ReplayJob> jobs) {
  report::Figure figure{
      .id = "figure-18",
      .title = "Figure 18: Energy by power limit, all workloads",
      .caption = fmt::format(
          "With the default batch size, {} of {} workloads take the least energy below the "
          "greatest power limit.",
          std::ranges::count_if(jobs, SavesBelowGreatestLimit), jobs.size())};
  for (const ReplayJob& job : jobs) figure.panels.push_back(LimitPanel(job));
  return figure;
}

}  // namespace zeus::replay::paper
