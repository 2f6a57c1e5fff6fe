#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/zeus/job/job_source.h"
#include "apps/zeus/profile/profiled_devices.h"
#include "apps/zeus/run/signal_watch.h"
#include "apps/zeus/train/status_line.h"
#include "apps/zeus/train/train_options.h"
#include "apps/zeus/train/trial_record.h"
#include "apps/zeus/train/trial_run.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/spooling_job_service.h"
#include "zeus/job/job_service.h"

namespace zeus::cli {

// One invocation of `zeus train`: registers the job, clears up after runners that died, runs the
// recurrences, and says what was learned. One owner; what it is given must outlive it.
class TrainSession {
 public:
  struct Parts {
    Clock& clock;
    SignalWatch& signals;
    JobSource& source;
    ProfiledDevices* devices;  // Null when there is none.
  };

  TrainSession(const Parts& parts, TrainOptions options);

  // The exit code for the user, see docs/train.md.
  Result<int> Execute();

 private:
  Status CompleteSpec();
  Status EndOrphans();
  struct RecurrenceEnd {
    bool reached = false;
    std::optional<int> exit_code{};  // When zeus is to end with it at once.
  };
  // The first ones are those of the baseline.
  Result<RecurrenceEnd> RunRecurrence(unsigned number);
  Result<TrialOutcome> RunTrial(unsigned number, std::optional<std::int64_t> recurrence);
  TrialRequest MakeRequest(const std::string& id, std::optional<std::int64_t> recurrence) const;
  unsigned all_recurrences() const { return options_.baseline + options_.recurrences; }
  // So that the next start finds it.
  void Keep(const RunningTrial& record);
  void Say(const std::string& sentence) const;
  void SayOutcome(const TrialOutcome& outcome);
  Status TellLessons(const CarbonAccounting& carbon) const;

  JobService& service() { return service_; }

  Parts parts_;
  TrainOptions options_;
  SpoolingJobService service_;  // Lets trainings start without it.
  TrialRecords records_;
  StatusLine line_;
  Job job_{};
  std::uint64_t requests_ = 0;
  Seconds spent_{0};  // By earlier tries of the recurrence.
  bool limit_trouble_said_ = false;
  bool record_trouble_said_ = false;
};

}  // namespace zeus::cli
