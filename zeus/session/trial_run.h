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
#include "zeus/session/run_power_limit.h"
#include "zeus/session/train_options.h"

namespace zeus {

// Time and energy of a run since its start, as the reports of its epochs need them. What the
// command says of itself counts; the rest is measured. One owner; the parts must outlive it.
class TrialMeter {
 public:
  struct Parts {
    Clock& clock;
    ProfiledDevices* devices;  // Null when there is nothing to measure.
    RunPowerLimit* limit;      // Null in the same case.
  };

  TrialMeter(const Parts& parts, const Trial& trial, const JobSpec& spec);

  Status Begin();

  // Returns nullopt for an epoch that was reported before, and kUnavailable when the energy counts
  // and is not known.
  Result<std::optional<TrialReport>> Epoch(const EpochReport& said, EpochTiming timing);

  int epochs() const { return last_.epoch; }
  const TrialReport& last() const { return last_; }

 private:
  struct OneEpoch {
    Seconds time{};
    Joules energy{};
  };

  Status Measure(const EpochReport& said, TrialReport& report);
  // The part of the GPUs' energy that is this run's.
  double OwnPart();
  void MeasureEpoch(const EpochReport& said, TrialReport& report);
  // Returns the mean of the epochs between two reports.
  static std::optional<OneEpoch> MeanEpoch(const std::optional<TrialReport>& since,
                                           const TrialReport& report);
  // At the best limit; nullopt when that is not known, or not what is seen.
  std::optional<OneEpoch> EpochAtBest(const TrialReport& report);

  Parts parts_;
  const JobSpec& spec_;
  const bool baseline_;  // An undisturbed run of the default, which the command was told.
  std::optional<MonitorSliceMeter> meter_;
  std::optional<OwnShare> share_;
  TimePoint begun_{};
  TrialReport last_{};
  std::optional<TrialReport> first_{};
  std::optional<TrialReport> timed_{};  // The first, or the last whose end was seen.
  bool steady_ = false;  // The limit was the same during the whole of the next epoch.
  bool lumped_ = false;  // Epochs have come in lumps.
  bool doubted_ = false;
  bool back_said_ = false;
};

// One run of the command with one batch size: started, measured, reported, and stopped when the
// service says so. One owner; everything it is given must outlive it.
class TrialRun {
 public:
  struct Parts {
    SpoolingJobService& service;
    Clock& clock;
    SignalWatch& signals;
    ProfiledDevices* devices;  // Null when there is nothing to measure and limit.
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

 private:
  Result<TrialOutcome> Run();
  // Answers a report of the command; CountEpochs() then processes it.
  Json NoteEpoch(const EpochReport& said);
  void CountEpochs();
  void CountEpoch(const EpochReport& said, EpochTiming timing, bool more_follow);
  EpochTiming JudgeTiming();
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
  // Returns false when the service does not answer.
  bool FlushReports(ChildOutcome& outcome);
  Result<TrialOutcome> Conclude(ChildOutcome outcome);
  // Spools the result: the next start reports it to the service.
  Result<TrialOutcome> KeepForLater(const ChildOutcome& outcome, const Error& trouble);
  Result<TrialOutcome> End(TrialStatus status, const std::string& reason, std::optional<int> code);
  Placeholders MakePlaceholders() const;
  std::vector<std::string> MakeEnvironment(const Placeholders& placeholders) const;

  Parts parts_;
  const TrainOptions& options_;
  LimitPlan limit_plan_;
  const Job& job_;
  StartedTrial started_;
  TrainStatus status_;
  std::unique_ptr<MetricSources> sources_;
  std::unique_ptr<RunPowerLimit> limit_;
  std::unique_ptr<TrialMeter> meter_;
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
  bool gone_ = false;  // The service does not answer.
  bool stop_requested_ = false;
  std::optional<Error> failure_;      // Why the run cannot be used.
  std::optional<TimePoint> kill_at_;  // Set when the command was asked to end.
};

}  // namespace zeus
