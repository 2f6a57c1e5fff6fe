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
#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/optimizer/power_limit/savings.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/training/callback.h"

namespace zeus {

// One knob for all devices of a job. The monitor must outlive it.
struct JobKnob {
  std::unique_ptr<KnobJournal> journal{};  // Null for simulated devices that end with the process.
  std::unique_ptr<Knob> knob{};

  // Positions in the monitor of the devices whose energy counts.
  std::vector<std::size_t> devices{};

  struct Device {
    std::string name;  // "gpu:0"
    std::string model;
    std::string uuid;  // Empty if it has none.
  };
  std::vector<Device> turned{};  // The devices that the knob sets.
  std::string driver{};
};

// Makes a knob for the GPUs of the monitor, or for its CPU packages, in which case the energy of
// memory counts, too. First it restores settings that killed programs left behind, and logs a
// warning for power limits below their default that have no explanation. The knob does not go above
// `ceiling`, or above what the policy of the machine allows. Returns kNotFound when there is no
// such device; other errors name the device that does not support the knob.
Result<JobKnob> FindJobKnob(KnobKind kind, NodeMonitor& monitor,
                            Ceiling ceiling = Ceiling::kAsFound);

// Makes a knob that always fails with `reason`. A rank without a knob must still take part in the
// collective decisions of its job.
std::unique_ptr<Knob> AbsentKnob(KnobKind kind, Error reason);

// Options of the optimisation during training ("just in time").
struct JitOptions {
  // The knobs are optimised one after the other, each with the best settings of the earlier ones.
  std::vector<KnobKind> knobs{KnobKind::kGpuPowerLimit};
  OptimizerMode mode = OptimizerMode::kOptimize;
  SliceRule rule{};
  // Settings of the first knob; see PowerLimitOptimizer::Options.
  std::vector<Setting> settings{};
  std::optional<Setting> stride{};
  // The highest setting to try. By default a limit below the device's maximum that was found at the
  // start is taken for a cap and not exceeded.
  Ceiling ceiling = Ceiling::kAsFound;

  // Profiles are stored in a folder and used again for the same job, batch size and devices; or in
  // one file, also in the format of the reference implementation. If both are empty, profiles are
  // not stored.
  std::filesystem::path profile_folder{};
  std::filesystem::path profile_file{};
  std::string job{};
  unsigned batch_size = 0;

  // The ranks that train together; null for one process. Each rank's monitor has its own GPUs.
  Collective* collective = nullptr;

  // If not null, measures the slices instead of the monitor, whose devices are set all the same. It
  // must outlive the optimiser.
  SliceMeter* meter = nullptr;

  // Called with every slice that the monitor measured, for logs.
  std::function<void(const Measurement&)> measured{};
};

// Time and energy that a job used, and that it would have used if all its steps had run at the
// original or at the best setting.
struct SavingsReport {
  KnobKind knob = KnobKind::kGpuPowerLimit;
  std::int64_t steps = 0;
  Setting original{};
  Setting best{};
  JobUse used{};
  JobUse at_original{};
  JobUse at_best{};
  // The change from at_original to at_best. Its sigmas are smaller than those of the difference,
  // since the gain of the sensors cancels out.
  JobUse change{};
};

// Returns a sentence such as "175 W instead of 250 W: energy -12.14 ± 0.04 %, time +3.02 ± 0.01 %".
std::string ToText(const SavingsReport& report);

// Optimises the devices of a monitor while a job trains. All devices get the same setting; energies
// are summed, and the slowest device determines the time (Zeus §6.6). Settings are restored on
// every exit that code can observe, and after any other by the next start of Zeus. No failure in it
// stops the training.
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
// Where the user of a scheduler allowed a slowdown (SchedulerWishes), the selector chooses within
// it.
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
  // Restores all settings and stores the profile, even if it is incomplete.
  void OnTrainEnd() override;

  // Whether all knobs are decided.
  bool done() const;
  // The optimiser of the knob that was started last.
  const PowerLimitOptimizer& current() const;
  // Profiles of the knobs that were started so far, in their order; there is always a first one.
  std::size_t profile_count() const;
  const Profile& profile(std::size_t knob = 0) const;
  // The settings that were chosen, in the order of the knobs.
  std::vector<Setting> chosen() const;
  // The reason why a knob is not optimised; nullopt if all are.
  std::optional<Error> trouble() const;
  // Time and energy of the job's devices since training began. All ranks must call it.
  Result<JobUse> Used();
  // Returns a report for each knob that is decided. All ranks must call it.
  Result<std::vector<SavingsReport>> Savings();

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace zeus
