// Checks whether the power limit that is found just in time is the right one, and measures what
// finding it costs: every workload of the catalogue on every GPU it was recorded on, in virtual
// time, measured through simulated sensors and compared with the truth of the simulation. Prints
// the tables of docs/power-limit.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/testing/limit_choices.h"
#include "zeus/training/testing/simulated_node.h"

namespace {

using namespace zeus;
using namespace zeus::testing;

void PrintChoices() {
  fmt::print(
      "Chosen limit [W] and excess cost of an epoch [%] over the best limit, by exhaustive\n"
      "simulation of all limits that were tried (of all whole watts).\n\n");
  fmt::print("| GPU | workload |");
  for (const double eta : kEtas) fmt::print(" eta {:g} |", eta);
  fmt::print(" profiling [s] |\n|---|---|");
  for (std::size_t i = 0; i < kEtas.size(); ++i) fmt::print("---|");
  fmt::print("---|\n");
  ExcessCost worst;
  for (const char* const gpu : kRecordedGpuModels) {
    const sim::GpuModel& model = *sim::FindGpuModel(gpu).value();
    for (const sim::Workload& workload : sim::Workloads()) {
      const LimitChoices row = ChooseLimits(model, workload);
      fmt::print("| {} | {} |", gpu, workload.name);
      for (std::size_t i = 0; i < kEtas.size(); ++i) {
        const ExcessCost& excess = row.excess[i];
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

  Use operator-(const Use& other) const {
    return {.time = time - other.time, .energy = energy - other.energy};
  }
};

Use UseSoFar(SimulatedNode& node) {
  return {.time = node.clock().Now().time_since_epoch(), .energy = node.gpu(0).ExactEnergy()};
}

// The first epochs: with the optimiser until it has decided, or as many at a fixed limit.
struct Beginning {
  int epochs = 0;
  Use use{};
  Watts limit{0};
};

Beginning BeginWithOptimizer(const sim::GpuModel& model, const sim::Workload& workload,
                             double eta) {
  SimulatedNode node({model.id.data()}, MakeJob(workload));
  GlobalPowerLimitOptimizer optimizer(node.monitor(), ZeusCost(eta));
  const Use begin = UseSoFar(node);
  const std::uint64_t steps = sim::StepsPerEpoch(workload, workload.default_batch_size);
  Beginning result;
  for (; !optimizer.done(); ++result.epochs) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      optimizer.OnStepBegin();
      node.Step();
    }
    optimizer.OnEpochEnd();
  }
  result.use = UseSoFar(node) - begin;
  result.limit = std::get<Watts>(optimizer.chosen().front());
  return result;
}

Use BeginAt(const sim::GpuModel& model, const sim::Workload& workload, Watts limit, int epochs) {
  SimulatedNode node({model.id.data()}, MakeJob(workload));
  (void)node.gpu(0).SetPowerLimitWithoutJournal(limit);
  for (int i = 0; i < 10; ++i) node.Step();  // The limit takes effect meanwhile.
  const Use begin = UseSoFar(node);
  const std::uint64_t steps = sim::StepsPerEpoch(workload, workload.default_batch_size);
  for (std::uint64_t i = 0; i < steps * static_cast<std::uint64_t>(epochs); ++i) node.Step();
  return UseSoFar(node) - begin;
}

std::string Percent(const Use& use, const Use& base) {
  return fmt::format("{:+.3f} / {:+.3f}", 100 * (use.time / base.time - 1),
                     100 * (use.energy / base.energy - 1));
}

void PrintOverhead(const char* name, double eta, const char* paper) {
  const sim::GpuModel& model = *sim::FindGpuModel("V100").value();
  const sim::Workload& workload = *sim::FindWorkload(name).value();
  const Beginning jit = BeginWithOptimizer(model, workload, eta);
  const Use best = BeginAt(model, workload, jit.limit, jit.epochs);
  const Use most = BeginAt(model, workload, model.limit_range.max, jit.epochs);
  const double epochs =
      std::round(sim::MeanEpochsToTarget(workload, workload.default_batch_size).value_or(1));
  // The remaining epochs are assumed to equal the simulated ones at the same limit.
  const double more = epochs / jit.epochs - 1;
  const auto job = [&](const Use& beginning, const Use& rest) {
    return Use{.time = beginning.time + more * rest.time,
               .energy = beginning.energy + more * rest.energy};
  };
  fmt::print("| {} | {:g} | {:.0f} | {:.0f} | {:.0f} | {} | {} | {} | {} |\n", name, eta,
             best.time.count() / jit.epochs, epochs, jit.limit.value(), Percent(jit.use, best),
             Percent(job(jit.use, best), job(best, best)),
             Percent(job(jit.use, best), job(most, most)), paper);
}

}  // namespace

int main() {
  PrintChoices();
  fmt::print(
      "\nCost of profiling just in time on a V100: time / energy in percent, until the limit is\n"
      "decided on and over the whole job.\n\n"
      "| workload | eta | epoch [s] | epochs | limit [W] | until decided, against the best limit "
      "from the start | job, against the best limit from the start | job, against never profiling "
      "(250 W) | paper: job against the best limit |\n|---|---|---|---|---|---|---|---|---|\n");
  PrintOverhead("deepspeech2", 0.5, "+0.03 / +0.01");
  PrintOverhead("deepspeech2", 1, "");
  PrintOverhead("shufflenet", 0.5, "+0.6 / -2.8");
  PrintOverhead("shufflenet", 1, "");
}
