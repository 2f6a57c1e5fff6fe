#include "python/bindings/job_run.h"

#include <utility>
#include <vector>

#include "python/bindings/collective.h"
#include "python/bindings/errors.h"
#include "python/bindings/without_gil.h"

namespace zeus::python {
namespace {

JobRun::State StateOf(const BatchSizeClient& client) {
  JobRun::State state{.job = client.job(),
                      .batch_size = client.batch_size(),
                      .max_epochs = client.max_epochs(),
                      .trial = client.trial(),
                      .recurrence = client.recurrence(),
                      .stop = client.ShouldStop(),
                      .converged = client.converged(),
                      .retry = client.retry(),
                      .message = client.message()};
  if (client.trouble()) state.trouble = client.trouble()->message;
  return state;
}

}  // namespace

JobRun::JobRun(const std::shared_ptr<Monitor>& monitor, Options options)
    : Closeable(monitor.get()),
      monitor_(monitor),
      window_(std::move(options.window)),
      parts_(std::make_shared<Parts>()) {
  Parts& parts = *parts_;
  parts.monitor = monitor->recording();
  parts.collective = CollectiveOf(options.collective);
  const bool heartbeats = monitor->in_real_time();
  const WithoutGil released;
  if (!parts.collective || parts.collective->rank() == 0)
    parts.service = Unwrap(RemoteJobService::Connect(options.server, parts.clock));
  parts.client = Unwrap(BatchSizeClient::Register(parts.service.get(), *parts.monitor,
                                                  {.job = std::move(options.job),
                                                   .recurrence = options.recurrence,
                                                   .collective = parts.collective.get(),
                                                   .heartbeats = heartbeats}));
  parts.client->Observe([&parts] { return parts.decided.load(); });
  state_ = StateOf(*parts.client);
}

template <class Action>
void JobRun::Do(const Action& action) {
  CheckOpen("batch size optimizer");
  const std::shared_ptr<Parts> parts = parts_;
  State state;
  {
    const WithoutGil released;
    const std::lock_guard lock(parts->mutex);
    if (!parts->client) return;  // Closed meanwhile, by another thread.
    action(*parts->client);
    state = StateOf(*parts->client);
  }
  state_ = std::move(state);
}

void JobRun::BeginTrial() {
  Do([](BatchSizeClient& client) { Check(client.BeginTrial()); });
}

void JobRun::Observe(pybind11::object power_limit_optimizer) {
  CheckOpen("batch size optimizer");
  observed_ = std::move(power_limit_optimizer);
}

// With the GIL, before a call in which the client wants to know.
void JobRun::AskObserved() {
  if (!observed_) return;
  // One that is closed decides nothing any more.
  parts_->decided = observed_.attr("closed").cast<bool>() || observed_.attr("done").cast<bool>();
}

void JobRun::OnTrainBegin() {
  CheckOpen("batch size optimizer");
  AskObserved();
  monitor_->synchronizer()();
  Do([](BatchSizeClient& client) { client.OnTrainBegin(); });
  BeginEpochWindow();
}

void JobRun::OnEvaluate(double metric) {
  CheckOpen("batch size optimizer");
  AskObserved();
  monitor_->synchronizer()();
  Do([metric](BatchSizeClient& client) { client.OnEvaluate(metric); });
  LogEpochWindow();
  if (!state_.stop) BeginEpochWindow();
}

void JobRun::BeginEpochWindow() {
  // One that cannot be opened is missing in the log, and nowhere else.
  (void)monitor_->energy().BeginWindow(window_,
                                       {.if_open = IfOpen::kRestart, .synchronize = false});
}

void JobRun::LogEpochWindow() {
  const auto epoch = monitor_->energy().EndWindow(window_);
  if (!epoch.ok()) return;
  // A full disk does not stop a training.
  if (const Status logged = monitor_->Log(epoch.value()); !logged.ok())
    state_.trouble = logged.error().message;
}

void JobRun::OnTrainEnd() {
  Do([](BatchSizeClient& client) { client.OnTrainEnd(); });
}

void JobRun::DoClose() {
  const std::shared_ptr<Parts> parts = std::move(parts_);
  if (!parts) return;  // It could not be made.
  const WithoutGil released;
  const std::lock_guard lock(parts->mutex);
  if (!parts->client) return;
  (void)parts->monitor->monitor().CancelWindow(window_);
  parts->client->GiveUp();
  parts->client.reset();
  parts->service.reset();
  parts->monitor.reset();
}

void JobRun::Abandon() {
  // Neither its thread nor, perhaps, the holder of its locks exists here.
  static auto* const abandoned = new std::vector<std::shared_ptr<Parts>>();
  abandoned->push_back(std::move(parts_));
}

}  // namespace zeus::python
