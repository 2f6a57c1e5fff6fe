#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/client/spooling_job_service.h"
#include "zeus/client/trial_reporter.h"
#include "zeus/job/job_service.h"
#include "zeus/process/child.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/epoch_report.h"
#include "zeus/session/metric_sources.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/train_options.h"
#include "zeus/session/trial_devices.h"

namespace zeus {

// One run of the command with one batch size: started, measured, reported, and stopped when the
// service says so. One owner; everything it is given must outlive it.
class TrialRun {
 public:
  struct Parts {
    SpoolingJobService& service;
    Clock& clock;
    SignalWatch& signals;
    std::shared_ptr<ProfiledDevices> devices;  // Null when there is nothing to measure and limit.
    DeviceSteps& steps;
    std::string activity_group;  // For the environment of the command, as "NAME=value".
    TrainListener& listener;
    std::function<bool()> stop_requested{};  // Polled; true ends the run as an interruption does.
    std::optional<Seconds> time_left{};      // Until the deadline of the recurrence.
  };

  // `status` has the number of the recurrence; the run fills in the rest.
  TrialRun(const Parts& parts, const TrainOptions& options, const Job& job,
           const StartedTrial& started, TrainStatus status);

  // An error means that the run could not be started, or that the service refuses its reports; then
  // the trial has failed, and the service is told so if it answers.
  Result<TrialOutcome> Execute();
  // Whether the service knows that the trial has ended.
  bool end_is_known() const { return end_is_known_; }
  // Whether the service did not answer the last reports.
  bool service_is_silent() const { return gone_; }

 private:
  Result<TrialOutcome> Run();
  // Answers a report of the command; QueueEpochs() then judges when it came.
  Json NoteEpoch(const EpochReport& said);
  void QueueEpochs();
  EpochTiming JudgeTiming();

  // --- the devices, which are used in steps ---
  struct QueuedEpoch {
    EpochReport said;
    EpochTiming timing;
    bool more_follow;
  };
  using EpochResult = Result<std::optional<TrialReport>>;
  void StartStep(std::function<void(TrialDevices&)> step, std::function<void()> then = {});
  void FinishStep();
  // Waits until the step has returned or is overdue, and notes signals meanwhile.
  void WaitForStep();
  Status BeginMeasuring();
  // Starts the next step, or does without the devices when one is overdue.
  void ServeDevices();
  void MeasureEpochs();
  void PollLimit();
  void CountEpoch(const QueuedEpoch& epoch, const EpochResult& report);
  // The run goes on without its devices, which do not answer.
  void GoBlind();
  void CountBlindly();
  void FinishMeasuring();
  void EndLimit();
  void StartEndOfLimit();
  void NoteLimit(TrialOutcome& outcome);
  Error NoAnswer() const;

  // The first epoch contains the start of the program and would make a batch size look too costly
  // to continue with. So its report waits for the second epoch, which shows what an epoch costs. Of
  // a lump only the last epoch is reported.
  void Report(const TrialReport& report, bool may_wait);
  ChildOutcome Attend(Child& child);
  bool Interrupted(const Child& child);
  void ObeyAnswers(const Child& child);
  // Ends the members of the command's group that outlived it: they would disturb the next run.
  void EndGroup(const Child& child) const;
  void Stop(const Child& child);
  void Kill(const Child& child);
  void Rest(TimePoint deadline) const;
  void ShowStatus();
  // Whether the service accepts calls and answers none.
  bool ServiceHangs();
  // Returns false when the service does not answer.
  bool FlushReports(ChildOutcome& outcome);
  // Notes a signal that asks to end, and the caller's wish to stop.
  bool SeeInterruption();
  void AwaitOwnSignal(const ChildOutcome& outcome);
  void NoteInterruption(ChildOutcome& outcome) const;
  Result<TrialOutcome> Conclude(ChildOutcome outcome);
  // Spools the result: the next start reports it to the service.
  Result<TrialOutcome> KeepForLater(const ChildOutcome& outcome, const Error& trouble);
  Result<TrialOutcome> End(TrialStatus status, const std::string& reason, std::optional<int> code);
  // Adds what this process measured and the service did not tell.
  Trial WithLastReport(Trial trial) const;
  Placeholders MakePlaceholders() const;
  std::vector<std::string> MakeEnvironment(const Placeholders& placeholders) const;

  Parts parts_;
  const TrainOptions& options_;
  LimitPlan limit_plan_;
  const Job& job_;
  StartedTrial started_;
  TrainStatus status_;
  std::shared_ptr<MetricSources> sources_;
  std::shared_ptr<TrialDevices> devices_;
  std::function<void()> then_;  // Called when the step has returned.
  TrialReport last_{};          // The latest epoch.
  TimePoint next_poll_{};       // When the power limit is looked at again.
  bool blind_ = false;          // The devices do not answer.
  bool limit_ended_ = false;
  std::vector<QueuedEpoch> queued_;   // Wait to be measured,
  std::vector<QueuedEpoch> in_step_;  // and those that are being measured.
  std::optional<int> end_signal_;     // Came while no command was running.
  std::unique_ptr<TrialReporter> reporter_;
  std::optional<EpochArrivals> arrivals_;
  std::vector<EpochReport> noted_;  // Read together, not counted yet.
  TimePoint begun_{};
  bool overdue_ = false;
  TimePoint looked_{};  // When reports were last looked for.
  bool lumps_logged_ = false;
  std::optional<TrialReport> held_;  // Waits for the next epoch, see Report().
  std::optional<ReportAnswer> answer_;
  bool end_is_known_ = false;
  bool service_hangs_ = false;
  bool gone_ = false;  // The service does not answer.
  bool stop_requested_ = false;
  std::optional<Error> failure_;      // Why the run cannot be used.
  std::optional<TimePoint> kill_at_;  // Set when the command was asked to end.
};

}  // namespace zeus
