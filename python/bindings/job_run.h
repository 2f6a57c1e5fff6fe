#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "python/bindings/closeable.h"
#include "python/bindings/monitor.h"
#include "zeus/base/clock.h"
#include "zeus/client/batch_size_client.h"
#include "zeus/client/remote_job_service.h"
#include "zeus/optimizer/collective.h"

namespace zeus::python {

// What Python calls a BatchSizeOptimizer: one run of a recurring job, with the server that it
// reports to. Used with the GIL held, which it lets go of while it asks the server or other ranks.
class JobRun final : public Closeable {
 public:
  // What the owner of the job left to the one that the server may know, or to us.
  struct Unsaid {
    bool policy = false;
    bool translate_gpu_models = false;
    bool lease = false;
    std::string new_policy{};  // Of a job that is new; empty: the usual one.
  };

  struct Options {
    CallOptions server{};
    JobSpec job{};
    Unsaid unsaid{};
    std::string window{};  // Of each epoch, for the monitor's log.
    std::optional<std::int64_t> recurrence{};
    bool baseline = false;
    bool needs_server = false;
    Seconds patience{10};           // With a server that does not answer when the run begins.
    pybind11::object collective{};  // None for one process alone.
  };

  // Registers the job. Throws Failure.
  JobRun(const std::shared_ptr<Monitor>& monitor, Options options);
  ~JobRun() override { Close(); }

  // Begins the trial, unless that was done. Throws Failure.
  void BeginTrial();
  void OnTrainBegin();
  void OnEvaluate(double metric);
  // Epochs before it is `done` are not what they will cost later.
  void Observe(pybind11::object power_limit_optimizer);
  // The run came to its end by itself.
  void OnTrainEnd();

  // Returns the savings that the server computes. Emissions and money are by the sources of
  // `carbon`, or by those of the server if it names none. Throws Failure, also on another rank than
  // the first.
  JobSavings Savings(const CarbonOptions& carbon);

  // What is known of it, also when it is closed.
  struct State {
    JobSpec job{};
    int batch_size = 0;  // 0 before the trial has begun.
    int max_epochs = 0;
    std::int64_t trial = 0;
    std::int64_t recurrence = 0;
    bool stop = false;
    bool converged = false;
    bool retry = false;
    std::string message{};
    std::optional<std::string> trouble{};
  };
  const State& state() const { return state_; }

 private:
  // Its members end in reverse order.
  struct Parts {
    std::mutex mutex{};  // The client has one owner, Python may have many threads.
    SystemClock clock{};
    std::shared_ptr<NodeMonitor> monitor{};
    std::unique_ptr<RemoteJobService> service{};  // Null but on rank 0.
    std::shared_ptr<Collective> collective{};
    std::atomic<bool> decided = true;  // What is observed, when it was last asked.
    std::unique_ptr<BatchSizeClient> client{};
  };

  static Status Connect(Options& options, Parts& parts);
  static void FillIn(const Unsaid& unsaid, JobService& service, JobSpec& spec);

  // With the client, without the GIL.
  template <class Action>
  void Do(const Action& action);
  void AskObserved();
  void BeginEpochWindow();
  void LogEpochWindow();
  void DoClose() override;
  void Abandon() override;

  const std::shared_ptr<Monitor> monitor_;
  const std::string window_;
  std::shared_ptr<Parts> parts_;
  pybind11::object observed_;
  State state_;
};

}  // namespace zeus::python
