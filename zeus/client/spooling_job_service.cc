#include "zeus/client/spooling_job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "zeus/base/detached_call.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/wire/requests.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

// How often calls are cancelled after their deadline.
constexpr Seconds kCancelPeriod = 100ms;
// How often a waiting caller is asked whether it is to stop.
constexpr Seconds kStopPollPeriod = 50ms;

constexpr const char* kKeptTrialSchema = "zeus.kept_trial/1";
constexpr const char* kKeptTrialExtension = ".trial";

Json KeptJson(const KeptTrial& kept) {
  Json json{{"schema", kKeptTrialSchema},
            {"where", kept.where},
            {"spec", ToJson(kept.spec)},
            {"request", wire::ToJson(kept.request)},
            {"trial", kept.trial},
            {"pid", kept.runner.pid},
            {"start_ticks", kept.runner.start_ticks},
            {"pid_namespace", kept.runner.pid_namespace}};
  if (kept.report) json["report"] = wire::ToJson(*kept.report);
  if (kept.end) json["end"] = wire::ToJson(*kept.end);
  return json;
}

Result<KeptTrial> ReadKept(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file));
  ZEUS_TRY(const Json json, ParseJson(text));
  ZEUS_TRY(const std::string schema, GetField<std::string>(json, "schema"));
  if (schema != kKeptTrialSchema) return Error{ErrorCode::kInvalidArgument, "not a kept trial"};
  KeptTrial kept;
  ZEUS_TRY(kept.where, GetField<std::string>(json, "where"));
  ZEUS_TRY(kept.spec, JobSpecFromJson(json.value("spec", Json())));
  const std::string& id = kept.spec.id;
  ZEUS_TRY(kept.request, wire::TrialRequestFromJson(id, json.value("request", Json())));
  ZEUS_TRY(kept.trial, GetField<std::int64_t>(json, "trial"));
  ZEUS_TRY(kept.runner.pid, GetField<std::int64_t>(json, "pid"));
  ZEUS_TRY(kept.runner.start_ticks, GetField<std::uint64_t>(json, "start_ticks"));
  ZEUS_TRY(kept.runner.pid_namespace, GetField<std::string>(json, "pid_namespace"));
  if (json.contains("report")) {
    ZEUS_TRY(kept.report, wire::TrialReportFromJson(id, kept.trial, json["report"]));
  }
  if (json.contains("end")) {
    ZEUS_TRY(kept.end, wire::TrialEndFromJson(id, kept.trial, json["end"]));
  }
  return kept;
}

Status WriteKept(const std::filesystem::path& file, const Json& json) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) return FileError(file.parent_path(), error.value());
  return ReplaceFile(file, JsonText(json, 2) + "\n", Readers::kOwnerOnly);
}

ReportAnswer OwnAnswer(const Trial& trial) {
  return {.stop = IsFinal(trial.status),
          .converged = trial.status == TrialStatus::kConverged,
          .message = trial.reason,
          .trial = trial};
}

// Returns why an own trial ends after this report; empty while it goes on.
std::string ReasonToStop(const JobSpec& spec, const TrialReport& report) {
  if (report.epoch >= spec.max_epochs)
    return fmt::format("did not reach the target within {} epochs", report.epoch);
  if (spec.deadline && report.time >= *spec.deadline)
    return fmt::format("stopped after {} epochs: the deadline of {:g} s has passed", report.epoch,
                       spec.deadline->count());
  return "";
}

}  // namespace

CallDeadline::CallDeadline(JobService& service, Seconds timeout) {
  const auto step = [this, &service, deadline = clock_.Now() + timeout] {
    const TimePoint now = clock_.Now();
    if (now < deadline) return deadline;
    service.CancelCalls();
    return now + kCancelPeriod;
  };
  try {
    ticker_ = std::make_unique<Ticker>("zeus-deadline", step);
  } catch (const std::system_error&) {
  }
}

std::filesystem::path TrialSpool::TrialFile(const KeptTrial& trial) const {
  return folder_ / fmt::format("{}-{}{}", FileNamePart(trial.spec.id),
                               FileNamePart(trial.request.request_id), kKeptTrialExtension);
}

std::filesystem::path TrialSpool::BatchSizeFile(const std::string& where,
                                                const std::string& job) const {
  return folder_ / fmt::format("{}-{}.json", FileNamePart(job), FileNamePart(where));
}

Status TrialSpool::Save(const KeptTrial& trial) const {
  if (folder_.empty())
    return Error{ErrorCode::kUnavailable, "there is no folder to keep it in (set HOME)"};
  return WriteKept(TrialFile(trial), KeptJson(trial));
}

void TrialSpool::Remove(const KeptTrial& trial) const {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove(TrialFile(trial), ignored);
}

