#include "zeus/client/spooling_job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/base/user_files.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kFirstPause = 200ms;
constexpr Seconds kLongestPause = 5s;

bool ReachesTarget(const JobSpec& spec, double metric) {
  return spec.higher_is_better ? metric >= spec.target_metric : metric <= spec.target_metric;
}

ReportAnswer AnswerOf(const Trial& trial) {
  return {.stop = IsFinal(trial.status),
          .converged = trial.status == TrialStatus::kConverged,
          .message = trial.reason,
          .trial = trial};
}

// Why a run that nobody watches ends after this report; empty while it goes on.
std::string WhyItStops(const JobSpec& spec, const TrialReport& report) {
  if (report.epoch >= spec.max_epochs)
    return fmt::format("did not reach the target within {} epochs", report.epoch);
  if (spec.deadline && report.time >= *spec.deadline)
    return fmt::format("stopped after {} epochs: the deadline of {:g} s has passed", report.epoch,
                       spec.deadline->count());
  return "";
}

}  // namespace

SpoolingJobService::Options SpoolingJobService::Options::OfUser(std::string where,
                                                                Seconds patience) {
  const auto folder = UserDataFolder(ProcessEnvironment(), "kept-trials");
  return {.folder = folder.value_or(std::filesystem::path()),
          .where = std::move(where),
          .patience = patience};
}

SpoolingJobService::SpoolingJobService(JobService& service, Clock& clock, Options options)
    : service_(service), clock_(clock), options_(std::move(options)), spool_(options_.folder) {}

template <class Answer, class Ask>
Result<Answer> SpoolingJobService::AskPatiently(const Ask& ask) {
  const TimePoint deadline = clock_.Now() + options_.patience;
  for (Seconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    auto answer = ask();
    const Seconds left = deadline - clock_.Now();
    if (answer.ok() || !answer.error().retryable() || left <= 0s) return answer;
    clock_.SleepFor(std::min(pause, left));
  }
}

Result<RegisteredJob> SpoolingJobService::Register(const JobSpec& spec) {
  auto registered = AskPatiently<RegisteredJob>([&] { return service_.Register(spec); });
  if (registered.ok()) {
    {
      const std::lock_guard lock(mutex_);
      job_ = registered.value().job;
      offline_ = false;
    }
    Deliver(registered.value().job.spec.id);
    return registered;
  }
  if (!registered.error().retryable()) return registered;
  ZEUS_TRY(JobSpec checked, Checked(spec));
  log::Warning("{}: the training begins without it, and what it takes is told later",
               registered.error().message);
  return RegisterHere(std::move(checked));
}

RegisteredJob SpoolingJobService::RegisterHere(JobSpec spec) {
  const std::uint64_t entropy = SystemEntropy();
  if (spec.id.empty()) spec.id = fmt::format("{}-{:08x}", spec.prefix, entropy & 0xFFFFFFFFU);
  const std::lock_guard lock(mutex_);
  job_ = Job{.spec = std::move(spec), .seed = entropy, .created_at = clock_.WallNow()};
  if (job_->spec.seed) job_->seed = *job_->spec.seed;
  offline_ = true;
  return {.job = *job_};
}

bool SpoolingJobService::offline() const {
  const std::lock_guard lock(mutex_);
  return offline_;
}

Result<StartedTrial> SpoolingJobService::StartTrial(const TrialRequest& request) {
  std::optional<JobSpec> spec;
  {
    const std::lock_guard lock(mutex_);
    if (offline_) spec = job_->spec;
  }
  // It may be back by now; once is enough, for the registration has waited before.
  if (spec) {
    const auto registered = service_.Register(*spec);
    if (!registered.ok() && registered.error().retryable()) return StartHere(request);
    if (!registered.ok()) return registered.error();
    const std::lock_guard lock(mutex_);
    job_ = registered.value().job;
    offline_ = false;
  }
  auto started = AskPatiently<StartedTrial>([&] { return service_.StartTrial(request); });
  if (started.ok()) {
    const Trial& trial = started.value().trial;
    if (trial.role != RunRole::kExploring && trial.role != RunRole::kBaseline)
      spool_.RememberBatchSize(options_.where, trial.job_id, trial.batch_size);
    return started;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!started.error().retryable() || !job_ || job_->spec.id != request.job_id) return started;
    offline_ = true;
  }
  log::Warning("{}: the run begins without it, and what it takes is told later",
               started.error().message);
  return StartHere(request);
}

