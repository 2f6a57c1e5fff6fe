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

// The first epochs with the optimiser, until it has decided; or at one limit, as many.
struct Beginning {
  int epochs = 0;
  Use use{};
  Watts limit{0};
};

Beginning BeginWithOptimizer(const sim::GpuModel& model, const sim::Workload& workload) {
  SimulatedJob job(model, workload, workload.default_batch_size);
  PowerLimitOptimizer optimizer(job.parts(), {});
  const Use begin{.time = job.time(), .energy = job.energy()};
  const std::uint64_t steps = sim::StepsPerEpoch(workload, workload.default_batch_size);
  Beginning result;
  for (; !optimizer.done(); ++result.epochs) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      optimizer.OnStepBegin();
      job.Step();
    }
    optimizer.OnEpochEnd();
  }
  result.use = {.time = job.time() - begin.time, .energy = job.energy() - begin.energy};
  result.limit = std::get<Watts>(optimizer.profile().points[*optimizer.best()].setting);
  return result;
}

Use BeginAt(const sim::GpuModel& model, const sim::Workload& workload, Watts limit, int epochs) {
  SimulatedJob job(model, workload, workload.default_batch_size);
  (void)job.gpu().SetPowerLimit(limit);
  for (int i = 0; i < 10; ++i) job.Step();  // Until the limit has taken effect.
  const Use begin{.time = job.time(), .energy = job.energy()};
  const std::uint64_t steps = sim::StepsPerEpoch(workload, workload.default_batch_size);
  for (std::uint64_t i = 0; i < steps * static_cast<std::uint64_t>(epochs); ++i) job.Step();
  return {.time = job.time() - begin.time, .energy = job.energy() - begin.energy};
}

std::string Percent(const Use& use, const Use& base) {
  return fmt::format("{:+.3f} / {:+.3f}", 100 * (use.time / base.time - 1),
                     100 * (use.energy / base.energy - 1));
}

void PrintOverhead(const char* name, const char* paper) {
  const sim::GpuModel& model = *sim::FindGpuModel("V100").value();
  const sim::Workload& workload = *sim::FindWorkload(name).value();
  const Beginning jit = BeginWithOptimizer(model, workload);
  const Use best = BeginAt(model, workload, jit.limit, jit.epochs);
  const Use most = BeginAt(model, workload, model.limit_range.max, jit.epochs);
  const double epochs =
      std::round(sim::MeanEpochsToTarget(workload, workload.default_batch_size).value_or(1));
  // The other epochs are like those at the same limit that were simulated.
  const double more = epochs / jit.epochs - 1;
  const auto job = [&](const Use& beginning, const Use& rest) {
    return Use{.time = beginning.time + more * rest.time,
               .energy = beginning.energy + more * rest.energy};
  };
  fmt::print("| {} | {:.0f} | {:.0f} | {:.0f} | {} | {} | {} | {} |\n", name,
             best.time.count() / jit.epochs, epochs, jit.limit.value(), Percent(jit.use, best),
             Percent(job(jit.use, best), job(best, best)),
             Percent(job(jit.use, best), job(most, most)), paper);
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
