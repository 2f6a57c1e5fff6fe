#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/spooling_job_service.h"
#include "zeus/client/trial_reporter.h"
#include "zeus/job/job_service.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/monitor/own_share.h"
#include "zeus/optimizer/collective.h"
#include "zeus/training/callback.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus {

// A run of a recurring job, for programs that train themselves: asks which batch size to use,
// measures, reports every epoch, and says when to stop.
//
//   ZEUS_TRY(const auto client, BatchSizeClient::Begin(service, monitor, {.job = spec}));
//   GlobalPowerLimitOptimizer optimizer(monitor);
//   client->Observe(optimizer);  // Epochs in which it tries limits are not typical.
//   TrainingLoop loop(monitor, {.callbacks = {&optimizer, client.get()}});
//   for (const int epoch : loop.Epochs()) {           // Ends when the run should stop.
//     for (… : loop.Batches(… client->batch_size() …)) …
//     loop.ReportMetric(metric);
//   }
//   if (client->retry()) …                            // Another try of the same recurrence.
//
// Without a TrainingLoop the same functions are called by hand: OnTrainBegin(), OnEvaluate(metric)
// after each epoch, ShouldStop(), OnTrainEnd(). With several ranks all make the same calls; rank 0
// talks to the service, energies are summed, time is that of the slowest.
//
// When the network is waited for. At the start, for at most Options::start_timeout: a service that
// does not answer is replaced by the last known or the default batch size (SpoolingJobService).
// During the epochs never: OnEvaluate() queues its report for a TrialReporter and takes the answers
// that have arrived, so the answer to one epoch may be obeyed after the next. (An answer is given a
// thousandth of the epoch's time to arrive, as long as the service has answered all reports before:
// most answers need a few milliseconds, and an epoch more than needed costs much more.) The target
// and the greatest number of epochs need no answer. At the end, for at most Options::end_timeout;
// results that are not delivered by then are kept for the next start of the job. Errors of the
// service are logged, trouble() returns them, and the training goes on.
//
// One owner; everything that is passed in must outlive the client.
class BatchSizeClient final : public TrainingCallback {
 public:
  struct Options {
    // An empty gpu_model, a max_power of 0 and a number_of_gpus of 0 are filled in from the
    // monitors of the ranks.
    JobSpec job{};
    // Another try of this recurrence, after a run for which retry() held.
    std::optional<std::int64_t> recurrence{};
    std::string request_id{};
    Collective* collective = nullptr;  // The ranks that train together; null for one process.
    // An undisturbed run of the default, which savings are measured against: the power limits must
    // not be changed while it trains. A run in which they change is not counted.
    bool baseline = false;
    // How long the start waits for a service that does not answer, before the training begins
    // without it. With `needs_service` that is an error instead.
    Seconds start_timeout{30};
    bool needs_service = false;
    // How long the end waits for answers to the last reports. A service that was silent for so long
    // already gets kTimeoutOfASilentServer.
    Seconds end_timeout = kFlushTimeout;
    std::string where{};  // The address of the service, for results that are kept for it.
    // kNone: OnEvaluate() itself sends the report and waits for its answer, and there are no
    // heartbeats. For programs in simulated time.
    TrialReporter::Thread thread = TrialReporter::Thread::kOwn;
  };

  // Registers the job and begins a trial. Only rank 0 needs a service. All ranks return the same
  // error; a service that does not answer is not an error.
  static Result<std::unique_ptr<BatchSizeClient>> Begin(JobService* service, NodeMonitor& monitor,
                                                        Options options);
  // Registers the job only, for programs that begin the trial later.
  static Result<std::unique_ptr<BatchSizeClient>> Register(JobService* service,
                                                           NodeMonitor& monitor, Options options);
  Status BeginTrial();
  // Gives the run up, unless it has ended.
  ~BatchSizeClient() override;
  BatchSizeClient(const BatchSizeClient&) = delete;
  BatchSizeClient& operator=(const BatchSizeClient&) = delete;

  // The job as it is registered, with its id.
  const JobSpec& job() const { return options_.job; }
  // Properties of the trial; 0 before it begins.
  int batch_size() const { return batch_size_; }
  int max_epochs() const { return max_epochs_; }
  std::int64_t recurrence() const { return recurrence_; }
  std::int64_t trial() const { return trial_; }

  // Epochs before the optimizer has decided are not reported as typical ones.
  void Observe(const GlobalPowerLimitOptimizer& optimizer) {
    Observe([&optimizer] { return optimizer.done(); });
  }
  // The same for anything else that can say whether it has decided.
  void Observe(std::function<bool()> decided) { decided_ = std::move(decided); }

  void OnTrainBegin() override;
  void OnEvaluate(double metric) override;
  // Ends the run as one that came to its end by itself; after an exception, as a failed one.
  void OnTrainEnd() override;
  // Ends the run as a failed one, which teaches nothing: it crashed, or its user ended it.
  void GiveUp();
  // Waits until everything that was reported is answered; false when `timeout` passed before.
  bool Flush(Seconds timeout);

  // A process that trains alone sees an answer as soon as it has arrived, several ranks at the end
  // of the epoch: they stop together.
  bool ShouldStop() const override { return LatestAnswer().stop; }
  bool converged() const { return LatestAnswer().converged; }
  bool retry() const { return LatestAnswer().retry; }
  // Why the run should stop; empty before.
  std::string message() const { return LatestAnswer().message; }
  // The latest error of the service; nullopt if there was none. A refusal is one: the service
  // accepts nothing more for this trial, for example because its job was deleted.
  std::optional<Error> trouble() const;

 private:
  BatchSizeClient(JobService* service, NodeMonitor& monitor, Options options);

  Status CompleteSpec();
  Result<Joules> MeasuredEnergy(const Measurement& measured) const;
  std::vector<double> PowerLimits();
  Status RegisterJob();
  Result<StartedTrial> StartTrial();
  void End(TrialStatus status, const std::string& reason);
  Result<TrialReport> Measure(double metric);
  void Report(Seconds epoch_time);
  // Decides what needs no answer of the service.
  void ApplyOwnRules();
  Status ShareAnswer();
  ReportAnswer LatestAnswer() const;
  // How long the end of the run waits for answers.
  Seconds FlushTimeout() const;
  void Note(const Error& error);
  void NoteTroubleOfReporter();

  SystemClock system_clock_;
  std::unique_ptr<SpoolingJobService> spooling_;  // Null on other ranks than 0, as is service_.
  JobService* service_;
  NodeMonitor& monitor_;
  Options options_;
  // The time of the service: real time, also when the clock of the monitor runs faster.
  Clock& service_clock_;
  const std::string window_;
  SingleProcess alone_;
  Collective& collective_;
  Agreement ranks_;
  std::vector<std::size_t> counted_;  // Devices of the monitor whose energy is this rank's.
  std::function<bool()> decided_;
  int batch_size_ = 0;
  int max_epochs_ = 0;
  std::int64_t recurrence_ = 0;
  std::int64_t trial_ = 0;
  TrialReport last_{};
  // Null with several ranks, which may measure the same GPUs for each other.
  std::unique_ptr<OwnShare> share_;
  std::vector<double> limits_at_begin_;  // Limits of the counted GPUs, in watts.
  bool limits_changed_ = false;
  bool steady_ = false;  // The power limit stays as it is during the next epoch.
  bool ended_ = false;
  ReportAnswer answer_{};
  std::optional<Error> trouble_;
  std::unique_ptr<TrialReporter> reporter_;  // Null on other ranks than 0, and without a trial.
};

}  // namespace zeus
