#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/spooling_job_service.h"
#include "zeus/job/job_service.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/train_options.h"
#include "zeus/session/trial_record.h"

namespace zeus {

// Runs a recurring job of a foreign command: registers the job, ends the trials of runners that
// died, and runs the recurrences. One owner; everything it is given must outlive it.
class TrainSession {
 public:
  struct Parts {
    Clock& clock;
    SignalWatch& signals;
    JobService& service;
    std::string where;         // Names the service, for records of running trials.
    ProfiledDevices* devices;  // Null when this machine has no GPU.
    TrainListener& listener;
    std::function<bool()> stop_requested{};  // Polled; true ends the session as a signal does.
  };

  TrainSession(const Parts& parts, TrainOptions options);

  Result<TrainOutcome> Execute();

 private:
  struct RecurrenceEnd {
    bool reached = false;
    std::optional<int> exit_code{};  // Set when the session is to end at once.
  };

  Status CompleteSpec();
  Status EndOrphans();
  // The first recurrences are those of the baseline.
  Result<RecurrenceEnd> RunRecurrence(unsigned number);
  Result<TrialOutcome> RunTrial(unsigned number, std::optional<std::int64_t> recurrence);
  TrialRequest MakeRequest(const std::string& id, std::optional<std::int64_t> recurrence) const;
  unsigned all_recurrences() const { return options_.baseline + options_.recurrences; }
  // Records the trial on disk, so that the next start finds it.
  void Record(const RunningTrial& record);

  Parts parts_;
  TrainOptions options_;
  SpoolingJobService service_;  // Runs start also while the service does not answer.
  TrialRecords records_;
  Job job_{};
  std::uint64_t requests_ = 0;
  Seconds spent_{0};  // Time of the earlier tries of the recurrence.
  bool record_trouble_logged_ = false;
};

}  // namespace zeus
