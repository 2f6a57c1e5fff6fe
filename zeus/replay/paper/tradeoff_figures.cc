#include <fmt/format.h>

#include <algorithm>

#include "zeus/replay/paper/configurations.h"
#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/motivation_figures.h"

// Energy against time: figures 2, 11 and 16.
namespace zeus::replay::paper {
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

}  // namespace zeus::replay::paper
