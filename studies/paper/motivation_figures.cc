#include "studies/paper/motivation_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "studies/paper/configurations.h"
#include "studies/paper/drawing.h"
#include "studies/paper/workload_table.h"

// Figures 1 and 15: the savings of trying everything.
namespace zeus::replay::paper {

// --- What can be saved ---

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

// --- Time against energy ---

// Energy against time: figures 2, 11 and 16.

namespace {

using report::Mark;
using report::Panel;
using report::Series;

constexpr int kEtaSteps = 10;  // Figure 11 sweeps eta from 0 to 1.

// All runs at one average power lie on a line through the origin.
Series PowerLine(Watts power, Seconds longest) {
  return {.name = fmt::format("average power {:.0f} W", power.value()),
          .role = "power",
          .mark = Mark::kRule,
          .x = {0.0, longest.count() / kKilo},
          .y = {0.0, (power * longest).value() / kMega}};
}

Panel TradeoffPanel(const ReplayJob& job) {
  const std::vector<Configuration> feasible = FeasibleConfigurations(job);
  return {.title = job.title,
          .x = TimeAxis(),
          .y = EnergyAxis(),
          .series = {Scatter("configurations", "configurations", Mark::kPoints, feasible),
                     Scatter("Pareto front", "front", Mark::kLine, ParetoFront(feasible)),
                     Scatter("default", "default", Mark::kPoints,
                             std::vector{DefaultConfiguration(job)})}};
}

struct Box {
  Seconds shortest{};
  Seconds longest{};
  Joules least{};
  Joules most{};
};

// Where eta E + (1 - eta) MAXPOWER T is what it is at `best`, inside the box (Equation 2).
Series ConstantCost(const Configuration& best, double eta, Watts max_power, const Box& box) {
  Series line{.name = fmt::format("constant cost, η = {:g}", eta), .mark = Mark::kRule};
  line.role = "cost";
  const auto add = [&line](Seconds time, Joules energy) {
    line.x.push_back(time.count() / kKilo);
    line.y.push_back(energy.value() / kMega);
  };
  if (eta == 0.0) {
    add(best.usage.time, box.least);
    add(best.usage.time, box.most);
    return line;
  }
  const Watts slope = (1 - eta) / eta * max_power;
  const auto energy_at = [&](Seconds time) {
    return best.usage.energy + slope * (best.usage.time - time);
  };
  const auto time_at = [&](Joules energy) {
    return best.usage.time + (best.usage.energy - energy) / slope;
  };
  const bool leaves_above = energy_at(box.shortest) > box.most;
  const bool leaves_below = energy_at(box.longest) < box.least;
  const Seconds from = leaves_above ? time_at(box.most) : box.shortest;
  const Seconds until = leaves_below ? time_at(box.least) : box.longest;
  add(from, energy_at(from));
  add(until, energy_at(until));
  return line;
}

// Around the front, with a margin.
Box BoxAround(std::span<const Configuration> front) {
  constexpr double kMargin = 0.05;
  return {.shortest = (1 - kMargin) * front.front().usage.time,
          .longest = (1 + kMargin) * front.back().usage.time,
          .least = (1 - kMargin) * front.back().usage.energy,
          .most = (1 + kMargin) * front.front().usage.energy};
}

}  // namespace

report::Figure TradeoffFigure(const ReplayJob& job) {
  const std::vector<Configuration> feasible = FeasibleConfigurations(job);
  const std::vector<Configuration> front = ParetoFront(feasible);
  Panel all = TradeoffPanel(job);
  all.title = "all configurations";
  all.x.from_zero = all.y.from_zero = true;
  Panel close{.title = "the Pareto front",
              .x = TimeAxis(),
              .y = EnergyAxis(),
              .series = {Scatter("Pareto front", "front", Mark::kLine, front),
                         Scatter("its configurations", "configurations", Mark::kPoints, front)}};
  if (!feasible.empty()) {
    const auto [idle, busy] = std::ranges::minmax(feasible, {}, &Configuration::power);
    const auto slowest = std::ranges::max(
        feasible, {}, [](const Configuration& configuration) { return configuration.usage.time; });
    all.series.push_back(PowerLine(busy.power, slowest.usage.time));
    all.series.push_back(PowerLine(idle.power, slowest.usage.time));
  }
  return {.id = "figure-2",
          .title = fmt::format("Figure 2: {} on {}: energy against time", job.title,
                               GpuTitle(job.gpu_model)),
          .caption =
              "Less energy costs time along the Pareto front, and the default lies far from "
              "it.",
          .panels = {std::move(all), std::move(close)}};
}

report::Figure TradeoffsFigure(std::span<const ReplayJob> jobs) {
  report::Figure figure{
      .id = "figure-16",
      .title = "Figure 16: Energy against time of all workloads",
      .caption =
          "Every workload has a front along which energy is bought with time; defaults do "
          "not lie on it."};
  for (const ReplayJob& job : jobs) figure.panels.push_back(TradeoffPanel(job));
  return figure;
}

report::Figure EtaFrontFigure(const ReplayJob& job) {
  const std::vector<Configuration> feasible = FeasibleConfigurations(job);
  const std::vector<Configuration> front = ParetoFront(feasible);
  Panel panel{.title = job.title, .x = TimeAxis(), .y = EnergyAxis()};
  panel.series.push_back(Scatter("Pareto front", "front", Mark::kLine, front));
  if (!front.empty()) {
    const Box box = BoxAround(front);
    Series chosen{.name = "least cost by η", .role = "zeus", .mark = Mark::kPoints};
    for (int step = 0; step <= kEtaSteps; ++step) {
      const double eta = static_cast<double>(step) / kEtaSteps;
      const Configuration& best = CheapestAt(feasible, eta, job.max_power);
      chosen.x.push_back(best.usage.time.count() / kKilo);
      chosen.y.push_back(best.usage.energy.value() / kMega);
      chosen.labels.push_back(fmt::format("η = {:g}: {}", eta, Knobs(best.batch_size, best.limit)));
      if (step % 2 == 0) panel.series.push_back(ConstantCost(best, eta, job.max_power, box));
    }
    panel.series.push_back(std::move(chosen));
  }
  return {
      .id = "figure-11",
      .title = fmt::format("Figure 11: The Pareto front of {} and how η navigates it", job.title),
      .caption =
          "The configurations of least cost lie on the front for every η, and the lines "
          "of constant cost envelop it.",
      .panels = {std::move(panel)}};
}

// --- Each knob alone ---

// Energy against one knob, the other as it is by default: figures 5, 17 and 18.

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

// Says for which workloads the energy falls and then rises, and for which it does not.
std::string ValleyCaption(std::span<const ReplayJob> jobs) {
  const Valleys valleys = FindValleys(jobs);
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

// --- Tables ---

namespace {

std::string BatchSizes(const ReplayJob& job) {
  if (job.arms.empty()) return "none";
  return fmt::format("{} from {} to {}", job.arms.size(), job.arms.front().batch_size,
                     job.arms.back().batch_size);
}

std::string Limits(const ReplayJob& job) {
  if (job.arms.empty()) return "none";
  const auto& limits = job.arms.back().limits;
  return fmt::format("{} from {:g} to {:g} W", limits.size(), limits.front().limit.value(),
                     limits.back().limit.value());
}

}  // namespace

report::Table WorkloadTable(std::span<const ReplayJob> jobs) {
  report::Table table{
      .id = "table-1",
      .title = "Table 1: Workloads",
      .caption =
          "The paper's workloads, and what is known of them here: batch sizes, and a run of "
          "the default configuration.",
      .columns = {"task", "dataset", "model", "optimizer", "b₀", "target", "batch sizes",
                  "default takes (h)", "default uses (MJ)"}};
  for (const PaperWorkload& workload : kPaperWorkloads) {
    const auto job = std::ranges::find(jobs, workload.label, &ReplayJob::label);
    if (job == jobs.end()) continue;
    constexpr double kHour = 3600;
    const Usage usual = job->DefaultUsage();
    table.rows.push_back({{.text = std::string(workload.task)},
                          {.text = std::string(workload.dataset)},
                          {.text = std::string(workload.model)},
                          {.text = std::string(workload.optimizer)},
                          {.text = fmt::to_string(workload.default_batch_size),
                           .value = workload.default_batch_size},
                          {.text = std::string(workload.target)},
                          {.text = BatchSizes(*job)},
                          NumberCell(usual.time.count() / kHour, 2),
                          NumberCell(usual.energy.value() / kMega, 3)});
  }
  return table;
}

report::Table GpuTable(std::span<const JobsOfGpu> gpus) {
  report::Table table{.id = "table-2",
                      .title = "Table 2: Hardware",
                      .caption =
                          "The paper's GPUs, and the power limits that are known of them; "
                          "its hosts are no part of the traces.",
                      .columns = {"GPU", "memory", "architecture", "power limits", "workloads"}};
  for (const PaperGpu& gpu : kPaperGpus) {
    const auto jobs = std::ranges::find_if(gpus, [&](const JobsOfGpu& candidates) {
      return !candidates.empty() && candidates.front().gpu_model == gpu.model;
    });
    if (jobs == gpus.end()) continue;
    table.rows.push_back(
        {{.text = std::string(gpu.title)},
         {.text = std::string(gpu.memory)},
         {.text = std::string(gpu.architecture)},
         {.text = Limits(jobs->front())},
         {.text = fmt::to_string(jobs->size()), .value = static_cast<double>(jobs->size())}});
  }
  return table;
}

}  // namespace zeus::replay::paper
