#include "zeus/client/batch_size_client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/log.h"
#include "zeus/training/counted_devices.h"

namespace zeus {
namespace {

// Several runs may use one monitor.
std::string NameOfWindow() {
  static std::atomic<int> made = 0;
  return "__zeus_trial_" + std::to_string(++made);
}

constexpr double kHeartbeatsPerLease = 3;
constexpr double kTooUncertain = 0.1;

// Of the GPUs of this process.
struct OwnGpus {
  std::string model{};
  Watts power{};
  int count = 0;
};

OwnGpus GpusOf(NodeMonitor& monitor, const std::vector<std::size_t>& counted) {
  OwnGpus gpus;
  for (const std::size_t device : counted) {
    Gpu* const gpu = monitor.gpu(device);
    if (gpu == nullptr) continue;
    ++gpus.count;
    if (gpus.model.empty()) gpus.model = gpu->identity().model;
    if (const auto limit = gpu->CurrentPowerLimit(); limit.ok())
      gpus.power += limit.value().range.max;
  }
  return gpus;
}

}  // namespace

Result<std::unique_ptr<BatchSizeClient>> BatchSizeClient::Begin(JobService* service,
                                                                NodeMonitor& monitor,
                                                                Options options) {
  ZEUS_TRY(auto client, Register(service, monitor, std::move(options)));
  ZEUS_RETURN_IF_ERROR(client->BeginTrial());
  return client;
}

Result<std::unique_ptr<BatchSizeClient>> BatchSizeClient::Register(JobService* service,
                                                                   NodeMonitor& monitor,
                                                                   Options options) {
  std::unique_ptr<BatchSizeClient> client(
      new BatchSizeClient(service, monitor, std::move(options)));
  ZEUS_RETURN_IF_ERROR(client->RegisterJob());
  return client;
}

BatchSizeClient::BatchSizeClient(JobService* service, NodeMonitor& monitor, Options options)
    : service_(service),
      monitor_(monitor),
      options_(std::move(options)),
      window_(NameOfWindow()),
      collective_(options_.collective != nullptr ? *options_.collective : alone_),
      ranks_(collective_) {
  if (!ranks_.leader()) service_ = nullptr;
  if (service_ == nullptr || options_.needs_service) return;
  spooling_ = std::make_unique<SpoolingJobService>(
      *service_, monitor.monitor().clock(),
      SpoolingJobService::Options::OfUser(options_.where, options_.patience));
  service_ = spooling_.get();
}

BatchSizeClient::~BatchSizeClient() { OnTrainEnd(); }

// What the GPUs of the job are, where its owner did not say.
Status BatchSizeClient::Complete() {
  JobSpec& spec = options_.job;
  counted_ = CountedDevices(monitor_.monitor());
  ZEUS_TRY(const auto of_others, GpusOfEarlierRanks(monitor_, collective_));
  for (const SharedGpu& shared : of_others) std::erase(counted_, shared.device);
  const OwnGpus gpus = GpusOf(monitor_, counted_);
  std::vector<double> sums{gpus.power.value(), static_cast<double>(gpus.count)};
  ZEUS_RETURN_IF_ERROR(ranks_.Sum(sums));
  if (spec.gpu_model.empty()) spec.gpu_model = gpus.model;
  if (!(spec.max_power > Watts(0))) spec.max_power = Watts(sums[0]);
  if (spec.number_of_gpus == 0) spec.number_of_gpus = static_cast<int>(sums[1]);
  return Ok();
}

Status BatchSizeClient::RegisterJob() {
  ZEUS_RETURN_IF_ERROR(Complete());
  Status outcome = Ok();
  if (ranks_.leader() && service_ == nullptr)
    outcome = Error{ErrorCode::kInvalidArgument, "rank 0 needs a service to ask for a batch size"};
  if (service_ != nullptr) {
    const auto registered = service_->Register(options_.job);
    if (registered.ok())
      options_.job.id = registered.value().job.spec.id;
    else
      outcome = registered.error();
  }
  ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(outcome)));
  ZEUS_TRY(options_.job.id, ranks_.TextFromLeader(options_.job.id));
  return Ok();
}

Status BatchSizeClient::BeginTrial() {
  if (trial_ != 0) return Ok();
  std::vector<double> shared;
  Status outcome = Ok();
  if (service_ != nullptr) {
    const auto started = StartTrial();
    if (started.ok()) {
      const Trial& trial = started.value().trial;
      shared = {static_cast<double>(trial.number), static_cast<double>(trial.batch_size),
                static_cast<double>(started.value().max_epochs),
                static_cast<double>(trial.recurrence)};
    } else {
      outcome = started.error();
    }
  }
  ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(outcome)));
  ZEUS_TRY(shared, ranks_.FromLeader(std::move(shared)));
  trial_ = static_cast<std::int64_t>(shared.at(0));
  batch_size_ = static_cast<int>(shared.at(1));
  max_epochs_ = static_cast<int>(shared.at(2));
  recurrence_ = static_cast<std::int64_t>(shared.at(3));
  last_ = {.job_id = options_.job.id, .trial = trial_};
  return Ok();
}

Result<StartedTrial> BatchSizeClient::StartTrial() {
  ZEUS_TRY(StartedTrial started, service_->StartTrial({.job_id = options_.job.id,
                                                       .gpu_model = options_.job.gpu_model,
                                                       .max_power = options_.job.max_power,
                                                       .recurrence = options_.recurrence,
                                                       .request_id = options_.request_id,
                                                       .baseline = options_.baseline}));
  if (options_.heartbeats) SendHeartbeats(started);
  return started;
}

