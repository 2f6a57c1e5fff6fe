// Whether the limit that is found just in time is the right one, and what finding it costs: every
// workload of the catalogue on every GPU it was recorded on, in virtual time, measured through the
// simulated sensors and judged by the simulation's own truth. Prints the tables of
// docs/power-limit.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "bench/simulated_job.h"

namespace {

using namespace zeus;
using bench::SimulatedJob;

constexpr std::array kGpus = {"V100", "A40", "RTX6000", "P100"};
constexpr std::array kEtas = {0.0, 0.25, 0.5, 0.75, 1.0};

double EpochCost(const sim::GpuModel& model, const sim::Workload& workload, Watts limit,
                 double eta) {
  const auto point = sim::Predict(model, workload, workload.default_batch_size,
                                  {.power_limit = limit, .clock_cap = {}})
                         .value();
  return (eta * point.average_power.value() + (1 - eta) * model.limit_range.max.value()) *
         point.time_per_epoch.count();
}

double CheapestEpoch(const sim::GpuModel& model, const sim::Workload& workload, Watts stride,
                     double eta) {
  double cheapest = EpochCost(model, workload, model.limit_range.min, eta);
  for (Watts limit = model.limit_range.max; limit > model.limit_range.min; limit -= stride)
    cheapest = std::min(cheapest, EpochCost(model, workload, limit, eta));
  return cheapest;
}

// The excess cost of an epoch in percent: over the best of the limits tried, and of any whole watt.
struct Excess {
  double of_tried = 0;
  double of_any = 0;
};

struct Row {
  std::vector<Watts> chosen;
  std::vector<Excess> excess;
  Seconds profiling{0};
};

Row Optimise(const sim::GpuModel& model, const sim::Workload& workload) {
  SimulatedJob job(model, workload, workload.default_batch_size);
  PowerLimitOptimizer optimizer(job.parts(), {});
  const Seconds begin = job.time();
  while (!optimizer.done()) {
    optimizer.OnStepBegin();
    job.Step();
  }
  Row row{.chosen = {}, .excess = {}, .profiling = job.time() - begin};
  for (const double eta : kEtas) {
    const std::size_t best = optimizer.Select(ZeusCost(eta)).value();
    const Watts limit = std::get<Watts>(optimizer.profile().points[best].setting);
    const double cost = EpochCost(model, workload, limit, eta);
    row.chosen.push_back(limit);
    row.excess.push_back(
        {.of_tried = 100 * (cost / CheapestEpoch(model, workload, Watts(25), eta) - 1),
         .of_any = 100 * (cost / CheapestEpoch(model, workload, Watts(1), eta) - 1)});
  }
  return row;
}

void PrintChoices() {
  fmt::print(
      "Chosen limit [W] and excess cost of an epoch [%] over the best limit, by exhaustive\n"
      "simulation of all limits that were tried (of all whole watts).\n\n");
  fmt::print("| GPU | workload |");
  for (const double eta : kEtas) fmt::print(" eta {:g} |", eta);
  fmt::print(" profiling [s] |\n|---|---|");
  for (std::size_t i = 0; i < kEtas.size(); ++i) fmt::print("---|");
  fmt::print("---|\n");
  Excess worst;
  for (const char* const gpu : kGpus) {
    const sim::GpuModel& model = *sim::FindGpuModel(gpu).value();
    for (const sim::Workload& workload : sim::Workloads()) {
      const Row row = Optimise(model, workload);
      fmt::print("| {} | {} |", gpu, workload.name);
      for (std::size_t i = 0; i < kEtas.size(); ++i) {
        const Excess& excess = row.excess[i];
        fmt::print(" {:.0f}: {:.2f} ({:.2f}) |", row.chosen[i].value(), excess.of_tried,
                   excess.of_any);
        worst.of_tried = std::max(worst.of_tried, excess.of_tried);
        worst.of_any = std::max(worst.of_any, excess.of_any);
      }
      fmt::print(" {:.1f} |\n", row.profiling.count());
    }
  }
  fmt::print("\nworst: {:.2f} % over the limits that were tried, {:.2f} % over all whole watts\n",
             worst.of_tried, worst.of_any);
}

struct Use {
  Seconds time{0};
  Joules energy{0};
};

Use OneEpochAt(const sim::GpuModel& model, const sim::Workload& workload, Watts limit) {
  const auto point = sim::Predict(model, workload, workload.default_batch_size,
                                  {.power_limit = limit, .clock_cap = {}})
                         .value();
  return {.time = point.time_per_epoch, .energy = point.average_power * point.time_per_epoch};
}

// Steps of the first epoch with the optimiser, or at one limit from the start.
Use FirstEpoch(const sim::GpuModel& model, const sim::Workload& workload,
               std::optional<Watts> limit, Watts* chosen) {
  SimulatedJob job(model, workload, workload.default_batch_size);
  if (limit) {
    (void)job.gpu().SetPowerLimit(*limit);
    job.Step();  // The limit takes effect a little later.
  }
  std::optional<PowerLimitOptimizer> optimizer;
  if (!limit) optimizer.emplace(job.parts(), PowerLimitOptimizer::Options{});
  const Use begin{.time = job.time(), .energy = job.energy()};
  const std::uint64_t steps = sim::StepsPerEpoch(workload, workload.default_batch_size);
  for (std::uint64_t i = 0; i < steps; ++i) {
    if (optimizer) optimizer->OnStepBegin();
    job.Step();
  }
  if (optimizer) optimizer->OnEpochEnd();
  if (optimizer && optimizer->best())
    *chosen = std::get<Watts>(optimizer->profile().points[*optimizer->best()].setting);
  return {.time = job.time() - begin.time, .energy = job.energy() - begin.energy};
}

void PrintOverhead(const char* name, const char* paper) {
  const sim::GpuModel& model = *sim::FindGpuModel("V100").value();
  const sim::Workload& workload = *sim::FindWorkload(name).value();
  Watts best{0};
  const Use jit = FirstEpoch(model, workload, std::nullopt, &best);
  const Use at_best = FirstEpoch(model, workload, best, nullptr);
  const double epochs =
      std::round(sim::MeanEpochsToTarget(workload, workload.default_batch_size).value_or(1));
  const Use rest = OneEpochAt(model, workload, best);
  const Use at_max = OneEpochAt(model, workload, model.limit_range.max);
  const auto percent = [](double a, double b) { return 100 * (a / b - 1); };
  const double job_time = jit.time.count() + (epochs - 1) * rest.time.count();
  const double job_energy = jit.energy.value() + (epochs - 1) * rest.energy.value();
  const double best_time = at_best.time.count() + (epochs - 1) * rest.time.count();
  const double best_energy = at_best.energy.value() + (epochs - 1) * rest.energy.value();
  fmt::print(
      "| {} | {:.0f} | {:.0f} | {:.0f} | {:+.3f} / {:+.3f} | {:+.3f} / {:+.3f} | "
      "{:+.2f} / {:+.2f} | {} |\n",
      name, rest.time.count(), epochs, best.value(),
      percent(jit.time / Seconds(1), at_best.time / Seconds(1)),
      percent(jit.energy / Joules(1), at_best.energy / Joules(1)), percent(job_time, best_time),
      percent(job_energy, best_energy), percent(job_time, epochs * at_max.time.count()),
      percent(job_energy, epochs * at_max.energy.value()), paper);
}

}  // namespace

int main() {
  PrintChoices();
  fmt::print(
      "\nCost of profiling just in time on a V100, eta 0.5: time / energy in percent.\n\n"
      "| workload | epoch [s] | epochs | limit [W] | first epoch against the optimum from "
      "the start | job against it | job against never profiling (250 W) | paper, job against "
      "the optimum |\n|---|---|---|---|---|---|---|---|\n");
  PrintOverhead("deepspeech2", "+0.03 / +0.01");
  PrintOverhead("shufflenet", "+0.6 / -2.8");
}
