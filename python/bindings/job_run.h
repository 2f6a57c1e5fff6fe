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

// Python's BatchSizeOptimizer: one run of a recurring job, with the server that it reports to. Used
// with the GIL held, which is released during every call of the client: calls wait for other ranks,
// and at the start and the end of the run for the server.
class JobRun final : public Closeable {
 public:
  // Fields that the owner of the job left open: they are those of the job that the server knows, or
  // defaults.
  struct Unsaid {
    bool policy = false;
    bool translate_gpu_models = false;
    bool lease = false;
    std::string new_policy{};  // The policy of a new job; empty for the usual one.
  };

  struct Options {
    CallOptions server{};
    JobSpec job{};
    Unsaid unsaid{};
    std::string window{};  // The name of the window of each epoch in the monitor's log.
    std::optional<std::int64_t> recurrence{};
    bool baseline = false;
    bool needs_server = false;
    Seconds start_timeout{10};  // See BatchSizeClient::Options, also for the next one.
    Seconds end_timeout{10};
    pybind11::object collective{};  // None for one process alone.
  };

  // Registers the job. Throws Failure.
  JobRun(const std::shared_ptr<Monitor>& monitor, Options options);
  ~JobRun() override { Close(); }

  // Begins the trial, unless that was done. Throws Failure.
  void BeginTrial();
  void OnTrainBegin();
  void OnEvaluate(double metric);
  // Epochs before the optimizer is `done` are not reported as typical ones.
  void Observe(pybind11::object power_limit_optimizer);
  // The run came to its end by itself.
  void OnTrainEnd();

  // Returns the savings that the server computes. Emissions and money are by the sources of
  // `carbon`, or by those of the server if it names none. Throws Failure, also on another rank than
  // the first.
  JobSavings Savings(const CarbonOptions& carbon);

  // The known state of the run; also available after it is closed.
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
  // Includes answers of the server that have arrived since the latest call. Does not wait.
  const State& state();

 private:
  // The members are destroyed in reverse order.
  struct Parts {
    std::mutex mutex{};  // The client has one owner, Python may have many threads.
    SystemClock clock{};
    std::shared_ptr<NodeMonitor> monitor{};
    std::unique_ptr<RemoteJobService> service{};  // Null on other ranks than 0.
    std::shared_ptr<Collective> collective{};
    std::atomic<bool> decided =
        true;  // Whether the observed optimizer had decided when asked last.
    std::unique_ptr<BatchSizeClient> client{};
  };

  static Status Connect(Options& options, Parts& parts);
  static void FillIn(const Unsaid& unsaid, JobService& service, JobSpec& spec);

  // Calls `action` with the client, without the GIL.
  template <class Action>
  void Do(const Action& action);
  void AskObserved();
  void SetState(State state);
  void BeginEpochWindow(WindowEnd before);
  void LogEpochWindow(WindowEnd end);
  void DoClose() override;
  void Abandon() override;

  const std::shared_ptr<Monitor> monitor_;
  const std::string window_;
  std::shared_ptr<Parts> parts_;
  pybind11::object observed_;
  std::optional<std::string> log_trouble_;  // Why an epoch is missing in the monitor's log.
  State state_;
};

}  // namespace zeus::python