Result<StartedTrial> SpoolingJobService::StartHere(const TrialRequest& request) {
  ZEUS_TRY(const ProcessIdentity self, ThisProcess());
  const std::lock_guard lock(mutex_);
  const JobSpec& spec = job_->spec;
  const auto number = -static_cast<std::int64_t>(own_.size()) - 1;
  OwnTrial own{.kept = {.where = options_.where, .spec = spec, .request = request}};
  own.kept.runner = self;
  // Another try of a recurrence is one of the service's own, which it does not know of.
  own.kept.request.recurrence.reset();
  if (own.kept.request.request_id.empty())
    own.kept.request.request_id = fmt::format("kept-{:016x}", SystemEntropy());
  const std::optional<int> last = spool_.LastBatchSize(options_.where, spec.id);
  const bool usable = last && std::ranges::find(spec.batch_sizes, *last) != spec.batch_sizes.end();
  Trial& trial = own.trial;
  trial = {.job_id = spec.id, .number = number, .recurrence = -number - 1};
  trial.batch_size = usable && !request.baseline ? *last : spec.default_batch_size;
  trial.role = request.baseline ? RunRole::kBaseline : RunRole::kConcurrent;
  trial.gpu_model = request.gpu_model.empty() ? spec.gpu_model : request.gpu_model;
  trial.max_power = request.max_power.value_or(spec.max_power);
  trial.request_id = own.kept.request.request_id;
  trial.started_at = clock_.WallNow();
  trial.lease = request.lease.value_or(spec.lease);
  if (!request.baseline) own.kept.request.batch_size = trial.batch_size;
  Save(own);
  own_[number] = own;
  return StartedTrial{.trial = trial, .max_epochs = spec.max_epochs};
}

void SpoolingJobService::Save(const OwnTrial& own) {
  const Status saved = spool_.Save(own.kept);
  if (!saved.ok() && !std::exchange(trouble_said_, true))
    log::Warning("what this run takes is lost for the job: {}", saved.error().message);
}

Result<ReportAnswer> SpoolingJobService::Report(const TrialReport& report) {
  if (report.trial >= 0) return service_.Report(report);
  std::string delivered;
  ReportAnswer answer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = own_.find(report.trial);
    if (found == own_.end()) return Error{ErrorCode::kNotFound, "trial: there is no such trial"};
    OwnTrial& own = found->second;
    if (IsFinal(own.trial.status)) return AnswerOf(own.trial);
    const JobSpec& spec = own.kept.spec;
    own.kept.report = report;
    own.trial.status = TrialStatus::kReporting;
    own.trial.epochs = report.epoch;
    own.trial.time = report.time;
    own.trial.energy = report.energy;
    own.trial.cost = ZeusCostOf(spec.eta, own.trial.max_power, report.energy, report.time);
    own.trial.metric = report.metric;
    if (report.power_limit) own.trial.power_limit = report.power_limit;
    const std::string why = WhyItStops(spec, report);
    if (report.epoch <= spec.max_epochs && ReachesTarget(spec, report.metric)) {
      FinishHere(own, TrialStatus::kConverged,
                 fmt::format("reached the target after {} epochs", report.epoch));
    } else if (!why.empty()) {
      FinishHere(own, TrialStatus::kStopped, why);
    } else {
      Save(own);
    }
    answer = AnswerOf(own.trial);
    if (answer.stop) delivered = spec.id;
  }
  if (!delivered.empty()) Deliver(delivered);
  return answer;
}

void SpoolingJobService::FinishHere(OwnTrial& own, TrialStatus status, std::string reason) {
  own.trial.status = status;
  own.trial.ended_at = clock_.WallNow();
  own.trial.reason = std::move(reason);
  // Whether it has reached the target, the service sees from the last report.
  own.kept.end = TrialEnd{.job_id = own.trial.job_id,
                          .trial = own.trial.number,
                          .status = status == TrialStatus::kFailed ? status : TrialStatus::kStopped,
                          .reason = own.trial.reason};
  Save(own);
}

