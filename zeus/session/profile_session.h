#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/process/child.h"
#include "zeus/process/output_tap.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/profile_report.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/progress.h"

namespace zeus {

// The fate of the command after the search.
enum class AfterSearch {
  kRestore,  // It continues with the knob as it was.
  kKeep,     // It continues at the best setting.
  kStop,     // It is stopped.
};

struct ProfileOptions {
  std::vector<std::string> command{};
  std::string label{};
  std::vector<Setting> settings{};  // Settings to try, fastest first; empty: chosen by stride.
  Setting stride = Watts(0);        // 0: a stride that suits the knob.
  SearchPlan plan{};
  // At most one source of progress. Without one only power is measured.
  std::optional<ProgressPattern> pattern{};
  std::string progress_file{};
  ProfileObjectives objectives{};
  AfterSearch after = AfterSearch::kRestore;
};

struct ProfileOutcome {
  std::optional<Error> not_started{};  // From Child::Start(); then the rest says nothing.
  ChildOutcome command{};
  bool stopped = false;            // The search was done, and the command was stopped as asked.
  bool measured = false;           // At least one setting was measured.
  std::optional<Error> failure{};  // Why the search failed, or its listener did.
};

// Runs a command and tries the settings of a knob while it runs. One owner.
class ProfileSession {
 public:
  // Called once, when the search is over; the command may still be running. An error is kept in the
  // outcome.
  using Listener = std::function<Status(const ProfileReport&)>;

  // All of them must outlive the session.
  ProfileSession(const ProfileOptions& options, Clock& clock, SignalWatch& signals,
                 ProfiledDevices& devices, Listener listener);

  // Returns when the command has ended. An error means that a search is not possible; then the
  // command was not started.
  Result<ProfileOutcome> Execute();

 private:
  Status Prepare();
  Status TryFirstSetting(const std::vector<Setting>& settings);
  void StartSearch(std::vector<Setting> settings);
  // Waits for the end of the command and does everything else meanwhile.
  ChildOutcome Attend(Child& child);
  // Does what is due and returns when to call it again.
  TimePoint Advance(Child& child);
  // Waits until something happens, at most until the deadline.
  void Rest(TimePoint deadline);
  void ReadOutput(const LineCutter::Line& line);
  void ReadProgressFile();
  // Evaluates the search and calls the listener. The search is over because it is complete or
  // because the command has ended.
  void Conclude(SearchEnd end);
  void KeepBest();
  void Remember(const Status& status);

  const ProfileOptions& options_;
  Clock& clock_;
  SignalWatch& signals_;
  ProfiledDevices& devices_;
  Listener listener_;
  std::optional<ProgressSeries> series_;
  double count_ = 0;  // Steps in the output, so far.
  std::unique_ptr<OutputTap> tap_;
  std::optional<ProgressFile> file_;
  UnknownSteps unknown_steps_;
  SingleProcess alone_;
  std::unique_ptr<PowerLimitOptimizer> search_;
  ProfileReport report_;
  TimePoint started_{};
  std::optional<TimePoint> search_began_;
  std::optional<double> stale_count_;  // Count in the file before the command was started.
  bool concluded_ = false;
  std::optional<TimePoint> kill_at_;  // Set when the command was asked to end.
  std::optional<Error> failure_;
};

}  // namespace zeus
