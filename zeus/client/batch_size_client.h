#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/client/spooling_job_service.h"
#include "zeus/job/job_service.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/monitor/own_share.h"
#include "zeus/optimizer/agreement.h"
#include "zeus/optimizer/collective.h"
#include "zeus/training/callback.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus {

// A run of a recurring job, for programs that train themselves: asks which batch size to use,
// measures, reports every epoch, and says when to stop.
//
//   ZEUS_TRY(const auto client, BatchSizeClient::Begin(service, monitor, {.job = spec}));
//   GlobalPowerLimitOptimizer optimizer(monitor);
//   client->Observe(optimizer);  // It knows when epochs are as they will be.
//   TrainingLoop loop(monitor, {.callbacks = {&optimizer, client.get()}});
//   for (const int epoch : loop.Epochs()) {           // Ends when the server says so.
//     for (… : loop.Batches(… client->batch_size() …)) …
//     loop.ReportMetric(metric);
//   }
//   if (client->retry()) …                            // Another try of the same recurrence.
//
// Without a TrainingLoop the same functions are called by hand: OnTrainBegin(), OnEvaluate(metric)
// after each epoch, ShouldStop(), OnTrainEnd(). With several ranks all make the same calls; rank 0
// talks to the service, energies are summed, time is that of the slowest. What goes wrong with the
// service is said and does not stop the training. One owner; what it is given must outlive it.
class BatchSizeClient final : public TrainingCallback {
 public:
  struct Options {
    // gpu_model, max_power and a number_of_gpus of 0 are taken from the monitors of the ranks.
    JobSpec job{};
    // Another try of this recurrence, after a run for which retry() held.
    std::optional<std::int64_t> recurrence{};
    std::string request_id{};
    Collective* collective = nullptr;  // Of the ranks that train together; null for one process.
    // An undisturbed run of the default, for savings to be measured against: nobody may turn the
    // power limits while it trains; a run in which they change is not counted.
    bool baseline = false;
    // A service that does not answer at the start is asked for so long; then the training begins
    // with the batch size that it last had, or the default one, and the service is told later (see
    // SpoolingJobService). `needs_service`: then it is an error.
    Seconds patience{30};
    bool needs_service = false;
    std::string where{};  // Which service it is, in what is kept for it: its address.
    // From a thread of its own, between epochs. Not with clocks that are no system clock.
    bool heartbeats = true;
  };

  // Registers the job and begins a trial. Only rank 0 needs a service. Errors are the same on all
  // ranks; that a service does not answer is none.
  static Result<std::unique_ptr<BatchSizeClient>> Begin(JobService* service, NodeMonitor& monitor,
                                                        Options options);
  // Registers the job alone, for programs that begin the trial later.
  static Result<std::unique_ptr<BatchSizeClient>> Register(JobService* service,
                                                           NodeMonitor& monitor, Options options);
  Status BeginTrial();
  // A trial that is not over is given up.
  ~BatchSizeClient() override;
  BatchSizeClient(const BatchSizeClient&) = delete;
  BatchSizeClient& operator=(const BatchSizeClient&) = delete;

  // As it is registered, with its id. Of the trial: 0 before it begins.
  const JobSpec& job() const { return options_.job; }
  int batch_size() const { return batch_size_; }
  int max_epochs() const { return max_epochs_; }
  std::int64_t recurrence() const { return recurrence_; }
  std::int64_t trial() const { return trial_; }

  // Epochs before it has decided are not what they will cost later.
  void Observe(const GlobalPowerLimitOptimizer& optimizer) {
    Observe([&optimizer] { return optimizer.done(); });
  }
  // The same of anything else that knows whether it has decided.
  void Observe(std::function<bool()> decided) { decided_ = std::move(decided); }

  void OnTrainBegin() override;
  void OnEvaluate(double metric) override;
  // Also after an exception, which makes the trial a failed one.
  void OnTrainEnd() override;
  // Instead of OnTrainEnd(): the run crashed, or its user ended it, which teaches nothing.
  void GiveUp();
  bool ShouldStop() const override { return answer_.stop; }

  bool converged() const { return answer_.converged; }
  bool retry() const { return answer_.retry; }
  // Why it was told to stop; empty before.
  const std::string& message() const { return answer_.message; }
  // The last thing that went wrong with the service; nullopt if nothing did.
  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  BatchSizeClient(JobService* service, NodeMonitor& monitor, Options options);

  Status Complete();
  Result<Joules> Energy(const Measurement& measured) const;
  std::vector<double> PowerLimits();
  Status RegisterJob();
  Result<StartedTrial> StartTrial();
  void SendHeartbeats(const StartedTrial& started);
  void End(TrialStatus status, const std::string& reason);
  Result<TrialReport> Measure(double metric);
  void Tell(const TrialReport& report);
  Status ShareAnswer();
  void Note(const Error& error);

  std::unique_ptr<SpoolingJobService> spooling_;  // Null but on rank 0, as is the next.
  JobService* service_;
  NodeMonitor& monitor_;
  Options options_;
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
  bool untold_ = false;  // The service does not know the last report.
  // Null with several ranks, which may measure the same GPUs for each other.
  std::unique_ptr<OwnShare> share_;
  std::vector<double> limits_at_begin_;  // Limits of the counted GPUs, in watts.
  bool limits_changed_ = false;
  bool steady_ = false;  // The power limit stays as it is during the next epoch.
  bool ended_ = false;
  ReportAnswer answer_{};
  std::optional<Error> trouble_;
  std::unique_ptr<Ticker> heartbeat_;  // Last: it ends before the rest.
};

}  // namespace zeus