Result<Trial> SpoolingJobService::Heartbeat(const std::string& job_id, std::int64_t trial) {
  return trial >= 0 ? service_.Heartbeat(job_id, trial) : GetTrial(job_id, trial);
}

Result<Trial> SpoolingJobService::EndTrial(const TrialEnd& end) {
  if (end.trial >= 0) return service_.EndTrial(end);
  Trial trial;
  {
    const std::lock_guard lock(mutex_);
    const auto found = own_.find(end.trial);
    if (found == own_.end()) return Error{ErrorCode::kNotFound, "trial: there is no such trial"};
    OwnTrial& own = found->second;
    if (IsFinal(own.trial.status)) return own.trial;
    FinishHere(own, own.trial.epochs > 0 ? end.status : TrialStatus::kFailed, end.reason);
    trial = own.trial;
  }
  Deliver(end.job_id);
  return trial;
}

Status SpoolingJobService::LearnEpochCost(const EpochCostReport& report) {
  return service_.LearnEpochCost(report);
}

Result<Job> SpoolingJobService::GetJob(const std::string& job_id) {
  {
    const std::lock_guard lock(mutex_);
    if (offline_ && job_->spec.id == job_id) return *job_;
  }
  return service_.GetJob(job_id);
}

Result<Trial> SpoolingJobService::GetTrial(const std::string& job_id, std::int64_t trial) {
  if (trial >= 0) return service_.GetTrial(job_id, trial);
  const std::lock_guard lock(mutex_);
  const auto found = own_.find(trial);
  if (found == own_.end()) return Error{ErrorCode::kNotFound, "trial: there is no such trial"};
  return found->second.trial;
}

Status SpoolingJobService::Keep(const Trial& trial, const TrialReport& last, const TrialEnd& end) {
  ZEUS_TRY(const ProcessIdentity self, ThisProcess());
  KeptTrial kept{.where = options_.where, .trial = trial.number, .end = end, .runner = self};
  {
    const std::lock_guard lock(mutex_);
    if (!job_ || job_->spec.id != trial.job_id)
      return Error{ErrorCode::kNotFound, fmt::format("job {} was not registered", trial.job_id)};
    kept.spec = job_->spec;
  }
  kept.request = {.job_id = trial.job_id, .request_id = trial.request_id};
  if (kept.request.request_id.empty())
    kept.request.request_id = fmt::format("trial-{}", trial.number);
  if (last.epoch > 0) kept.report = last;
  return spool_.Save(kept);
}

void SpoolingJobService::Deliver(const std::string& job_id) {
  for (KeptTrial& kept : spool_.Waiting(options_.where, job_id)) {
    const auto tell = [&]() -> Status {
      if (kept.trial <= 0) {
        ZEUS_RETURN_IF_ERROR(service_.Register(kept.spec));
        ZEUS_TRY(const StartedTrial started, service_.StartTrial(kept.request));
        kept.trial = started.trial.number;
      }
      bool over = false;
      if (kept.report) {
        kept.report->trial = kept.trial;
        ZEUS_TRY(const ReportAnswer answer, service_.Report(*kept.report));
        over = answer.stop;
      }
      if (over) return Ok();
      TrialEnd end = kept.end.value_or(
          TrialEnd{.status = TrialStatus::kFailed, .reason = "its runner was killed"});
      end.job_id = job_id;
      end.trial = kept.trial;
      ZEUS_RETURN_IF_ERROR(service_.EndTrial(end));
      return Ok();
    };
    const Status told = tell();
    if (!told.ok() && told.error().retryable()) return;
    spool_.Remove(kept);
    if (told.ok())
      log::Info("trial {} of job {}, which ran without the service, is told", kept.trial, job_id);
    else
      log::Warning("what a run of job {} took is refused: {}", job_id, told.error().message);
  }
}

}  // namespace zeus
