#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/training/callback.h"

namespace zeus {

struct JitOptions {
  // One after the other, each with the best setting of those before it.
  std::vector<KnobKind> knobs{KnobKind::kGpuPowerLimit};
  OptimizerMode mode = OptimizerMode::kOptimize;
  SliceRule rule{};
  std::optional<Setting> stride{};  // Of the first knob.
  std::vector<Setting> settings{};  // Of the first knob, instead of a stride.
  std::string job{};  // A profile of the same job is used again, if there is a folder.
  unsigned batch_size = 0;
  std::filesystem::path profiles{};      // Folder of profiles; none are kept when it is empty.
  std::filesystem::path profile_file{};  // Or one file, as the reference implementation has it.
  Collective* collective = nullptr;      // Of the ranks that train together; null for one process.
};

// What a job used, and would have used at the best setting (Zeus §5).
struct SavingsReport {
  struct Amount {
    double value;
    double sigma;
  };
  std::int64_t steps = 0;
  Setting original{};
  Setting best{};
  Amount time_seconds{};
  Amount energy_joules{};
  Amount time_at_best_seconds{};
  Amount energy_at_best_joules{};
};

// Optimises the GPUs of a monitor while a job trains: same setting on all, energy summed, time
// maximum (Zeus §6.6). Composed of PowerLimitOptimizers, knobs that are journalled and restored, a
// meter over the monitor, and a folder of profiles. One owner; the monitor must outlive it.
class GlobalPowerLimitOptimizer final : public TrainingCallback {
 public:
  explicit GlobalPowerLimitOptimizer(NodeMonitor& monitor, Selector selector = ZeusCost(0.5),
                                     JitOptions options = {});
  ~GlobalPowerLimitOptimizer() override;

  void OnTrainBegin() override;
  void OnEpochBegin(std::int64_t epoch) override;
  void OnStepBegin() override;
  void OnStepEnd() override {}
  void OnEpochEnd(std::int64_t epoch) override;
  void OnTrainEnd() override;  // Restores the knobs.

  bool done() const;
  // Of the knobs that were profiled, in order.
  std::vector<Profile> profiles() const;
  // The settings that were chosen, in the order of the knobs; empty in observer mode.
  std::vector<Setting> chosen() const;
  // Why nothing is being optimised; nullopt if it is.
  std::optional<Error> trouble() const;
  Result<SavingsReport> Report();

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace zeus
