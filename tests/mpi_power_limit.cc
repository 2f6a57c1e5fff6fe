#include "tests/mpi_power_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/simulated_job.h"

namespace zeus {
namespace {

struct Decision {
  Profile profile;
  std::size_t best;
};

// Boards differ by their seed; the last rank has twice the work in a step.
Result<Decision> Optimize(int rank, int size, Collective& ranks) {
  ZEUS_TRY(const auto* model, sim::FindGpuModel("V100"));
  ZEUS_TRY(const auto* workload, sim::FindWorkload("resnet50"));
  const unsigned batch_size = workload->default_batch_size * (rank == size - 1 ? 2 : 1);
  bench::SimulatedJob job(*model, *workload, batch_size, static_cast<std::uint64_t>(rank + 1));
  const auto parts = job.parts();
  PowerLimitOptimizer optimizer({parts.clock, parts.knob, parts.meter, ranks},
                                {.rule = SliceRule::BySteps()});
  while (!optimizer.done()) {
    optimizer.OnStepBegin();
    job.Step();
  }
  if (optimizer.trouble()) return *optimizer.trouble();
  if (!optimizer.best()) return Error{ErrorCode::kInternal, "it is done and has not decided"};
  ZEUS_TRY(const PowerLimit limit, job.gpu().CurrentPowerLimit());
  const Decision decision{optimizer.profile(), *optimizer.best()};
  if (Setting(limit.enforced) == decision.profile.points[decision.best].setting) return decision;
  return Error{ErrorCode::kInternal, "the limit that was chosen is not in force"};
}

void Print(const Decision& decision) {
  fmt::print("chosen {} of {} max_power {:.0f}",
             ToText(decision.profile.points[decision.best].setting), decision.profile.points.size(),
             decision.profile.max_power.value());
  for (const ProfilePoint& point : decision.profile.points)
    fmt::print(" {:.9g}:{:.9g}", point.energy_per_step.value(), point.time_per_step.count());
  fmt::print("\n");
}

// Energies add up, the slowest gives the time (Zeus §6.6).
void Add(const Profile& one, Profile& sum) {
  sum.max_power += one.max_power;
  for (std::size_t i = 0; i < sum.points.size(); ++i) {
    ProfilePoint& point = sum.points[i];
    const ProfilePoint& other = one.points[i];
    point.energy_per_step += other.energy_per_step;
    point.energy_sigma = Joules(std::hypot(point.energy_sigma.value(), other.energy_sigma.value()));
    if (other.time_per_step < point.time_per_step) continue;
    point.time_per_step = other.time_per_step;
    point.time_sigma = other.time_sigma;
  }
}

}  // namespace

Status OptimizePowerLimit(Collective& ranks) {
  ZEUS_TRY(const Decision decision, Optimize(ranks.rank(), ranks.size(), ranks));
  Print(decision);
  return Ok();
}

Status OptimizeSummedProfiles(int ranks) {
  SingleProcess alone;
  ZEUS_TRY(Decision sum, Optimize(0, ranks, alone));
  for (int rank = 1; rank < ranks; ++rank) {
    ZEUS_TRY(const Decision one, Optimize(rank, ranks, alone));
    if (one.profile.points.size() != sum.profile.points.size())
      return Error{ErrorCode::kInternal, "the GPUs have different limits"};
    Add(one.profile, sum.profile);
  }
  ZEUS_TRY(sum.best, ZeusCost(0.5).select(sum.profile));
  Print(sum);
  return Ok();
}

}  // namespace zeus
