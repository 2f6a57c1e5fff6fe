#include "tests/mpi_power_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

#include "zeus/device/node.h"
#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/testing/simulated_node.h"

namespace zeus {
namespace {

struct Decision {
  Profile profile;
  Setting chosen;
};

// The last rank has twice the work per step.
Result<Decision> Optimize(int rank, int size, Collective& ranks) {
  const unsigned batch_size = rank == size - 1 ? 512 : 256;
  testing::SimulatedNode node({"V100"}, {.workload = "resnet50", .batch_size = batch_size});
  GlobalPowerLimitOptimizer optimizer(node.monitor(), ZeusCost(0.5),
                                      {.rule = SliceRule::BySteps(), .collective = &ranks});
  while (!optimizer.done()) {
    optimizer.OnStepBegin();
    node.Step();
  }
  if (optimizer.trouble()) return *optimizer.trouble();
  const Decision decision{optimizer.profile(), optimizer.chosen().front()};
  if (Setting(node.limit(0)) == decision.chosen) return decision;
  return Error{ErrorCode::kInternal, "the limit that was chosen is not in force"};
}

void Print(const Decision& decision) {
  fmt::print("chosen {} of {} max_power {:.0f}", ToText(decision.chosen),
             decision.profile.points.size(), decision.profile.max_power.value());
  for (const ProfilePoint& point : decision.profile.points)
    fmt::print(" {:.9g}:{:.9g}", point.energy_per_step.value(), point.time_per_step.count());
  fmt::print("\n");
}

// Energies are summed, and the slowest rank determines the time (Zeus §6.6).
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
  ZEUS_TRY(const std::size_t best, ZeusCost(0.5).select(sum.profile));
  sum.chosen = sum.profile.points[best].setting;
  Print(sum);
  return Ok();
}

Status TrainUntilOneIsKilled(Collective& ranks) {
  SystemClock clock;
  Surroundings surroundings = RealSurroundings(clock);
  surroundings.environment = [&ranks, real = surroundings.environment](const std::string& name) {
    return name == "CUDA_VISIBLE_DEVICES" ? std::to_string(ranks.rank()) : real(name);
  };
  ZEUS_TRY(Node node, Discover(surroundings));
  ZEUS_TRY(const auto monitor, NodeMonitor::Open(clock, std::move(node), {.cpus = false}));
  GlobalPowerLimitOptimizer optimizer(*monitor, Energy(),
                                      {.rule = SliceRule::BySteps(0, 1, 3), .collective = &ranks});
  Gpu& gpu = *monitor->node().gpus.front();
  for (;;) {
    optimizer.OnStepBegin();
    if (optimizer.trouble()) return *optimizer.trouble();
    clock.SleepFor(std::chrono::milliseconds(5));
    ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
    if (ranks.rank() != ranks.size() - 1 || limit.requested > Watts(175)) continue;
    fmt::print("killed at {:.0f} W\n", limit.requested.value());
    (void)std::fflush(stdout);
    (void)std::raise(SIGKILL);
  }
}

}  // namespace zeus