std::vector<KeptTrial> TrialSpool::Waiting(const std::string& where, const std::string& job) const {
  struct Found {
    std::filesystem::file_time_type written;
    KeptTrial trial;
  };
  std::vector<Found> found;
  std::error_code error;
  if (folder_.empty()) return {};
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    if (file.path().extension() != kKeptTrialExtension) continue;
    const auto kept = ReadKept(file.path());
    if (kept.ok() && kept.value().where == where && kept.value().spec.id == job &&
        (kept.value().end || !IsRunning(kept.value().runner)))
      found.push_back({file.last_write_time(error), kept.value()});
  }
  std::ranges::sort(found, {}, &Found::written);
  std::vector<KeptTrial> trials;
  for (Found& one : found) trials.push_back(std::move(one.trial));
  return trials;
}

void TrialSpool::RememberBatchSize(const std::string& where, const std::string& job,
                                   int batch_size) const {
  // A failure is not logged: the default batch size stands in for the one that is not remembered.
  if (!folder_.empty())
    (void)WriteKept(BatchSizeFile(where, job), {{"where", where}, {"batch_size", batch_size}});
}

std::optional<int> TrialSpool::LastBatchSize(const std::string& where,
                                             const std::string& job) const {
  if (folder_.empty()) return std::nullopt;
  const auto text = ReadSmallFile(BatchSizeFile(where, job));
  const auto json = text.ok() ? ParseJson(text.value()) : Result<Json>(Error(text.error()));
  if (!json.ok()) return std::nullopt;
  const auto stored = GetField<std::string>(json.value(), "where");
  const auto size = GetField<int>(json.value(), "batch_size");
  if (!stored.ok() || stored.value() != where || !size.ok()) return std::nullopt;
  return size.value();
}

SpoolingJobService::Options SpoolingJobService::Options::ForThisUser(std::string where,
                                                                     Seconds start_timeout) {
  const auto folder = UserDataFolder(ProcessEnvironment(), "kept-trials");
  return {.folder = folder.value_or(std::filesystem::path()),
          .where = std::move(where),
          .start_timeout = start_timeout};
}

SpoolingJobService::SpoolingJobService(JobService& service, Clock& clock, Options options)
    : ForwardingJobService(service),
      clock_(clock),
      options_(std::move(options)),
      spool_(options_.folder) {}

Seconds SpoolingJobService::LongestCall() const {
  return std::max(options_.start_timeout, kTimeoutOfASilentServer);
}

bool SpoolingJobService::SeeStop() {
  if (!stopped_ && options_.stop_requested && std::this_thread::get_id() == owner_ &&
      options_.stop_requested())
    stopped_ = true;
  return stopped_;
}

template <class Answer, class Ask>
Answer SpoolingJobService::Attended(const Ask& ask) {
  if (!options_.stop_requested || std::this_thread::get_id() != owner_) return ask();
  const bool stopped_before = stopped_;
  const SystemClock clock;
  const TimePoint begun = clock.Now();
  DetachedCall<Answer> call([&ask] { return ask(); });  // It is waited for below.
  while (!call.FinishedWithin(kStopPollPeriod)) {
    if (SeeStop() && (!stopped_before || clock.Now() - begun >= kTimeoutOfASilentServer))
      service_.CancelCalls();
  }
  return *call.TakeWithin(0s);
}

void SpoolingJobService::Pause(Seconds time) {
  const TimePoint end = clock_.Now() + time;
  for (Seconds left = time; left > 0s && !SeeStop(); left = end - clock_.Now())
    clock_.SleepFor(options_.stop_requested ? std::min(left, kStopPollPeriod) : left);
}

template <class Answer, class Ask>
Result<Answer> SpoolingJobService::AskUntilTimeout(const Ask& ask) {
  const CallDeadline calls_end(service_, LongestCall());
  const TimePoint deadline = clock_.Now() + options_.start_timeout;
  BackOff pauses(kRetryUntilDeadline);
  for (;;) {
    auto answer = Attended<Result<Answer>>(ask);
    const Seconds left = deadline - clock_.Now();
    if (answer.ok() || !answer.error().retryable() || left <= 0s || stopped_) return answer;
    Pause(std::min(pauses.NextPause(), left));
  }
}

