#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "zeus/replay/paper/configurations.h"
#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/evaluation_figures.h"

// Where policies look: figures 8, 20 and 21.
namespace zeus::replay::paper {
namespace {

using report::Mark;
using report::Panel;
using report::Series;

std::vector<Watts> LimitsOf(const ReplayJob& job) {
  std::set<Watts> limits;
  for (const ReplayArm& arm : job.arms)
    for (const LimitRecord& record : arm.limits) limits.insert(record.limit);
  return {limits.begin(), limits.end()};
}

std::size_t PlaceOf(std::span<const Watts> limits, Watts limit) {
  return static_cast<std::size_t>(std::ranges::find(limits, limit) - limits.begin());
}

// What a run is expected to cost in each configuration: 1 and its regret. None where the target is
// not always reached.
report::HeatMap CostMap(const ReplayJob& job, std::span<const Watts> limits) {
  report::HeatMap map{.title = "cost, of the oracle's", .logarithmic = true};
  map.values.assign(limits.size() * job.arms.size(), std::numeric_limits<double>::quiet_NaN());
  for (const Configuration& configuration : FeasibleConfigurations(job)) {
    const std::size_t row = PlaceOf(limits, configuration.limit);
    const std::size_t column = job.IndexOf(configuration.batch_size);
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
Series PathOf(const MatchResult& result, std::span<const Watts> limits) {
  const std::string& name = result.match.contender.name;
  Series path{.name = "search of " + name, .role = name, .mark = Mark::kPath};
  for (auto step = result.path.begin(); step != result.path.end();) {
    const auto next = std::find_if(step, result.path.end(), [&](const SearchStep& other) {
      return other.batch_size != step->batch_size || other.limit != step->limit;
    });
    path.x.push_back(static_cast<double>(result.match.job->IndexOf(step->batch_size)));
    path.y.push_back(static_cast<double>(PlaceOf(limits, step->limit)));
    path.labels.push_back(StayLabel(*step, *(next - 1)));
    step = next;
  }
  return path;
}

Panel PathPanel(const MatchResult& result, std::string title) {
  const ReplayJob& job = *result.match.job;
  const std::vector<Watts> limits = LimitsOf(job);
  Panel panel{.title = std::move(title),
              .x = {.title = "batch size"},
              .y = {.title = "power limit (W)"},
              .heat_map = CostMap(job, limits)};
  for (const ReplayArm& arm : job.arms)
    panel.x.categories.push_back(fmt::to_string(arm.batch_size));
  for (const Watts limit : limits) panel.y.categories.push_back(fmt::format("{:g}", limit.value()));
  panel.series.push_back(PathOf(result, limits));
  if (job.HasOracle())
    panel.series.push_back({.name = "oracle",
                            .role = "oracle",
                            .mark = Mark::kPoints,
                            .x = {static_cast<double>(job.IndexOf(job.oracle().batch_size))},
                            .y = {static_cast<double>(PlaceOf(limits, job.oracle().best_limit))}});
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

}  // namespace zeus::replay::paper
