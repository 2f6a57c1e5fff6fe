#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/export/append_only_file.h"
#include "zeus/session/train_options.h"

namespace zeus::cli {

// Appends what happens in a session to a file, a JSON line per event, and hands every event on to
// another listener, which must outlive it. A file that cannot be written any more is warned about
// and disturbs nothing else. One owner.
class TrainLog final : public TrainListener {
 public:
  // "-" is standard error.
  static Result<std::unique_ptr<TrainLog>> Open(const std::filesystem::path& file, std::string job,
                                                const Clock& clock, TrainListener& next);

  bool draws() const override { return next_.draws(); }
  void OnStatus(const TrainStatus& status) override;
  void OnOutput() override { next_.OnOutput(); }
  void OnLimitRepaired(const KnobRepair& repair) override;
  void OnDevicesOpened(ProfiledDevices* devices) override { next_.OnDevicesOpened(devices); }
  void OnOrphanEnded(std::int64_t trial) override;
  void OnTrialEnded(const TrialOutcome& outcome) override;
  void OnTargetMissed(unsigned recurrence, unsigned runs) override;
  void OnStartPlanned(const StartAdvice& advice, WallTime now) override;
  void OnShiftTrouble(const Error& reason, bool planned) override;
  void OnShiftJudged(const ShiftReport& report) override;
  void OnFollowed(const FollowReport& report) override;

 private:
  TrainLog(std::unique_ptr<AppendOnlyFile> file, std::string job, const Clock& clock,
           TrainListener& next);
  void Write(const char* event, Json fields);

  const std::unique_ptr<AppendOnlyFile> file_;  // Null: standard error.
  FailureNotice notice_;
  const std::string job_;
  const Clock& clock_;
  TrainListener& next_;
  TrainStatus written_{};  // The status of the latest line about an epoch.
};

}  // namespace zeus::cli
