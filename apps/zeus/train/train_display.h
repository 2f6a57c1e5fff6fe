#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "zeus/session/profiled_devices.h"
#include "zeus/session/train_options.h"

namespace zeus::cli {

// One line, at most `width` characters wide: a bar of the recurrences that are done, then the run.
std::string ToLine(const TrainStatus& status, std::size_t width);

// The last line of a terminal on standard error, redrawn in place; nothing elsewhere. One owner.
class StatusLine {
 public:
  enum class Wanted { kYes, kNo };
  explicit StatusLine(Wanted wanted);
  ~StatusLine() { Hide(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool active() const { return active_; }
  void Show(const TrainStatus& status);
  // Makes room for other output.
  void Hide();

 private:
  const bool active_;
  std::string shown_;
};

// Shows a session on standard error: a status line where that is a terminal, and sentences about
// what happened. One owner.
class TrainDisplay final : public TrainListener {
 public:
  enum class Sentences { kShown, kQuiet };
  explicit TrainDisplay(Sentences sentences);

  bool draws() const override { return line_.active(); }
  void OnStatus(const TrainStatus& status) override { line_.Show(status); }
  void OnOutput() override { line_.Hide(); }
  void OnLimitRepaired(const KnobRepair& repair) override;
  void OnDevicesOpened(ProfiledDevices* devices) override { devices_ = devices; }
  void OnOrphanEnded(std::int64_t trial) override;
  void OnTrialEnded(const TrialOutcome& outcome) override;
  void OnRecurrenceKnown(unsigned recurrence) override;
  void OnTargetMissed(unsigned recurrence, unsigned runs) override;
  void OnStartPlanned(const StartAdvice& advice, WallTime now) override;
  void OnShiftTrouble(const Error& reason, bool planned) override;
  void OnShiftJudged(const ShiftReport& report) override;
  void OnFollowed(const FollowReport& report) override;

  // Prints a sentence unless the user wants none.
  void Say(const std::string& sentence) const;

 private:
  const Sentences sentences_;
  ProfiledDevices* devices_ = nullptr;
  StatusLine line_;
  bool limit_trouble_said_ = false;
};

}  // namespace zeus::cli