Result<RegisteredJob> SpoolingJobService::Register(const JobSpec& spec) {
  auto registered = AskUntilTimeout<RegisteredJob>([&] { return service_.Register(spec); });
  if (registered.ok()) {
    {
      const std::lock_guard lock(mutex_);
      job_ = registered.value().job;
      offline_ = false;
    }
    const CallDeadline calls_end(service_, LongestCall());
    AttendDelivery(registered.value().job.spec.id);
    return registered;
  }
  if (!registered.error().retryable() || stopped_) return registered;
  ZEUS_TRY(JobSpec checked, Checked(spec));
  log::Warning("{}: the training begins without it, and its results are delivered later",
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
  // The service may be back by now. The registration has waited for it before, so it is asked once.
  if (spec) {
    const CallDeadline calls_end(service_, kTimeoutOfASilentServer);
    const auto registered =
        Attended<Result<RegisteredJob>>([&] { return service_.Register(*spec); });
    if (!registered.ok() && stopped_) return registered.error();
    if (!registered.ok() && registered.error().retryable()) return StartHere(request);
    if (!registered.ok()) return registered.error();
    const std::lock_guard lock(mutex_);
    job_ = registered.value().job;
    offline_ = false;
  }
  auto started = AskUntilTimeout<StartedTrial>([&] { return service_.StartTrial(request); });
  if (started.ok()) {
    const Trial& trial = started.value().trial;
    if (trial.role != RunRole::kExploring && trial.role != RunRole::kBaseline)
      spool_.RememberBatchSize(options_.where, trial.job_id, trial.batch_size);
    return started;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!started.error().retryable() || stopped_ || !job_ || job_->spec.id != request.job_id)
      return started;
    offline_ = true;
  }
  log::Warning("{}: the run begins without it, and its results are delivered later",
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
  // An own trial is a recurrence of its own: only the service knows the tries of an earlier one.
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
  if (!saved.ok() && !std::exchange(warned_of_loss_, true))
    log::Warning("the results of this run are lost for the job: {}", saved.error().message);
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
    if (IsFinal(own.trial.status)) return OwnAnswer(own.trial);
    const JobSpec& spec = own.kept.spec;
    own.kept.report = report;
    own.trial.status = TrialStatus::kReporting;
    own.trial.epochs = report.epoch;
    own.trial.time = report.time;
    own.trial.energy = report.energy;
    own.trial.cost = ComputeZeusCost(spec.eta, own.trial.max_power, report.energy, report.time);
    own.trial.metric = report.metric;
    if (report.power_limit) own.trial.power_limit = report.power_limit;
    const std::string why = ReasonToStop(spec, report);
    if (report.epoch <= spec.max_epochs && ReachesTarget(spec, report.metric)) {
      FinishHere(own, TrialStatus::kConverged,
                 fmt::format("reached the target after {} epochs", report.epoch));
    } else if (!why.empty()) {
      FinishHere(own, TrialStatus::kStopped, why);
    } else {
      Save(own);
    }
    answer = OwnAnswer(own.trial);
    if (answer.stop) delivered = spec.id;
  }
  if (!delivered.empty()) {
    // The service was silent at the start of this run, and the next start delivers as well.
    const CallDeadline calls_end(service_, kTimeoutOfASilentServer);
    Deliver(delivered);
  }
  return answer;
}

void SpoolingJobService::FinishHere(OwnTrial& own, TrialStatus status, std::string reason) {
  own.trial.status = status;
  own.trial.ended_at = clock_.WallNow();
  own.trial.reason = std::move(reason);
  // A trial that reached the target is ended by its last report: the service compares the metric.
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
  if (end.trial >= 0) return Attended<Result<Trial>>([&] { return service_.EndTrial(end); });
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
  const CallDeadline calls_end(service_, kTimeoutOfASilentServer);
  AttendDelivery(end.job_id);
  return trial;
}

Result<Job> SpoolingJobService::GetJob(const std::string& job_id) {
  {
    const std::lock_guard lock(mutex_);
    if (offline_ && job_->spec.id == job_id) return *job_;
  }
  return Attended<Result<Job>>([&] { return service_.GetJob(job_id); });
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
    if (const auto found = own_.find(trial.number); found != own_.end()) {
      OwnTrial& own = found->second;
      if (IsFinal(own.trial.status)) return Ok();
      if (last.epoch > 0) own.kept.report = last;
      FinishHere(own, end.status, end.reason);
      return Ok();
    }
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

Status SpoolingJobService::DeliverTrial(KeptTrial& kept) {
  if (kept.trial <= 0) {
    // The job may be known with another spec, as the start of the run could not ask for it. Its
    // trial is accepted all the same when it has the batch size.
    const auto registered = service_.Register(kept.spec);
    if (!registered.ok() && registered.error().code != ErrorCode::kConflict)
      return registered.error();
    ZEUS_TRY(const StartedTrial started, service_.StartTrial(kept.request));
    kept.trial = started.trial.number;
  }
  if (kept.report) {
    kept.report->trial = kept.trial;
    ZEUS_TRY(const ReportAnswer answer, service_.Report(*kept.report));
    if (answer.stop) return Ok();
  }
  TrialEnd end = kept.end.value_or(
      TrialEnd{.status = TrialStatus::kFailed, .reason = "its runner was killed"});
  end.job_id = kept.spec.id;
  end.trial = kept.trial;
  ZEUS_RETURN_IF_ERROR(service_.EndTrial(end));
  return Ok();
}

void SpoolingJobService::AttendDelivery(const std::string& job_id) {
  (void)Attended<bool>([&] {
    Deliver(job_id);
    return true;
  });
}

void SpoolingJobService::Deliver(const std::string& job_id) {
  for (KeptTrial& kept : spool_.Waiting(options_.where, job_id)) {
    const Status delivered = DeliverTrial(kept);
    if (!delivered.ok() && delivered.error().retryable()) return;
    spool_.Remove(kept);
    if (delivered.ok())
      log::Info("the results of an earlier run of job {} are delivered: trial {}", job_id,
                kept.trial);
    else
      log::Warning("the results of an earlier run of job {} are refused: {}", job_id,
                   delivered.error().message);
  }
}

}  // namespace zeus
