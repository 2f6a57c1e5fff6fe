#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "zeus/budget/testing/cluster_simulation.h"
#include "zeus/device/sim/workload.h"
#include "zeus/optimizer/budget/solver.h"

// The simulated cluster with recorded jobs on its GPUs: power and time under every limit are those
// of the workload catalogue.
namespace zeus::budget {
namespace budget_physics_test {
namespace {

using namespace std::chrono_literals;
using namespace literals;

class CatalogueJobs {
 public:
  CatalogueJobs(std::size_t gpus, std::uint64_t seed) : random_(seed), job_of_(gpus) {
    model_ = sim::FindGpuModel("V100").value();
    for (const sim::Workload& workload : sim::Workloads()) {
      std::vector<water_filling::CurveSample> samples;
      for (Watts limit = model_->limit_range.min; limit <= model_->limit_range.max; limit += 25_W) {
        const auto point = Predict(workload, limit);
        samples.push_back(
            {.limit = limit, .time = point.time_per_epoch, .draw = point.average_power});
      }
      auto curve = water_filling::PowerCurve::FromSamples(samples);
      EXPECT_TRUE(curve.ok());
      curves_.push_back(
          std::make_shared<const water_filling::PowerCurve>(std::move(curve).value()));
    }
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) Replace(gpu);
  }

  Watts Draw(std::size_t gpu, Watts cap) {
    const std::size_t job = job_of_[gpu];
    if (job == sim::Workloads().size()) return model_->idle_power;
    // The same questions come again and again.
    const auto [found, added] = drawn_.try_emplace({job, cap.value()});
    if (added) found->second = Predict(sim::Workloads()[job], cap).average_power;
    return found->second;
  }

  // Some jobs end, others begin, and the watts go where they bring most speed.
  void Choose(GrantBook& book, TimePoint now) {
    for (std::size_t i = 0; i < 1 + job_of_.size() / 100; ++i)
      Replace(random_.Below(job_of_.size()));
    water_filling::Problem problem;
    for (std::size_t i = 0; i < book.domains().size(); ++i)
      problem.domains.push_back({.name = book.domains()[i].name,
                                 .parent = book.domains()[i].parent,
                                 .watts = book.limit(i)});
    std::vector<std::pair<std::string, std::string>> devices;
    for (const GrantBook::NodeView& node : book.View(now)) {
      if (node.silent) {
        for (std::size_t i = 0; i < problem.domains.size(); ++i)
          if (book.IsIn(node.domain, i)) problem.domains[i].reserved += node.committed;
        continue;
      }
      for (const GrantBook::DeviceView& device : node.devices) {
        const std::size_t job = job_of_[devices_of_.at(device.id)];
        const bool idle = job == curves_.size();
        water_filling::Job one{.name = device.id,
                               .curve = curves_[idle ? 0 : job],
                               .placements = {{.domain = node.domain, .gpus = 1}},
                               .lowest = device.lowest,
                               .highest = device.highest};
        if (idle) one.weight = 1e-6;
        problem.jobs.push_back(std::move(one));
        devices.emplace_back(node.name, device.id);
      }
    }
    if (problem.jobs.empty()) return;
    const auto allocation = water_filling::Solve(problem);
    ASSERT_TRUE(allocation.ok()) << allocation.error().message;
    for (std::size_t i = 0; i < devices.size(); ++i)
      book.Want(devices[i].first, devices[i].second, allocation.value().jobs[i].limit);
  }

  // Names of devices as the simulation gives them.
  void NameDevices(std::size_t nodes, std::size_t gpus) {
    for (std::size_t n = 0; n < nodes; ++n)
      for (std::size_t g = 0; g < gpus; ++g)
        devices_of_[fmt::format("GPU-{}-{}", n, g)] = n * gpus + g;
  }

 private:
  sim::OperatingPoint Predict(const sim::Workload& workload, Watts limit) const {
    const auto point = sim::Predict(*model_, workload, workload.default_batch_size,
                                    {.power_limit = limit, .clock_cap = {}});
    EXPECT_TRUE(point.ok()) << (point.ok() ? "" : point.error().message);
    return point.value();
  }
  void Replace(std::size_t gpu) { job_of_[gpu] = random_.Below(sim::Workloads().size() + 1); }

  Random random_;
  const sim::GpuModel* model_ = nullptr;
  std::vector<std::size_t> job_of_;  // The number of the workload; the last one is none.
  std::vector<water_filling::SharedCurve> curves_{};
  std::map<std::pair<std::size_t, double>, Watts> drawn_{};
  std::map<std::string, std::size_t> devices_of_{};
};

ClusterSimulation::Outcome RunCluster(ClusterSimulation::Options options) {
  CatalogueJobs jobs(options.nodes * options.gpus, options.seed);
  jobs.NameDevices(options.nodes, options.gpus);
  options.highest = {250_W};
  options.between_looks = 0.1s;
  options.draw = [&jobs](std::size_t gpu, Watts cap) { return jobs.Draw(gpu, cap); };
  options.choose = [&jobs](GrantBook& book, TimePoint now) { jobs.Choose(book, now); };
  return ClusterSimulation(std::move(options)).Run();
}

TEST(ClusterPhysicsTest, OfFiveHundredGpusALowerBudgetHoldsWithinFiveSeconds) {
  const auto outcome = RunCluster(
      {.seed = 3, .racks = 8, .nodes = 64, .gpus = 8, .duration = 60s, .between_budgets = 15s});
  EXPECT_THAT(outcome.violations, testing::IsEmpty());
  EXPECT_GT(outcome.budget_falls, 2U);
  EXPECT_LT(outcome.slowest_fall, 5s);
  fmt::print(
      "512 GPUs, {} events: the slowest of {} falls held after {:.1f} s; {:.0f} % of the "
      "budget granted; highest draw {:.0f} W above 101 %\n",
      outcome.events, outcome.budget_falls, outcome.slowest_fall.count(), 100 * outcome.share_used,
      outcome.highest_over.value());
}

TEST(ClusterPhysicsTest, OfTwoThousandGpusNoTrueDrawExceedsTheBudgetInTrouble) {
  const auto outcome = RunCluster({.seed = 4,
                                   .racks = 16,
                                   .nodes = 256,
                                   .gpus = 8,
                                   .duration = 30s,
                                   .dangers = {.lost = 0.05,
                                               .doubled = 0.05,
                                               .late = 0.02,
                                               .between_partitions = 300s,
                                               .between_node_crashes = 300s,
                                               .crash_at_step = 0.0002,
                                               .store_fails = 0.05},
                                   .between_budgets = 20s});
  EXPECT_THAT(outcome.violations, testing::IsEmpty());
  EXPECT_GT(outcome.raises, 2000U);
  fmt::print("2048 GPUs, {} events, {} starts of servers, {} of nodes: {} violations\n",
             outcome.events, outcome.server_starts, outcome.node_starts, outcome.violations.size());
}

}  // namespace
}  // namespace budget_physics_test
}  // namespace zeus::budget
