#include "zeus/client/batch_size_client.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "zeus/base/log.h"

namespace zeus {
namespace {

constexpr const char* kWindow = "__zeus_trial";
constexpr double kHeartbeatsPerLease = 3;

// What the GPUs of this process are, where the owner of the job did not say.
void Complete(JobSpec& spec, NodeMonitor& monitor) {
  const bool power_given = spec.max_power > Watts(0);
  for (std::size_t device = 0; device < monitor.monitor().device_count(); ++device) {
    Gpu* const gpu = monitor.gpu(device);
    if (gpu == nullptr) continue;
    if (spec.gpu_model.empty()) spec.gpu_model = gpu->identity().model;
    if (const auto limit = gpu->CurrentPowerLimit(); !power_given && limit.ok())
      spec.max_power += limit.value().range.max;
  }
}

}  // namespace

Result<std::unique_ptr<BatchSizeClient>> BatchSizeClient::Begin(JobService* service,
                                                                NodeMonitor& monitor,
                                                                Options options) {
  std::unique_ptr<BatchSizeClient> client(
      new BatchSizeClient(service, monitor, std::move(options)));
  ZEUS_RETURN_IF_ERROR(client->Start());
  return client;
}

BatchSizeClient::BatchSizeClient(JobService* service, NodeMonitor& monitor, Options options)
    : service_(service),
      monitor_(monitor),
      options_(std::move(options)),
      collective_(options_.collective != nullptr ? *options_.collective : alone_) {
  if (collective_.rank() != 0) service_ = nullptr;
}

BatchSizeClient::~BatchSizeClient() { OnTrainEnd(); }

Status BatchSizeClient::Start() {
  JobSpec& spec = options_.job;
  const bool power_given = spec.max_power > Watts(0);
  Complete(spec, monitor_);
  std::array<double, 1> power{spec.max_power.value()};
  if (!power_given) {
    ZEUS_RETURN_IF_ERROR(collective_.Sum(power));
    spec.max_power = Watts(power[0]);
  }
  // Success, batch size, epochs and recurrence: what the other ranks need to know.
  std::array<double, 4> shared{};
  Status outcome = Ok();
  if (collective_.rank() == 0) {
    const auto started = StartTrial();
    if (started.ok()) {
      trial_ = started.value().trial;
      shared = {1, static_cast<double>(trial_.batch_size),
                static_cast<double>(started.value().max_epochs),
                static_cast<double>(trial_.recurrence)};
    } else {
      outcome = started.error();
    }
  }
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast(shared, 0));
  ZEUS_RETURN_IF_ERROR(outcome);
  if (shared[0] == 0)
    return Error{ErrorCode::kUnavailable, "rank 0 could not begin a trial: it says why"};
  batch_size_ = static_cast<int>(shared[1]);
  max_epochs_ = static_cast<int>(shared[2]);
  recurrence_ = static_cast<std::int64_t>(shared[3]);
  last_ = {.job_id = trial_.job_id, .trial = trial_.number};
  return Ok();
}

Result<StartedTrial> BatchSizeClient::StartTrial() {
  if (service_ == nullptr)
    return Error{ErrorCode::kInvalidArgument, "rank 0 needs a service to ask for a batch size"};
  ZEUS_TRY(const RegisteredJob registered, service_->Register(options_.job));
  ZEUS_TRY(StartedTrial started, service_->StartTrial({.job_id = registered.job.spec.id,
                                                       .gpu_model = options_.job.gpu_model,
                                                       .max_power = options_.job.max_power,
                                                       .recurrence = options_.recurrence,
                                                       .request_id = options_.request_id}));
  if (options_.heartbeats) {
    const Seconds pause = started.trial.lease / kHeartbeatsPerLease;
    heartbeat_ = std::make_unique<Ticker>(
        "zeus-heartbeat", [this, pause, job = started.trial.job_id, trial = started.trial.number,
                           first = true]() mutable {
          // What goes wrong shows with the next report.
          if (!std::exchange(first, false)) (void)service_->Heartbeat(job, trial);
          return monitor_.monitor().clock().Now() + pause;
        });
  }
  return started;
}

