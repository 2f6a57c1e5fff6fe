#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/profile/profiled_devices.h"
#include "apps/zeus/run/child.h"
#include "apps/zeus/run/signal_watch.h"
#include "apps/zeus/train/epoch_arrivals.h"
#include "apps/zeus/train/limit_search.h"
#include "apps/zeus/train/metric_sources.h"
#include "apps/zeus/train/status_line.h"
#include "apps/zeus/train/train_options.h"
#include "apps/zeus/train/trial_meter.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/spooling_job_service.h"
#include "zeus/client/trial_reporter.h"
#include "zeus/job/job_service.h"

namespace zeus::cli {

// How a run came to its end.
struct TrialOutcome {
  Trial trial{};       // As the service has it.
  bool retry = false;  // The recurrence goes on with another run.
  // Of the command: set when it failed, or when somebody ended Zeus (128 + signal).
  std::optional<int> exit_code{};
  std::optional<std::string> failure{};  // Why, in one sentence, unless it was said before.
  std::optional<Error> limit_trouble{};
  bool limit_left_changed = false;  // It could not be put back.
  std::optional<Setting> chosen_limit{};
};

// One run of the command with one batch size: launched, measured, reported, and stopped when the
// service says so. One owner; everything it is given must outlive it.
class TrialRun {
 public:
  struct Parts {
    SpoolingJobService& service;
    Clock& clock;
    SignalWatch& signals;
    ProfiledDevices* devices;  // Null when there is nothing to measure and limit.
    StatusLine& line;
    std::optional<Seconds> patience{};  // Until the deadline of the recurrence.
  };

  // `status` is where the line begins.
  TrialRun(const Parts& parts, const TrainOptions& options, const Job& job,
           const StartedTrial& started, TrainStatus status);

  // An error means that the run could not be begun, or that the service will not hear of it any
  // more; the trial has failed then, as far as the service can be told.
  Result<TrialOutcome> Execute();
  // The service knows that the trial has ended.
  bool end_is_known() const { return end_is_known_; }

 private:
  Result<TrialOutcome> Run();
  // Answers what the command said; TakeEpochs() then counts it.
  Json NoteEpoch(const EpochReport& said);
  void TakeEpochs();
  void TakeEpoch(const EpochReport& said, EpochTiming timing, bool more_follow);
  EpochTiming JudgeTiming();
  // The first epoch contains the start of the program: it would make a batch size look too dear to
  // go on with. So it waits for the second, which tells what an epoch costs. Of a lump only its
  // last one is reported.
  void Report(const TrialReport& report, bool may_wait);
  Outcome Attend(Child& child);
  void ObeyAnswers(const Child& child);
  void EndRestOf(const Child& child) const;
  void Stop(const Child& child);
  void Kill(const Child& child);
  void Rest(TimePoint deadline) const;
  void ShowStatus();
  // False when the service cannot be told now.
  bool FlushReports(Outcome& outcome);
  Result<TrialOutcome> Conclude(Outcome outcome);
  // The service does not answer any more: it is told by the next start.
  Result<TrialOutcome> KeepForLater(const Outcome& outcome, const Error& trouble);
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
  std::unique_ptr<LimitSearch> limit_;
  std::unique_ptr<TrialMeter> meter_;
  std::unique_ptr<TrialReporter> reporter_;
  std::optional<EpochArrivals> arrivals_;
  std::vector<EpochReport> noted_;  // Read together, not yet counted.
  TimePoint begun_{};
  bool overdue_ = false;
  TimePoint looked_{};  // For epochs.
  bool lumps_said_ = false;
  std::optional<TrialReport> held_;
  std::optional<ReportAnswer> answer_;
  bool end_is_known_ = false;
  bool gone_ = false;                 // The service does not answer.
  std::optional<Error> failure_;      // Why the run is of no use any more.
  std::optional<TimePoint> kill_at_;  // When the command was asked to end.
};

}  // namespace zeus::cli