void BatchSizeClient::SendHeartbeats(const StartedTrial& started) {
  const Seconds pause = started.trial.lease / kHeartbeatsPerLease;
  heartbeat_ = std::make_unique<Ticker>(
      "zeus-heartbeat", [this, pause, job = started.trial.job_id, trial = started.trial.number,
                         first = true]() mutable {
        // What goes wrong shows with the next report.
        if (!std::exchange(first, false)) (void)service_->Heartbeat(job, trial);
        return monitor_.monitor().clock().Now() + pause;
      });
}

void BatchSizeClient::OnTrainBegin() {
  // A window that cannot be opened shows when its energy is asked for.
  if (last_.epoch == 0)
    (void)monitor_.monitor().BeginWindow(window_, {.if_open = IfOpen::kRestart});
  if (last_.epoch == 0) {
    limits_at_begin_ = PowerLimits();
    if (collective_.size() == 1) share_ = std::make_unique<OwnShare>(monitor_.monitor(), counted_);
    if (share_ != nullptr) share_->Begin();
  }
  steady_ = !decided_ || decided_();
}

std::vector<double> BatchSizeClient::PowerLimits() {
  std::vector<double> limits;
  for (const std::size_t device : counted_) {
    Gpu* const gpu = monitor_.gpu(device);
    if (gpu == nullptr) continue;
    const auto limit = gpu->CurrentPowerLimit();
    limits.push_back(limit.ok() ? limit.value().requested.value() : 0);
  }
  return limits;
}

// A device without a number makes all of it unknown.
Result<Joules> BatchSizeClient::Energy(const Measurement& measured) const {
  Joules sum(0);
  for (const std::size_t device : counted_) {
    ZEUS_TRY(const EnergyEstimate estimate, measured.devices[device].energy);
    // A moment without an answer is part of the uncertainty, a GPU that is gone is not.
    if (estimate.flags.Has(MeasurementFlag::kPartial) &&
        estimate.sigma.value() > kTooUncertain * estimate.energy.value())
      return Error{ErrorCode::kUnavailable,
                   measured.devices[device].device + " was lost for a part of the run"};
    sum += estimate.energy;
  }
  return sum;
}

Result<TrialReport> BatchSizeClient::Measure(double metric) {
  TrialReport report{.job_id = options_.job.id, .trial = trial_, .epoch = last_.epoch + 1};
  report.metric = metric;
  std::array<double, 1> energy{};
  // Also whether a rank could not measure, and whether limits of one have changed.
  std::array<double, 3> time{};
  const auto measured = monitor_.monitor().PeekWindow(window_);
  const auto own =
      measured.ok() ? Energy(measured.value()) : Result<Joules>(Error(measured.error()));
  if (own.ok()) {
    energy[0] = (share_ != nullptr ? share_->OwnPart() : 1) * own.value().value();
    time[0] = measured.value().time.count();
  } else {
    time[1] = 1;
  }
  limits_changed_ = limits_changed_ || PowerLimits() != limits_at_begin_;
  time[2] = limits_changed_ ? 1 : 0;
  ZEUS_RETURN_IF_ERROR(collective_.Sum(energy));
  ZEUS_RETURN_IF_ERROR(collective_.Max(time));
  if (time[1] > 0)
    return Error{ErrorCode::kUnavailable, "the energy of the run cannot be measured on all ranks"};
  report.undisturbed = options_.baseline && !(time[2] > 0);
  report.shared = share_ != nullptr && share_->shared();
  report.time = std::max(Seconds(time[0]), last_.time);
  report.energy = std::max(Joules(energy[0]), last_.energy);
  if (steady_ && last_.epoch > 0) {
    report.epoch_time = report.time - last_.time;
    report.epoch_energy = report.energy - last_.energy;
  }
  steady_ = !decided_ || decided_();
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
  untold_ = !answer.ok();
  if (answer.ok()) {
    answer_ = std::move(answer).value();
    return;
  }
  Note(answer.error());
  // The target ends the training, whoever knows of it.
  const JobSpec& spec = options_.job;
  const bool reached = spec.higher_is_better ? report.metric >= spec.target_metric
                                             : report.metric <= spec.target_metric;
  if (!answer.error().retryable() || !reached) return;
  answer_.stop = true;
  answer_.converged = true;
  answer_.message = "reached the target; the server does not answer and is told later";
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
  // By itself, before anybody said stop: that teaches, an exception does not.
  if (std::uncaught_exceptions() == 0 && last_.epoch > 0)
    End(TrialStatus::kStopped, "the training ended without reaching the target");
  else
    GiveUp();
}

void BatchSizeClient::GiveUp() { End(TrialStatus::kFailed, "the training was given up"); }

void BatchSizeClient::End(TrialStatus status, const std::string& reason) {
  if (std::exchange(ended_, true)) return;
  heartbeat_.reset();
  (void)monitor_.monitor().CancelWindow(window_);
  if (service_ == nullptr || trial_ == 0 || (answer_.stop && !untold_)) return;
  if (untold_ && last_.epoch > 0) Tell(last_);
  if (!untold_ && answer_.stop) return;
  const TrialEnd end{
      .job_id = options_.job.id, .trial = trial_, .status = status, .reason = reason};
  const auto ended = service_->EndTrial(end);
  if (ended.ok()) return;
  Note(ended.error());
  if (spooling_ == nullptr || !ended.error().retryable()) return;
  const Status kept = spooling_->Keep({.job_id = options_.job.id, .number = trial_}, last_, end);
  if (!kept.ok()) Note(kept.error());
}

void BatchSizeClient::Note(const Error& error) {
  if (!trouble_) log::Warning("the training goes on unwatched: {}", error.message);
  trouble_ = error;
}

}  // namespace zeus
