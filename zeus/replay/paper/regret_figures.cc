#include <algorithm>

#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/evaluation_figures.h"

// How much is spent on learning: figures 7 and 19.
namespace zeus::replay::paper {
namespace {

using report::Mark;
using report::Panel;
using report::Series;

constexpr double kLowShare = 0.1;  // Of the seeds, below the band and above it.

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

}  // namespace zeus::replay::paper
