#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/optimizer/power_limit/selector.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/progress.h"
#include "zeus/session/train_options.h"

namespace zeus {

// The power limit of one run of a foreign command: a PowerLimitOptimizer whose steps are those that
// the command prints, or its epochs. Limits that earlier runs with the same batch size measured are
// not measured again, and the next run measures what this one could not. Nothing that goes wrong
// stops the run: the limit is restored, and trouble() has the reason. One owner.
class RunPowerLimit {
 public:
  struct Parts {
    Clock& clock;
    ProfiledDevices& devices;
    ProgressSeries* progress;  // Null when the command reports epochs only.
  };
  struct Run {
    std::string job{};
    int batch_size = 0;
    double eta = 0.5;
  };

  // The parts and the plan must outlive it.
  RunPowerLimit(const Parts& parts, const LimitPlan& plan, Run run);
  ~RunPowerLimit() { End(); }
  RunPowerLimit(const RunPowerLimit&) = delete;
  RunPowerLimit& operator=(const RunPowerLimit&) = delete;

  // Call it before the command is started.
  void Begin();
  // Does what is due and returns when to call it again.
  TimePoint Poll();
  void EpochEnded();
  // Epochs have ended at an unknown time.
  void EpochsLumped();
  // Marks the measurements of this run as useless: none is kept.
  void Forget() { worthless_ = true; }
  // Call it when the command has ended: restores the limit and keeps what was learned.
  void End();

  // Whether the limit does not change any more in this run.
  bool limit_is_final() const;
  std::optional<Watts> in_force();
  // Time and energy of an epoch at the chosen limit, or at the best one so far. nullopt where
  // slices are shorter than epochs.
  std::optional<ProfilePoint> EpochAtBest();
  const std::optional<Error>& trouble() const { return trouble_; }
  // Whether the limit could not be restored: trouble() has the reason.
  bool left_changed() const { return left_changed_; }
  // Whether the limit was changed at all in this run.
  bool turned() const { return turned_; }
  std::optional<Setting> chosen() const;

 private:
  Selector Objective() const;
  Status Prepare();
  Status StartSearch(std::vector<Setting> settings);
  // Takes over the result of a search that is done.
  void NoteEnd();
  void Fail(const Error& error);
  void Restore();
  Status Keep() const;
  // Turns the limit with carbon or price, if that is wanted.
  void Follow();
  ProfileContext Context() const;
  Profile Merged() const;

  Parts parts_;
  const LimitPlan& plan_;
  Run run_;
  std::vector<Setting> wanted_;
  Profile known_;  // Before this run.
  std::optional<Setting> ceiling_;
  SingleProcess alone_;
  std::unique_ptr<PowerLimitOptimizer> search_;
  std::optional<Setting> chosen_;
  std::optional<MonitorSliceMeter> follow_meter_{};  // Begun with the first limit that followed.
  TimePoint next_follow_{};
  bool searched_ = false;  // Something was measured in this run.
  bool left_changed_ = false;
  bool turned_ = false;
  bool worthless_ = false;
  bool noted_ = false;
  bool ended_ = false;
  std::optional<Error> trouble_;
};

}  // namespace zeus
