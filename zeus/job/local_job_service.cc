#include "zeus/job/local_job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/log.h"
#include "zeus/job/job_change.h"

namespace zeus {
namespace {

constexpr int kJobsAtOnce = 100;
constexpr Seconds kTickPeriod{5};  // A killed process loses up to this much of the lease clock.
constexpr int kTrialsAtOnce = 1000;

// Upper bounds far above any real run, so that costs stay finite.
constexpr double kLargestAmount = 1e21;
constexpr std::size_t kLongestText = 1000;

Status CheckAmount(std::string_view field, double amount) {
  if (!std::isfinite(amount)) return FieldError(field, "must be a finite number");
  if (amount < 0.0) return FieldError(field, "must not be negative");
  if (amount > kLargestAmount)
    return FieldError(field, fmt::format("must be at most {:g}", kLargestAmount));
  return Ok();
}

// An empty text is accepted: it means that the field is not set.
Status CheckName(std::string_view field, std::string_view text) {
  if (text.size() > kLongestText)
    return FieldError(field, fmt::format("is longer than {} bytes", kLongestText));
  if (HasControlCharacter(text))
    return FieldError(field, "must be one line of text without control characters");
  return Ok();
}

Status CheckMaxPower(std::optional<Watts> power) {
  if (power && !(*power > Watts(0.0)))
    return FieldError("max_power_watts", "must be greater than 0");
  if (power) return CheckAmount("max_power_watts", power->value());
  return Ok();
}

Status Check(const TrialReport& report) {
  if (report.epoch < 1) return FieldError("epoch", "must be 1 or more: epochs completed");
  ZEUS_RETURN_IF_ERROR(CheckAmount("time_seconds", report.time.count()));
  ZEUS_RETURN_IF_ERROR(CheckAmount("energy_joules", report.energy.value()));
  if (!std::isfinite(report.metric)) return FieldError("metric", "must be a finite number");
  if (report.epoch_energy.has_value() != report.epoch_time.has_value())
    return FieldError(report.epoch_energy ? "epoch_time_seconds" : "epoch_energy_joules",
                      "energy and time of an epoch come together");
  if (report.epoch_energy) {
    ZEUS_RETURN_IF_ERROR(CheckAmount("epoch_energy_joules", report.epoch_energy->value()));
    ZEUS_RETURN_IF_ERROR(CheckAmount("epoch_time_seconds", report.epoch_time->count()));
  }
  if (report.power_limit)
    ZEUS_RETURN_IF_ERROR(CheckAmount("power_limit_watts", report.power_limit->value()));
  return Ok();
}

// Removes the fields that may differ between runs of one job: each trial has its own GPUs.
JobSpec WithoutPlace(JobSpec spec) {
  if (!spec.translate_gpu_models) return spec;
  spec.gpu_model.clear();
  spec.max_power = Watts(0.0);
  return spec;
}

Status CheckSame(const JobSpec& asked, const JobSpec& stored) {
  const Json ours = ToJson(WithoutPlace(stored));
  const Json theirs = ToJson(WithoutPlace(asked));
  std::vector<std::string> differences;
  for (const auto& [field, value] : ours.items()) {
    if (theirs.at(field) != value)
      differences.push_back(
          fmt::format("{} is {}, not {}", field, value.dump(), theirs.at(field).dump()));
  }
  if (differences.empty()) return Ok();
  return Error{ErrorCode::kConflict,
               fmt::format("id: job {} exists with another configuration ({}); use another id, or "
                           "delete it first",
                           stored.id, fmt::join(differences, "; "))};
}

Result<std::vector<Trial>> EveryTrial(JobRepository& repository, const std::string& job_id) {
  std::vector<Trial> trials;
  for (;;) {
    ZEUS_TRY(std::vector<Trial> page,
             repository.ListTrials(job_id, {.after = trials.empty() ? 0 : trials.back().number,
                                            .limit = kTrialsAtOnce}));
    const bool last = page.size() < static_cast<std::size_t>(kTrialsAtOnce);
    std::ranges::move(page, std::back_inserter(trials));
    if (last) return trials;
  }
}

// Whether a run is under way for whose result the policy waits.
Result<bool> IsExploring(JobRepository& repository, const std::string& job_id) {
  for (const TrialStatus status : {TrialStatus::kDispatched, TrialStatus::kReporting}) {
    ZEUS_TRY(const std::vector<Trial> active,
             repository.ListTrials(job_id, {.limit = kTrialsAtOnce, .status = status}));
    if (std::ranges::any_of(active, [](const Trial& t) { return t.role == RunRole::kExploring; }))
      return true;
  }
  return false;
}

Job NewJob(JobSpec spec, std::uint64_t entropy, WallTime now) {
  const std::uint64_t seed = spec.seed.value_or(entropy);
  return {.spec = std::move(spec), .seed = seed, .created_at = now, .events = 1};
}

}  // namespace

LocalJobService::LocalJobService(JobRepository& repository, const Clock& clock)
    : LocalJobService(repository, clock, SystemEntropy) {}

LocalJobService::LocalJobService(JobRepository& repository, const Clock& clock, Entropy entropy)
    : LocalJobService(repository, clock, std::move(entropy), {}) {}

LocalJobService::LocalJobService(JobRepository& repository, const Clock& clock, Entropy entropy,
                                 LeaseOptions leases)
    : repository_(repository),
      clock_(clock),
      entropy_(std::move(entropy)),
      leases_(
          clock, leases.absence,
          leases.boot_clock ? std::move(leases.boot_clock) : [] { return BootTime(); }) {}

template <class Answer, class Ask>
Result<Answer> LocalJobService::Change(const std::string& job_id, const Ask& ask) {
  ZEUS_RETURN_IF_ERROR(BeginLeaseClock());
  std::optional<Answer> answer;
  ZEUS_RETURN_IF_ERROR(repository_.Write([&](JobTransaction& transaction) -> Status {
    answer.reset();
    ZEUS_TRY(JobChange change,
             JobChange::Begin(transaction, job_id, {.day = clock_, .leases = leases_}));
    ZEUS_TRY(answer, ask(change));
    return change.Finish();
  }));
  KeepLeaseTick();
  return *std::move(answer);
}

Status LocalJobService::BeginLeaseClock() {
  if (leases_.has_begun()) return Ok();
  ZEUS_TRY(const std::optional<LeaseTick> kept, repository_.FindLeaseTick());
  leases_.Begin(kept);
  return Ok();
}

// An error is ignored: no answer depends on the tick, and the next call keeps one.
void LocalJobService::KeepLeaseTick() {
  const std::optional<LeaseTick> tick = leases_.TickEvery(kTickPeriod);
  if (!tick) return;
  const Status kept = repository_.Write(
      [&](JobTransaction& transaction) { return transaction.KeepLeaseTick(*tick); });
  if (!kept.ok()) log::Debug("the lease clock could not be kept: {}", kept.error().message);
}

Trial LocalJobService::Shown(Trial trial) {
  if (BeginLeaseClock().ok()) trial.lease_until = leases_.TimeOfDay(trial.lease_until);
  return trial;
}

Result<RegisteredJob> LocalJobService::Register(const JobSpec& asked) {
  ZEUS_TRY(JobSpec spec, Checked(asked));
  const std::uint64_t entropy = entropy_();
  if (spec.id.empty()) spec.id = fmt::format("{}-{:08x}", spec.prefix, entropy & 0xFFFFFFFFU);
  const Job job = NewJob(std::move(spec), entropy, clock_.WallNow());
  RegisteredJob registered;
  const auto find_or_insert = [&](JobTransaction& transaction) -> Status {
    auto stored = transaction.LockJob(job.spec.id);
    if (stored.ok()) {
      registered = {.job = std::move(stored).value(), .created = false};
      return CheckSame(job.spec, registered.job.spec);
    }
    if (stored.error().code != ErrorCode::kNotFound) return std::move(stored).error();
    registered = {.job = job, .created = true};
    ZEUS_RETURN_IF_ERROR(transaction.InsertJob(job));
    return transaction.AppendEvent({.job_id = job.spec.id,
                                    .sequence = 1,
                                    .at = job.created_at,
                                    .kind = EventKind::kJobCreated,
                                    .detail = {{"spec", ToJson(job.spec)}, {"seed", job.seed}}});
  };
  ZEUS_RETURN_IF_ERROR(repository_.Write(find_or_insert));
  return registered;
}

Status LocalJobService::Delete(const std::string& job_id) {
  return repository_.Write(
      [&](JobTransaction& transaction) { return transaction.DeleteJob(job_id); });
}

Result<StartedTrial> LocalJobService::StartTrial(const TrialRequest& request) {
  ZEUS_RETURN_IF_ERROR(CheckMaxPower(request.max_power));
  ZEUS_RETURN_IF_ERROR(CheckName("gpu_model", request.gpu_model));
  ZEUS_RETURN_IF_ERROR(CheckName("request_id", request.request_id));
  if (request.lease && !(*request.lease > Seconds(0.0) && std::isfinite(request.lease->count())))
    return FieldError("lease_seconds", "must be greater than 0");
  ZEUS_TRY(StartedTrial started, Change<StartedTrial>(request.job_id, [&](JobChange& change) {
             return change.StartTrial(request);
           }));
  started.trial = Shown(std::move(started.trial));
  return started;
}

Result<ReportAnswer> LocalJobService::Report(const TrialReport& report) {
  ZEUS_RETURN_IF_ERROR(Check(report));
  ZEUS_TRY(ReportAnswer answer, Change<ReportAnswer>(report.job_id, [&](JobChange& change) {
             return change.Report(report);
           }));
  answer.trial = Shown(std::move(answer.trial));
  return answer;
}

Result<Trial> LocalJobService::Heartbeat(const std::string& job_id, std::int64_t trial) {
  ZEUS_TRY(Trial alive,
           Change<Trial>(job_id, [&](JobChange& change) { return change.Heartbeat(trial); }));
  return Shown(std::move(alive));
}

Result<Trial> LocalJobService::EndTrial(const TrialEnd& end) {
  if (end.status != TrialStatus::kStopped && end.status != TrialStatus::kFailed)
    return FieldError("status",
                      "must be stopped or failed; reports say whether a trial has converged");
  ZEUS_TRY(Trial ended,
           Change<Trial>(end.job_id, [&](JobChange& change) { return change.EndTrial(end); }));
  return Shown(std::move(ended));
}

Status LocalJobService::LearnEpochCost(const EpochCostReport& report) {
  ZEUS_RETURN_IF_ERROR(CheckAmount("time_seconds", report.time.count()));
  ZEUS_RETURN_IF_ERROR(CheckAmount("energy_joules", report.energy.value()));
  ZEUS_RETURN_IF_ERROR(CheckMaxPower(report.max_power));
  ZEUS_RETURN_IF_ERROR(CheckName("gpu_model", report.gpu_model));
  if (report.time == Seconds(0.0)) return FieldError("time_seconds", "must be greater than 0");
  return Change<std::monostate>(report.job_id,
                                [&](JobChange& change) { return change.LearnEpochCost(report); });
}

Result<Job> LocalJobService::GetJob(const std::string& job_id) {
  return repository_.FindJob(job_id);
}

Result<std::vector<Job>> LocalJobService::ListJobs(const JobQuery& query) {
  return repository_.ListJobs(query);
}

Result<Trial> LocalJobService::GetTrial(const std::string& job_id, std::int64_t trial) {
  ZEUS_TRY(Trial found, repository_.FindTrial(job_id, trial));
  return Shown(std::move(found));
}

Result<std::vector<Trial>> LocalJobService::ListTrials(const std::string& job_id,
                                                       const TrialQuery& query) {
  ZEUS_TRY(std::vector<Trial> trials, repository_.ListTrials(job_id, query));
  for (Trial& trial : trials) trial = Shown(std::move(trial));
  return trials;
}

Result<JobArms> LocalJobService::GetArms(const std::string& job_id, const std::string& gpu_model) {
  ZEUS_TRY(const Job job, repository_.FindJob(job_id));
  ZEUS_TRY(const bool exploring, IsExploring(repository_, job_id));
  return DescribeArms(job, gpu_model, exploring);
}

Result<JobSavings> LocalJobService::GetSavings(const SavingsQuery& query) {
  ZEUS_TRY(const Job job, repository_.FindJob(query.job_id));
  ZEUS_TRY(const std::vector<Trial> trials, EveryTrial(repository_, query.job_id));
  SavingsBasis basis{.spec = job.spec, .trials = trials, .gpu_model = query.gpu_model};
  if (query.baseline_job.empty() || query.baseline_job == query.job_id)
    return ComputeSavings(basis);
  auto other = repository_.FindJob(query.baseline_job);
  if (!other.ok()) return std::move(other).error().While("baseline");
  ZEUS_TRY(const std::vector<Trial> runs, EveryTrial(repository_, query.baseline_job));
  basis.baseline_spec = &other.value().spec;
  basis.baseline_trials = runs;
  return ComputeSavings(basis);
}

Result<std::vector<JobEvent>> LocalJobService::ListEvents(const std::string& job_id,
                                                          std::int64_t after, int limit) {
  return repository_.ListEvents(job_id, after, limit);
}

Result<int> LocalJobService::ExpireOverdueTrials() {
  ZEUS_RETURN_IF_ERROR(BeginLeaseClock());
  ZEUS_TRY(const std::optional<LeaseTick> kept, repository_.FindLeaseTick());
  if (kept) leases_.CatchUp(*kept);
  KeepLeaseTick();
  ZEUS_TRY(const std::vector<std::string> jobs,
           repository_.JobsWithOverdueTrials(leases_.Now(), kJobsAtOnce));
  int expired = 0;
  std::optional<Error> failure;
  for (const std::string& job : jobs) {
    const auto freed =
        Change<int>(job, [](JobChange& change) { return change.ExpireOverdueTrials(); });
    if (freed.ok())
      expired += freed.value();
    else if (freed.error().code != ErrorCode::kNotFound)  // The job was deleted meanwhile.
      failure = freed.error().While("job " + job);        // Other jobs are still handled.
  }
  if (failure) return *std::move(failure);
  return expired;
}

}  // namespace zeus
