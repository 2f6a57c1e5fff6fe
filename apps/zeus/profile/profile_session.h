#pragma once

#include <memory>
#include <optional>

#include "apps/zeus/profile/output_tap.h"
#include "apps/zeus/profile/profile_options.h"
#include "apps/zeus/profile/profiled_devices.h"
#include "apps/zeus/profile/progress_file.h"
#include "apps/zeus/profile/progress_series.h"
#include "apps/zeus/profile/sweep.h"
#include "apps/zeus/profile/sweep_notes.h"
#include "apps/zeus/run/child.h"
#include "apps/zeus/run/signal_watch.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// One invocation of `zeus profile`: the command, the sweep over it, and what is written when the
// sweep is over. One owner.
class ProfileSession {
 public:
  // All of them must outlive the session.
  ProfileSession(const ProfileOptions& options, Clock& clock, SignalWatch& signals,
                 ProfiledDevices& devices);

  // The exit code for the user. An error means that no sweep can be made; then no command was
  // started.
  Result<int> Execute();

 private:
  Status Prepare();
  Status TryFirstSetting(const std::vector<Setting>& settings);
  // Waits for the end of the command and does everything else meanwhile.
  Outcome Attend(Child& child);
  // Does what is due; returns when to come again.
  TimePoint Advance(Child& child);
  // Until something happens, at most until the deadline.
  void Rest(TimePoint deadline);
  void Look(const LineCutter::Line& line);
  void ReadProgressFile();
  // The sweep is over, by itself or because the command is: evaluates it and writes the results.
  void Conclude(SweepEnd end);
  void KeepBest();
  void Remember(const Status& status);

  const ProfileOptions& options_;
  Clock& clock_;
  SignalWatch& signals_;
  ProfiledDevices& devices_;
  std::optional<ProgressSeries> series_;
  double count_ = 0;  // In the output, so far.
  std::unique_ptr<OutputTap> tap_;
  std::optional<ProgressFile> file_;
  std::unique_ptr<Sweep> sweep_;
  SweepReport report_;
  TimePoint started_{};
  std::optional<TimePoint> sweep_began_;
  std::optional<double> stale_count_;  // What the file said before the command was started.
  bool concluded_ = false;
  std::optional<TimePoint> kill_at_;  // When the command was asked to end.
  std::optional<Error> failure_;
};

}  // namespace zeus::cli
