#include "studies/paper/evaluation_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "studies/paper/configurations.h"
#include "studies/paper/drawing.h"
#include "studies/paper/study.h"

// Figures 6, 14 and 23 show where policies converge to.
namespace zeus::replay::paper {

// --- The last five recurrences ---

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

// --- Regret ---

// How much is spent on learning: figures 7 and 19.

namespace {

using report::Mark;
using report::Panel;
using report::Series;

constexpr double kLowShare = 0.1;  // Share of the seeds below the band, and above it.

// Cumulative regret after each recurrence: the mean over the seeds, and where most of them lie. On
// a logarithmic axis only the mean: a lucky seed's regret may be negative.
void AddCurve(Panel& panel, const MatchResult& result) {
  const std::string& name = result.match.contender.name;
  Series band{.name = name + ", 80 % of the seeds", .role = name, .mark = Mark::kArea};
  Series line{.name = name, .role = name, .mark = Mark::kLine};
  for (std::size_t t = 0; t < result.regret.front().size(); ++t) {
    std::vector<double> values;
    for (const std::vector<double>& seed : result.regret) values.push_back(seed[t]);
    const double mean = zeus::Summarize(values).mean;
    if (panel.y.logarithmic && mean <= 0.0) continue;
    for (Series* const series : {&band, &line}) {
      series->x.push_back(static_cast<double>(t + 1));
      series->y.push_back(mean);
    }
    band.low.push_back(Quantile(values, kLowShare));
    band.high.push_back(Quantile(values, 1 - kLowShare));
  }
  if (!panel.y.logarithmic) panel.series.push_back(std::move(band));
  panel.series.push_back(std::move(line));
}

enum class Scale { kLinear, kLogarithmic };

Panel RegretPanel(const Study& study, std::size_t workload, Scale scale) {
  Panel panel{.title = study.usual_jobs()[workload].title,
              .x = {.title = "recurrence"},
              .y = {.title = "cumulative regret (costs of the oracle)",
                    .logarithmic = scale == Scale::kLogarithmic}};
  if (!study.usual_jobs()[workload].HasOracle()) return panel;
  for (const WorkloadResults& contender : study.usual().contenders)
    AddCurve(panel, contender.workloads[workload]);
  return panel;
}

}  // namespace

report::Figure RegretFigure(const Study& study) {
  report::Figure figure{
      .id = "figure-7",
      .title = "Figure 7: Cumulative regret of DeepSpeech2 and ResNet-50",
      .caption =
          "Grid search pays for its exploration many times over; knowledge_gradient pays "
          "least and is the first to stop paying."};
  for (std::size_t i = 0; i < study.usual_jobs().size(); ++i) {
    const std::string& label = study.usual_jobs()[i].label;
    if (label == "deepspeech2" || label == "resnet50")
      figure.panels.push_back(RegretPanel(study, i, Scale::kLinear));
  }
  return figure;
}

report::Figure RegretsFigure(const Study& study) {
  report::Figure figure{
      .id = "figure-19",
      .title = "Figure 19: Cumulative regret of all workloads",
      .caption =
          "The order is the same everywhere, over several orders of magnitude (logarithmic "
          "axis)."};
  for (std::size_t i = 0; i < study.usual_jobs().size(); ++i)
    figure.panels.push_back(RegretPanel(study, i, Scale::kLogarithmic));
  return figure;
}

report::Table SettingsTable(const Study& study) {
  report::Table table{
      .id = "table-settings",
      .title = "All settings",
      .caption =
          "Energy and time of the last five recurrences of the default's, cumulative regret "
          "of 2|B||P| recurrences in costs of the oracle (mean ± standard error over the "
          "seeds), and the share of seeds that end at the oracle's knobs.",
      .columns = {"GPU", "workload", "recurrences", "oracle", "policy", "energy", "time", "cost",
                  "regret of 50", "regret", "±", "at oracle"}};
  for (std::size_t gpu = 0; gpu < study.gpus.size(); ++gpu) {
    for (std::size_t i = 0; i < study.gpus[gpu].size(); ++i) {
      const ReplayJob& job = study.gpus[gpu][i];
      for (const WorkloadResults& contender : study.settings[gpu].contenders) {
        const MatchResult& result = contender.workloads[i];
        const SampleSummary regret = Mean(result, &ReplaySummary::regret);
        const auto mean = [&](double ReplaySummary::*figure, int decimals) {
          return NumberCell(Mean(result, figure).mean, decimals);
        };
        table.rows.push_back(
            {{.text = GpuTitle(job.gpu_model)},
             {.text = job.title},
             NumberCell(job.recurrences(), 0),
             {.text = Knobs(job.oracle().batch_size, job.oracle().best_limit)},
             {.text = contender.name},
             mean(&ReplaySummary::last_five_energy, 3),
             mean(&ReplaySummary::last_five_time, 3),
             mean(&ReplaySummary::last_five_cost, 3),
             mean(&ReplaySummary::regret_of_50, 2),
             NumberCell(regret.mean, 2),
             NumberCell(regret.StandardError(), 2),
             PercentCell(static_cast<double>(std::ranges::count(result.ends_at_oracle, true)) /
                         static_cast<double>(result.ends_at_oracle.size()))});
      }
    }
  }
  return table;
}

// --- Where the searches went ---

// Where policies look: figures 8, 20 and 21.

namespace {

using report::Mark;
using report::Panel;
using report::Series;

std::vector<Watts> ListLimits(const ReplayJob& job) {
  std::set<Watts> limits;
  for (const ReplayArm& arm : job.arms)
    for (const LimitRecord& record : arm.limits) limits.insert(record.limit);
  return {limits.begin(), limits.end()};
}

std::size_t IndexOfLimit(std::span<const Watts> limits, Watts limit) {
  return static_cast<std::size_t>(std::ranges::find(limits, limit) - limits.begin());
}

// The expected cost of a run in each configuration: 1 and its regret. Empty where the target is not
// always reached.
report::HeatMap CostMap(const ReplayJob& job, std::span<const Watts> limits) {
  report::HeatMap map{.title = "cost, of the oracle's", .logarithmic = true};
  map.values.assign(limits.size() * job.arms.size(), std::numeric_limits<double>::quiet_NaN());
  for (const Configuration& configuration : FeasibleConfigurations(job)) {
    const std::size_t row = IndexOfLimit(limits, configuration.limit);
    const std::size_t column = job.FindArmIndex(configuration.batch_size);
    map.values[row * job.arms.size() + column] = configuration.usage.cost / job.OracleCost();
  }
  return map;
}

std::string StayLabel(const SearchStep& first, const SearchStep& last) {
  const std::string knobs = Knobs(first.batch_size, first.limit);
  if (first.recurrence != last.recurrence)
    return fmt::format("recurrences {} to {}: {}", first.recurrence + 1, last.recurrence + 1,
                       knobs);
  return fmt::format("recurrence {}: {}{}", first.recurrence + 1, knobs,
                     last.converged ? "" : ", not reached");
}

// A point for each stay at the same knobs.
Series DrawPath(const MatchResult& result, std::span<const Watts> limits) {
  const std::string& name = result.match.contender.name;
  Series path{.name = "search of " + name, .role = name, .mark = Mark::kPath};
  for (auto step = result.path.begin(); step != result.path.end();) {
    const auto next = std::find_if(step, result.path.end(), [&](const SearchStep& other) {
      return other.batch_size != step->batch_size || other.limit != step->limit;
    });
    path.x.push_back(static_cast<double>(result.match.job->FindArmIndex(step->batch_size)));
    path.y.push_back(static_cast<double>(IndexOfLimit(limits, step->limit)));
    path.labels.push_back(StayLabel(*step, *(next - 1)));
    step = next;
  }
  return path;
}

Panel PathPanel(const MatchResult& result, std::string title) {
  const ReplayJob& job = *result.match.job;
  const std::vector<Watts> limits = ListLimits(job);
  Panel panel{.title = std::move(title),
              .x = {.title = "batch size"},
              .y = {.title = "power limit (W)"},
              .heat_map = CostMap(job, limits)};
  for (const ReplayArm& arm : job.arms)
    panel.x.categories.push_back(fmt::to_string(arm.batch_size));
  for (const Watts limit : limits) panel.y.categories.push_back(fmt::format("{:g}", limit.value()));
  panel.series.push_back(DrawPath(result, limits));
  if (job.HasOracle())
    panel.series.push_back(
        {.name = "oracle",
         .role = "oracle",
         .mark = Mark::kPoints,
         .x = {static_cast<double>(job.FindArmIndex(job.oracle().batch_size))},
         .y = {static_cast<double>(IndexOfLimit(limits, job.oracle().best_limit))}});
  return panel;
}

report::Figure PathsFigure(const Study& study, std::string_view contender) {
  report::Figure figure;
  for (const MatchResult& result : study.usual().contender(contender).workloads)
    figure.panels.push_back(PathPanel(result, result.match.job->title));
  return figure;
}

}  // namespace

report::Figure SearchPathFigure(const Study& study) {
  report::Figure figure{
      .id = "figure-8",
      .title = "Figure 8: Search paths on DeepSpeech2",
      .caption =
          "Since power limits are profiled within a run, zeus and knowledge_gradient have "
          "only batch sizes to search, while grid search visits every configuration."};
  for (const char* const name : kContenders)
    for (const MatchResult& result : study.usual().contender(name).workloads)
      if (result.match.job->label == "deepspeech2")
        figure.panels.push_back(PathPanel(result, name));
  return figure;
}

report::Figure ZeusPathsFigure(const Study& study) {
  report::Figure figure = PathsFigure(study, "zeus");
  figure.id = "figure-20";
  figure.title = "Figure 20: Search paths of zeus";
  figure.caption =
      "On every workload zeus tries each batch size that arrives about twice and "
      "then stays near the best configuration.";
  return figure;
}

report::Figure GridPathsFigure(const Study& study) {
  report::Figure figure = PathsFigure(study, "grid");
  figure.id = "figure-21";
  figure.title = "Figure 21: Search paths of grid search";
  figure.caption = "Grid search visits the whole space, and stays where one run was lucky.";
  return figure;
}

// --- Sensitivity ---

// Figures 12, 13 and 22 show the worth of zeus' parameters and parts.

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
void AddLines(Panel& panel, std::span<const WorkloadResults> variants, const RatioFunction& ratio) {
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

Panel AblationPanel(const Study& study, std::string title, const RatioFunction& ratio) {
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

// Says how much the least and the greatest threshold take, beside the usual one.
std::string BetaCaption(const Study& study) {
  const RatioFunction ratio = CumulativeEnergyRatio(study.usual().contender("zeus"));
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
  AddLines(panel, study.betas, CumulativeEnergyRatio(study.usual().contender("zeus")));
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
          .panels = {AblationPanel(study, "energy", CumulativeEnergyRatio(whole)),
                     AblationPanel(study, "time", CumulativeTimeRatio(whole))}};
}

report::Figure EtaFigure(const Study& study) {
  Panel energy{.title = "energy",
               .x = {.title = "priority of energy η"},
               .y = {.title = "improvement factor of energy"}};
  AddLines(energy, study.etas, ImprovementRatio(&ReplaySummary::last_five_energy));
  Panel time{.title = "time",
             .x = {.title = "priority of energy η"},
             .y = {.title = "improvement factor of time"}};
  AddLines(time, study.etas, ImprovementRatio(&ReplaySummary::last_five_time));
  return {.id = "figure-22",
          .title = "Figure 22: Impact of η on energy and time",
          .caption =
              "The default's energy and time divided by those of zeus: the higher η, the "
              "more energy is saved, and the less time.",
          .panels = {std::move(energy), std::move(time)}};
}

}  // namespace zeus::replay::paper
