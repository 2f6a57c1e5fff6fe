#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/optimizer/power_limit/savings.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/training/callback.h"

namespace zeus {

struct JitOptions {
  // Optimised one after the other, each with the best setting of those before it in force.
  std::vector<KnobKind> knobs{KnobKind::kGpuPowerLimit};
  OptimizerMode mode = OptimizerMode::kOptimize;
  SliceRule rule{};
  // Of the first knob: see PowerLimitOptimizer::Options.
  std::vector<Setting> settings{};
  std::optional<Setting> stride{};
  // The highest setting: a limit that was found below that of the device is a cap, and kept to.
  Ceiling ceiling = Ceiling::kAsFound;

  // Profiles are kept in a folder and used again for the same job, batch size and devices; or in
  // one file, as by the reference implementation, whose files can be read too. Neither: not kept.
  std::filesystem::path profile_folder{};
  std::filesystem::path profile_file{};
  std::string job{};
  unsigned batch_size = 0;

  // Of the ranks that train together; null for one process. Each rank's monitor has its own GPUs.
  Collective* collective = nullptr;

  // Measures the slices instead of the monitor, whose devices are turned all the same. It must
  // outlive the optimiser.
  SliceMeter* meter = nullptr;

  // Told of every slice that the monitor measured: for logs.
  std::function<void(const Measurement&)> measured{};
};

// What a job used, and would have used had all its steps run as it began or at the best setting.
struct SavingsReport {
  KnobKind knob = KnobKind::kGpuPowerLimit;
  std::int64_t steps = 0;
  Setting original{};
  Setting best{};
  JobUse used{};
  JobUse at_original{};
  JobUse at_best{};
  // From the one to the other. More certain than their difference: the gain of the sensors does
  // not matter.
  JobUse change{};
};

// "175 W instead of 250 W: energy -12.14 ± 0.04 %, time +3.02 ± 0.01 %"
std::string ToText(const SavingsReport& report);

// Optimises the devices of a monitor while a job trains: the same setting on all of them, energies
// summed, time of the slowest (Zeus §6.6). What it changes it puts back, on any exit that code can
// see; a later start repairs the rest. Nothing that goes wrong in it stops the training.
//
//   GlobalPowerLimitOptimizer optimizer(monitor, MaxSlowdownConstraint(1.1));
//   for (…) {
//     optimizer.OnEpochBegin();
//     for (…) {
//       optimizer.OnStepBegin();
//       …
//       optimizer.OnStepEnd();
//     }
//     optimizer.OnEpochEnd();
//   }
//
// One owner; the monitor must outlive it.
class GlobalPowerLimitOptimizer final : public TrainingCallback {
 public:
  explicit GlobalPowerLimitOptimizer(NodeMonitor& monitor, Selector selector = ZeusCost(0.5),
                                     JitOptions options = {});
  ~GlobalPowerLimitOptimizer() override;
  GlobalPowerLimitOptimizer(const GlobalPowerLimitOptimizer&) = delete;
  GlobalPowerLimitOptimizer& operator=(const GlobalPowerLimitOptimizer&) = delete;

  void OnTrainBegin() override;
  void OnEpochBegin(std::int64_t = 0) override {}
  void OnStepBegin() override;
  void OnStepEnd() override {}
  void OnEpochEnd(std::int64_t = 0) override;
  // Puts everything back and keeps what was learned, also of a job that was too short.
  void OnTrainEnd() override;

  // Whether all knobs are decided on.
  bool done() const;
  // The part that is under way: of the knob that was looked at last.
  const PowerLimitOptimizer& current() const;
  // Of the knobs that were looked at so far, in their order; of the first there always is one.
  std::size_t profile_count() const;
  const Profile& profile(std::size_t knob = 0) const;
  // The settings that were decided on, in the order of the knobs.
  std::vector<Setting> chosen() const;
  // Why a knob is not being optimised; nullopt if all are.
  std::optional<Error> trouble() const;
  // Time and energy of the job's devices since training began. With several ranks, all must ask.
  Result<JobUse> Used();
  // For each knob that is decided on. With several ranks, all must ask.
  Result<std::vector<SavingsReport>> Savings();

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace zeus
