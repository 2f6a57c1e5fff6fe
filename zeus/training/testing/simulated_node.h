#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "zeus/base/stepped_clock.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::testing {

// A job on a node of simulated GPUs in virtual time: each step waits for all of them.
class SimulatedNode {
 public:
  struct Job {
    const char* workload = "shufflenet";
    unsigned batch_size = 1024;
  };

  explicit SimulatedNode(const std::vector<const char*>& models, const Job& job) {
    Node node;
    for (const char* const model : models) {
      const auto index = static_cast<unsigned>(gpus_.size());
      auto gpu = std::make_unique<sim::SimulatedGpu>(
          clock_, sim::testing::Model(model),
          sim::SimulatedGpu::Options{.seed = index + 1, .index = index});
      loads_.push_back(gpu->AttachLoad(sim::testing::Train(job.workload, job.batch_size)).value());
      gpus_.push_back(gpu.get());
      node.gpus.push_back(std::move(gpu));
    }
    monitor_ =
        NodeMonitor::Open(clock_, std::move(node), {.thread = false, .share = false}).value();
    clock_.Run([this] { return monitor_->monitor().Step(); });
    clock_.Advance(Seconds(5));
    for (std::size_t i = 0; i < gpus_.size(); ++i) done_.push_back(Done(i));
  }

  void Step() {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      done_[i] += 1;
      while (done_[i] - Done(i) > 1e-9)
        clock_.Advance((done_[i] - Done(i)) * gpus_[i]->StepTime(loads_[i]).value());
    }
    // A GPU that was done earlier has waited; its work in that time is no step of the job.
    for (std::size_t i = 0; i < gpus_.size(); ++i) done_[i] = std::max(done_[i], Done(i));
  }

  SteppedClock& clock() { return clock_; }
  NodeMonitor& monitor() { return *monitor_; }
  sim::SimulatedGpu& gpu(std::size_t i) { return *gpus_[i]; }
  Watts limit(std::size_t i) { return gpus_[i]->CurrentPowerLimit().value().requested; }

 private:
  double Done(std::size_t i) { return gpus_[i]->StepsDone(loads_[i]).value(); }

  SteppedClock clock_;
  std::vector<sim::SimulatedGpu*> gpus_;
  std::vector<std::uint32_t> loads_;
  std::vector<double> done_;
  std::unique_ptr<NodeMonitor> monitor_;
};

}  // namespace zeus::testing
