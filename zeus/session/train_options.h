#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/carbon/shift_report.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/job/job.h"
#include "zeus/job/job_spec.h"
#include "zeus/job/start_advice.h"
#include "zeus/session/placeholders.h"
#include "zeus/session/progress.h"

namespace zeus {

class LimitFollower;
class ProfiledDevices;
struct FollowReport;
struct KnobRepair;

enum class LimitMode {
  kJit,      // Tries limits while the command runs, and keeps the best one.
  kObserve,  // Tries limits, and restores the original one.
  kMax,      // Sets the ceiling: the limit that was found, or the highest that the devices allow.
  kFound,    // Leaves the limit alone.
  kFixed,    // Sets LimitPlan::fixed.
};

// How to treat the power limit of a run.
struct LimitPlan {
  LimitMode mode = LimitMode::kJit;
  Watts fixed{0};
  // The best limit may lengthen an epoch by this factor at most.
  std::optional<double> max_slowdown{};
  std::vector<Setting> settings{};  // Limits to try, fastest first; empty: chosen by stride.
  Setting stride = Watts(0);        // 0: a stride that suits the knob.
  Ceiling ceiling = Ceiling::kAsFound;
  // Times at each limit, where steps are counted; otherwise an epoch is a slice.
  Seconds warmup{0.5};
  Seconds slice{5};
  std::filesystem::path profiles{};  // Folder of profiles; empty: nothing is kept.
  // Turns the limit with the hour when the search is over; null: the best one stays. Shared, since
  // a step of a driver that hangs may outlive the run.
  std::shared_ptr<LimitFollower> follower{};
};

// A recurrence begins when power is clean or cheap (docs/shifting.md).
struct ShiftOptions {
  StartWish wish{};
  bool follow = false;  // With the power limit, instead of waiting.
};

// A recurring job of a foreign command, and how to run it.
struct TrainOptions {
  // Words may contain {batch_size}, {lr}, {seed}, {job}, {trial}, {recurrence}, {attempt},
  // {max_epochs} and {target}.
  std::vector<std::string> command{};
  bool no_placeholder = false;  // The command reads ZEUS_BATCH_SIZE and needs no {batch_size}.
  JobSpec spec{};
  unsigned recurrences = 1;
  unsigned baseline = 0;  // Undisturbed runs of the default batch size before the recurrences.
  unsigned tries = 20;    // Most runs in one recurrence.
  Seconds lease{120};  // The service takes a run for dead after this time without a sign of life.
  Seconds server_wait{30};  // How long to wait for the service before running without it.
  // Source of the metric: a pattern for the output, a file (placeholders allowed), or, without
  // both, the socket that ZEUS_REPORT_SOCKET names.
  std::optional<MetricPattern> metric{};
  std::string metric_file{};
  std::optional<double> learning_rate{};  // For the default batch size.
  LearningRateScaling scaling = LearningRateScaling::kSquareRoot;
  LimitPlan limit{};
  std::optional<ProgressPattern> progress{};  // Counts steps, for slices shorter than an epoch.
  Seconds grace{10};        // Time between SIGTERM and SIGKILL for a command that is to end.
  bool let_finish = false;  // A run that reached its target is not stopped.
  std::optional<ShiftOptions> shift{};
};

// The state of the run under way.
struct TrainStatus {
  std::int64_t recurrence = 0;  // Number of the recurrence in this call, from 1.
  unsigned recurrences = 0;
  int batch_size = 0;
  int attempt = 0;
  int epoch = 0;
  int max_epochs = 0;
  std::optional<double> metric{};
  double target = 0;
  Joules cost{};
  std::optional<Joules> bound{};  // Cost at which the run is stopped.
  std::optional<Watts> limit{};
  bool waiting_for_service = false;
};

// How a run ended.
struct TrialOutcome {
  Trial trial{};       // As the service has it.
  bool retry = false;  // The recurrence continues with another run.
  // Exit code of the command; set when it failed, or when a signal ended the session (128 + n).
  std::optional<int> exit_code{};
  std::optional<std::string> failure{};  // Why the command failed, in one sentence.
  std::optional<Error> limit_trouble{};
  bool limit_left_changed = false;  // The power limit could not be restored.
  bool devices_answer = true;       // False: a driver hung at the end of the run.
  std::optional<Setting> chosen_limit{};
};

// How a session ended.
struct TrainOutcome {
  std::string job{};
  std::string gpu_model{};         // The model that the runs were booked on.
  bool reached = true;             // Every recurrence reached the target.
  std::optional<int> exit_code{};  // Why the session ended early, see TrialOutcome.
  bool offline = false;            // The service did not answer: the runs are spooled.
  // Set when the power limit could not be restored at the end.
  std::optional<Error> limit_left_changed{};
  std::vector<ShiftReport> shifts{};  // One for each recurrence that was shifted and ran.
};

// Follows a session. Called on the thread of the session; must not block it for long.
class TrainListener {
 public:
  virtual ~TrainListener() = default;

  // Whether OnStatus() draws on the terminal that the command prints to. Then the command's output
  // passes through this process, and OnOutput() is called before it is printed.
  virtual bool draws() const { return false; }
  virtual void OnStatus(const TrainStatus& /*status*/) {}
  virtual void OnOutput() {}

  // A power limit that a killed run had left changed was restored, or could not be.
  virtual void OnLimitRepaired(const KnobRepair& /*repair*/) {}
  // The GPUs of the session, which live until it ends. Null when this machine has none.
  virtual void OnDevicesOpened(ProfiledDevices* /*devices*/) {}

  // A trial of an earlier process on this machine, which died, was ended.
  virtual void OnOrphanEnded(std::int64_t /*trial*/) {}
  // An earlier start of this task of a scheduler has reached the target in this recurrence already.
  virtual void OnRecurrenceKnown(unsigned /*recurrence*/) {}
  virtual void OnTrialEnded(const TrialOutcome& /*outcome*/) {}
  virtual void OnTargetMissed(unsigned /*recurrence*/, unsigned /*runs*/) {}

  // A recurrence waits for its start, or starts now and why; called again when the plan changes.
  virtual void OnStartPlanned(const StartAdvice& /*advice*/, WallTime /*now*/) {}
  // There is no forecast: the recurrence starts now or, when it was planned before, then.
  virtual void OnShiftTrouble(const Error& /*reason*/, bool /*planned*/) {}
  virtual void OnShiftJudged(const ShiftReport& /*report*/) {}
  virtual void OnFollowed(const FollowReport& /*report*/) {}
};

}  // namespace zeus
