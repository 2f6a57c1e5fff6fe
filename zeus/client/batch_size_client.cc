#include "zeus/client/batch_size_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "zeus/base/log.h"
#include "zeus/base/ticker.h"
#include "zeus/training/epoch_meter.h"

namespace zeus {
namespace {

// Several runs may use one monitor, each with a window of its own.
std::string NewWindowName() {
  static std::atomic<int> made = 0;
  return "__zeus_trial_" + std::to_string(++made);
}

// A measurement with a gap is refused when its uncertainty is a greater part of it than this.
constexpr double kLargestUncertainty = 0.1;
// The part of an epoch's time for which the answer to its report is waited for, and a bound on it.
constexpr double kAnswerShareOfEpoch = 0.001;
constexpr Seconds kLongestAnswerWait{1};

struct OwnGpus {
  std::string model{};
  Watts power{};
  int count = 0;
};

OwnGpus GpusOfThisProcess(NodeMonitor& monitor, const std::vector<std::size_t>& counted) {
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
      service_clock_(options_.thread == TrialReporter::Thread::kOwn ? system_clock_
                                                                    : monitor.monitor().clock()),
      window_(NewWindowName()),
      collective_(options_.collective != nullptr ? *options_.collective : alone_),
      ranks_(collective_) {
  if (!ranks_.leader()) service_ = nullptr;
  if (service_ == nullptr || options_.needs_service) return;
  spooling_ = std::make_unique<SpoolingJobService>(
      *service_, service_clock_,
      SpoolingJobService::Options::ForThisUser(options_.where, options_.start_timeout));
  service_ = spooling_.get();
}

BatchSizeClient::~BatchSizeClient() { OnTrainEnd(); }

Status BatchSizeClient::CompleteSpec() {
  JobSpec& spec = options_.job;
  counted_ = CountedDevices(monitor_.monitor());
  ZEUS_TRY(const auto of_others, GpusOfEarlierRanks(monitor_, collective_));
  for (const SharedGpu& shared : of_others) std::erase(counted_, shared.device);
  const OwnGpus gpus = GpusOfThisProcess(monitor_, counted_);
  std::vector<double> sums{gpus.power.value(), static_cast<double>(gpus.count)};
  ZEUS_RETURN_IF_ERROR(ranks_.Sum(sums));
  if (spec.gpu_model.empty()) spec.gpu_model = gpus.model;
  if (!(spec.max_power > Watts(0))) spec.max_power = Watts(sums[0]);
  if (spec.number_of_gpus == 0) spec.number_of_gpus = static_cast<int>(sums[1]);
  return Ok();
}

Status BatchSizeClient::RegisterJob() {
  ZEUS_RETURN_IF_ERROR(CompleteSpec());
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
  try {
    reporter_ = std::make_unique<TrialReporter>(*service_, service_clock_, started.trial,
                                                started.trial.lease, options_.thread);
  } catch (const std::system_error& error) {
    if (!IsNoThread(error)) throw;
    return NoThreadError();
  }
  return started;
}

void BatchSizeClient::OnTrainBegin() {
  if (last_.epoch == 0) {
    // If the window cannot be opened, Measure() finds that out.
    (void)monitor_.monitor().BeginWindow(window_, {.if_open = IfOpen::kRestart});
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

// The energy of a run is known only if that of all its devices is.
Result<Joules> BatchSizeClient::MeasuredEnergy(const Measurement& measured) const {
  Joules sum(0);
  for (const std::size_t device : counted_) {
    ZEUS_TRY(const EnergyEstimate estimate, measured.devices[device].energy);
    // A short gap is part of the uncertainty; a GPU that was lost makes it too large.
    if (estimate.flags.Has(MeasurementFlag::kPartial) &&
        estimate.sigma.value() > kLargestUncertainty * estimate.energy.value())
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
  // The time, whether a rank could not measure, and whether the limits of a rank have changed.
  std::array<double, 3> time{};
  const auto measured = monitor_.monitor().PeekWindow(window_);
  const auto own =
      measured.ok() ? MeasuredEnergy(measured.value()) : Result<Joules>(Error(measured.error()));
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
  const Seconds epoch_time = report.value().time - last_.time;
  last_ = report.value();
  if (reporter_ != nullptr) Report(epoch_time);
  if (const Status shared = ShareAnswer(); !shared.ok()) Note(shared.error());
}

void BatchSizeClient::Report(Seconds epoch_time) {
  const bool answered_before = !reporter_->waiting_since() && !reporter_->trouble();
  reporter_->Push(last_);
  if (options_.thread == TrialReporter::Thread::kNone) {
    reporter_->Step();
  } else if (answered_before) {
    reporter_->Flush(std::min(kAnswerShareOfEpoch * epoch_time, kLongestAnswerWait));
  }
  if (const auto answer = reporter_->answer()) answer_ = *answer;
  if (!answer_.stop) ApplyOwnRules();
  NoteTroubleOfReporter();
}

void BatchSizeClient::ApplyOwnRules() {
  const JobSpec& spec = options_.job;
  // A trial that the service does not accept any more is trained as the program wants.
  if (reporter_->refusal()) return;
  if (last_.epoch <= spec.max_epochs && ReachesTarget(spec, last_.metric)) {
    answer_.stop = true;
    answer_.converged = true;
    answer_.message = fmt::format("reached the target after {} epochs", last_.epoch);
  } else if (last_.epoch >= spec.max_epochs) {
    // The run is over, and the answer says whether another try may help.
    reporter_->Flush(FlushTimeout());
    if (const auto answer = reporter_->answer()) answer_ = *answer;
    if (answer_.stop || reporter_->refusal()) return;
    answer_.stop = true;
    answer_.message = fmt::format("did not reach the target within {} epochs", last_.epoch);
  }
}

ReportAnswer BatchSizeClient::LatestAnswer() const {
  if (answer_.stop || !ranks_.alone() || reporter_ == nullptr) return answer_;
  return reporter_->answer().value_or(answer_);
}

bool BatchSizeClient::Flush(Seconds timeout) {
  return reporter_ == nullptr || reporter_->Flush(timeout);
}

Seconds BatchSizeClient::FlushTimeout() const {
  const auto since = reporter_->waiting_since();
  const Seconds silence = since ? Seconds(service_clock_.Now() - *since) : Seconds(0);
  return std::max(options_.end_timeout - silence,
                  std::min(options_.end_timeout, kTimeoutOfASilentServer));
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
  // A run that ends by itself before its target teaches what that cost; a failed one does not.
  if (std::uncaught_exceptions() == 0 && last_.epoch > 0)
    End(TrialStatus::kStopped, "the training ended without reaching the target");
  else
    GiveUp();
}

void BatchSizeClient::GiveUp() { End(TrialStatus::kFailed, "the training was given up"); }

void BatchSizeClient::End(TrialStatus status, const std::string& reason) {
  if (std::exchange(ended_, true)) return;
  (void)monitor_.monitor().CancelWindow(window_);
  if (trial_ == 0) reporter_.reset();  // Another rank failed, and none of them has begun.
  if (reporter_ == nullptr) return;
  const TrialEnd end{
      .job_id = options_.job.id, .trial = trial_, .status = status, .reason = reason};
  // The reporter ignores it if the service has ended the trial.
  reporter_->Push(end);
  const bool delivered = reporter_->Flush(FlushTimeout());
  // Several ranks keep what they have agreed upon.
  if (const auto answer = reporter_->answer(); answer && answer->stop && ranks_.alone())
    answer_ = *answer;
  NoteTroubleOfReporter();
  if (!delivered && spooling_ != nullptr) {
    const Status kept = spooling_->Keep({.job_id = options_.job.id, .number = trial_}, last_, end);
    if (!kept.ok()) {
      Note(kept.error());
    } else {
      const Error late{
          ErrorCode::kUnavailable,
          "the service does not answer: the next start of the job delivers the results"};
      log::Warning("{}", late.message);
      if (!trouble_) trouble_ = late;
    }
  }
  reporter_.reset();
}

std::optional<Error> BatchSizeClient::trouble() const {
  if (reporter_ != nullptr) {
    if (auto refusal = reporter_->refusal()) return refusal;
    if (auto trouble = reporter_->trouble()) return trouble;
  }
  return trouble_;
}

void BatchSizeClient::NoteTroubleOfReporter() {
  if (const auto refusal = reporter_->refusal())
    Note(*refusal);
  else if (const auto trouble = reporter_->trouble())
    Note(*trouble);
}

void BatchSizeClient::Note(const Error& error) {
  if (!trouble_) log::Warning("the training goes on without the service: {}", error.message);
  trouble_ = error;
}

}  // namespace zeus