void BatchSizeClient::OnTrainBegin() {
  // A window that cannot be opened shows when its energy is asked for.
  if (last_.epoch == 0)
    (void)monitor_.monitor().BeginWindow(kWindow, {.if_open = IfOpen::kRestart});
  steady_ = optimizer_ == nullptr || optimizer_->done();
}

Result<TrialReport> BatchSizeClient::Measure(double metric) {
  TrialReport report{.job_id = trial_.job_id, .trial = trial_.number, .epoch = last_.epoch + 1};
  report.metric = metric;
  std::array<double, 1> energy{};
  std::array<double, 2> time{};  // And whether a rank could not measure.
  const auto measured = monitor_.monitor().PeekWindow(kWindow);
  if (measured.ok()) {
    energy[0] = measured.value().Sum().energy.value();
    time[0] = measured.value().time.count();
  } else {
    time[1] = 1;
  }
  ZEUS_RETURN_IF_ERROR(collective_.Sum(energy));
  ZEUS_RETURN_IF_ERROR(collective_.Max(time));
  if (time[1] > 0)
    return Error{ErrorCode::kUnavailable, "the energy of the run cannot be measured on all ranks"};
  report.time = std::max(Seconds(time[0]), last_.time);
  report.energy = std::max(Joules(energy[0]), last_.energy);
  if (steady_ && last_.epoch > 0) {
    report.epoch_time = report.time - last_.time;
    report.epoch_energy = report.energy - last_.energy;
  }
  steady_ = optimizer_ == nullptr || optimizer_->done();
  if (Gpu* const gpu = monitor_.monitor().device_count() > 0 ? monitor_.gpu(0) : nullptr)
    if (const auto limit = gpu->CurrentPowerLimit(); limit.ok())
      report.power_limit = limit.value().requested;
  return report;
}

void BatchSizeClient::OnEvaluate(double metric) {
  if (answer_.stop) return;
  const auto report = Measure(metric);
  if (!report.ok()) return Note(report.error());
  last_ = report.value();
  if (service_ != nullptr) Tell(last_);
  if (const Status shared = ShareAnswer(); !shared.ok()) Note(shared.error());
}

void BatchSizeClient::Tell(const TrialReport& report) {
  auto answer = service_->Report(report);
  if (answer.ok()) {
    answer_ = std::move(answer).value();
  } else {
    Note(answer.error());
  }
}

Status BatchSizeClient::ShareAnswer() {
  std::array<double, 3> flags{double(answer_.stop), double(answer_.converged),
                              double(answer_.retry)};
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast(flags, 0));
  answer_.stop = flags[0] != 0;
  answer_.converged = flags[1] != 0;
  answer_.retry = flags[2] != 0;
  return Ok();
}

void BatchSizeClient::OnTrainEnd() {
  if (std::exchange(ended_, true)) return;
  heartbeat_.reset();
  (void)monitor_.monitor().CancelWindow(kWindow);
  if (service_ == nullptr || answer_.stop || trial_.number == 0) return;
  // By itself, before anybody said stop: that teaches, an exception does not.
  const bool by_itself = std::uncaught_exceptions() == 0 && last_.epoch > 0;
  const auto ended =
      service_->EndTrial({.job_id = trial_.job_id,
                          .trial = trial_.number,
                          .status = by_itself ? TrialStatus::kStopped : TrialStatus::kFailed,
                          .reason = by_itself ? "the training ended without reaching the target"
                                              : "the training was given up"});
  if (!ended.ok()) Note(ended.error());
}

void BatchSizeClient::Note(const Error& error) {
  if (!trouble_) log::Warning("the training goes on unwatched: {}", error.message);
  trouble_ = error;
}

}  // namespace zeus
