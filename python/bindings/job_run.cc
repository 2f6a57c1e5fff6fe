#include "python/bindings/job_run.h"

#include <utility>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/collective.h"
#include "python/bindings/errors.h"
#include "zeus/optimizer/collective.h"

namespace zeus::python {
namespace {

JobRun::State ClientState(const BatchSizeClient& client) {
  JobRun::State state{.job = client.job(),
                      .batch_size = client.batch_size(),
                      .max_epochs = client.max_epochs(),
                      .trial = client.trial(),
                      .recurrence = client.recurrence(),
                      .stop = client.ShouldStop(),
                      .converged = client.converged(),
                      .retry = client.retry(),
                      .message = client.message()};
  if (const auto trouble = client.trouble()) state.trouble = trouble->message;
  return state;
}

}  // namespace

// Only the first rank talks to the server; the others return an error if it cannot.
Status JobRun::Connect(Options& options, Parts& parts) {
  SingleProcess alone;
  Agreement ranks(parts.collective ? *parts.collective : static_cast<Collective&>(alone));
  if (!ranks.leader()) return ranks.Together(Ok());
  auto service = RemoteJobService::Connect(options.server, parts.clock);
  if (!service.ok()) return ranks.Together(service.error());
  parts.service = std::move(service).value();
  {
    const TimePoint begun = parts.clock.Now();
    const CallDeadline calls_end(*parts.service, options.start_timeout);
    FillIn(options.unsaid, *parts.service, options.job);
    options.start_timeout =
        std::max(options.start_timeout - (parts.clock.Now() - begun), kTimeoutOfASilentServer);
  }
  return ranks.Together(Ok());
}

// Fills in open fields from the job that the service knows. Those of a new job keep their defaults.
void JobRun::FillIn(const Unsaid& unsaid, JobService& service, JobSpec& spec) {
  if (unsaid.policy && !unsaid.new_policy.empty()) spec.policy = unsaid.new_policy;
  if (spec.id.empty() || !(unsaid.policy || unsaid.translate_gpu_models || unsaid.lease)) return;
  const auto known = service.GetJob(spec.id);
  if (!known.ok()) return;  // An error shows again when the job is registered.
  const JobSpec& present = known.value().spec;
  if (unsaid.policy) spec.policy = present.policy;
  if (unsaid.translate_gpu_models) spec.translate_gpu_models = present.translate_gpu_models;
  if (unsaid.lease) spec.lease = present.lease;
}

JobRun::JobRun(const std::shared_ptr<Monitor>& monitor, Options options)
    : Closeable(monitor.get()),
      monitor_(monitor),
      window_(std::move(options.window)),
      parts_(std::make_shared<Parts>()) {
  Parts& parts = *parts_;
  parts.monitor = monitor->recording();
  parts.collective = FindCollective(options.collective);
  const WithoutGil released;
  Check(Connect(options, parts));
  parts.client = Unwrap(BatchSizeClient::Register(parts.service.get(), *parts.monitor,
                                                  {.job = std::move(options.job),
                                                   .recurrence = options.recurrence,
                                                   .collective = parts.collective.get(),
                                                   .baseline = options.baseline,
                                                   .start_timeout = options.start_timeout,
                                                   .needs_service = options.needs_server,
                                                   .end_timeout = options.end_timeout,
                                                   .where = options.server.url}));
  parts.client->Observe([&parts] { return parts.decided.load(); });
  state_ = ClientState(*parts.client);
}

template <class Action>
void JobRun::Do(const Action& action) {
  CheckOpen("batch size optimizer");
  const std::shared_ptr<Parts> parts = parts_;
  State state;
  {
    const WithoutGil released;
    const std::lock_guard lock(parts->mutex);
    if (!parts->client) return;  // Another thread has closed the run meanwhile.
    action(*parts->client);
    state = ClientState(*parts->client);
  }
  SetState(std::move(state));
}

void JobRun::SetState(State state) {
  if (!state.trouble) state.trouble = log_trouble_;
  state_ = std::move(state);
}

const JobRun::State& JobRun::state() {
  if (!parts_ || closed() || InForkedChild()) return state_;
  // The holder of the mutex may wait for the GIL, which this thread holds.
  const std::unique_lock lock(parts_->mutex, std::try_to_lock);
  if (lock && parts_->client) SetState(ClientState(*parts_->client));
  return state_;
}

void JobRun::BeginTrial() {
  Do([](BatchSizeClient& client) { Check(client.BeginTrial()); });
}

void JobRun::Observe(pybind11::object power_limit_optimizer) {
  CheckOpen("batch size optimizer");
  observed_ = std::move(power_limit_optimizer);
}

// Asks Python, with the GIL held, before calls in which the client needs the answer.
void JobRun::AskObserved() {
  if (!observed_) return;
  // A closed optimizer changes nothing any more. Asking runs Python code, which may close this run.
  const bool decided = observed_.attr("closed").cast<bool>() || observed_.attr("done").cast<bool>();
  CheckOpen("batch size optimizer");
  parts_->decided = decided;
}

void JobRun::OnTrainBegin() {
  CheckOpen("batch size optimizer");
  AskObserved();
  const WindowEnd before = monitor_->Synchronize();
  Do([](BatchSizeClient& client) { client.OnTrainBegin(); });
  BeginEpochWindow(before);
}

void JobRun::OnEvaluate(double metric) {
  CheckOpen("batch size optimizer");
  AskObserved();
  const WindowEnd edge = monitor_->Synchronize();
  Do([metric](BatchSizeClient& client) { client.OnEvaluate(metric); });
  LogEpochWindow(edge);
  if (!state_.stop) BeginEpochWindow(edge);
}

void JobRun::BeginEpochWindow(WindowEnd before) {
  // A window that cannot be opened is missing in the log, and nowhere else.
  (void)monitor_->energy().BeginWindow(
      window_, {.if_open = IfOpen::kRestart, .synchronize = false, .at_begin = before});
}

void JobRun::LogEpochWindow(WindowEnd end) {
  const auto epoch = monitor_->energy().EndWindow(window_, end);
  if (!epoch.ok()) return;
  // A full disk does not stop a training.
  if (const Status logged = monitor_->Log(epoch.value()); !logged.ok()) {
    log_trouble_ = logged.error().message;
    state_.trouble = log_trouble_;
  }
}

void JobRun::OnTrainEnd() {
  Do([](BatchSizeClient& client) { client.OnTrainEnd(); });
}

JobSavings JobRun::Savings(const CarbonOptions& carbon) {
  CheckOpen("batch size optimizer");
  const std::shared_ptr<Parts> parts = parts_;
  const SavingsQuery query{.job_id = state_.job.id, .gpu_model = state_.job.gpu_model};
  const WithoutGil released;
  const std::lock_guard lock(parts->mutex);
  if (!parts->service)
    throw Failure(Error{ErrorCode::kInvalidArgument, "only the first rank can ask for savings"});
  if (parts->client) parts->client->Flush(kFlushTimeout);  // Savings include this run.
  SystemClock clock;
  const CarbonAccounting accounting = Unwrap(CarbonAccounting::Open(clock, carbon));
  return Unwrap(GetSavingsWithCarbon(*parts->service, query, accounting));
}

void JobRun::DoClose() {
  const std::shared_ptr<Parts> parts = std::move(parts_);
  if (!parts) return;  // The constructor has failed.
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
  // A forked child has none of the threads, and perhaps not the holders of the locks.
  static auto* const abandoned = new std::vector<std::shared_ptr<Parts>>();
  abandoned->push_back(std::move(parts_));
}

}  // namespace zeus::python
