#include "zeus/job/local_job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/job/job_change.h"

namespace zeus {
namespace {

constexpr int kJobsAtOnce = 100;
constexpr int kTrialsAtOnce = 1000;

// More than mankind uses in a year: costs that are computed from such amounts stay finite.
constexpr double kLargestAmount = 1e21;
constexpr std::size_t kLongestText = 1000;

Status CheckAmount(std::string_view field, double amount) {
  if (!std::isfinite(amount)) return FieldError(field, "must be a finite number");
  if (amount < 0.0) return FieldError(field, "must not be negative");
  if (amount > kLargestAmount)
    return FieldError(field, fmt::format("must be at most {:g}", kLargestAmount));
  return Ok();
}

// Empty stands for none.
Status CheckName(std::string_view field, std::string_view text) {
  if (text.size() > kLongestText)
    return FieldError(field, fmt::format("is longer than {} bytes", kLongestText));
  if (text.find('\0') != std::string_view::npos) return FieldError(field, "has a zero byte in it");
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

// Runs `ask` on a job in one transaction. What it answers is told only when it is on disk.
template <class Answer, class Ask>
Result<Answer> Change(JobRepository& repository, const std::string& job_id, const Clock& clock,
                      const Ask& ask) {
  std::optional<Answer> answer;
  ZEUS_RETURN_IF_ERROR(repository.Write([&](JobTransaction& transaction) -> Status {
    answer.reset();
    ZEUS_TRY(JobChange change, JobChange::Begin(transaction, job_id, clock));
    ZEUS_TRY(answer, ask(change));
    return change.Finish();
  }));
  return *std::move(answer);
}

// The same job may run on other GPUs: each trial says on which.
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

Job NewJob(JobSpec spec, std::uint64_t entropy, WallTime now) {
  const std::uint64_t seed = spec.seed.value_or(entropy);
  return {.spec = std::move(spec), .seed = seed, .created_at = now, .events = 1};
}

}  // namespace

LocalJobService::LocalJobService(JobRepository& repository, const Clock& clock, Entropy entropy)
    : repository_(repository), clock_(clock), entropy_(std::move(entropy)) {}

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
  return Change<StartedTrial>(repository_, request.job_id, clock_,
                              [&](JobChange& change) { return change.StartTrial(request); });
}

Result<ReportAnswer> LocalJobService::Report(const TrialReport& report) {
  ZEUS_RETURN_IF_ERROR(Check(report));
  return Change<ReportAnswer>(repository_, report.job_id, clock_,
                              [&](JobChange& change) { return change.Report(report); });
}

Result<Trial> LocalJobService::Heartbeat(const std::string& job_id, std::int64_t trial) {
  return Change<Trial>(repository_, job_id, clock_,
                       [&](JobChange& change) { return change.Heartbeat(trial); });
}

Result<Trial> LocalJobService::EndTrial(const TrialEnd& end) {
  if (end.status != TrialStatus::kStopped && end.status != TrialStatus::kFailed)
    return FieldError("status",
                      "must be stopped or failed; reports say whether a trial has converged");
  return Change<Trial>(repository_, end.job_id, clock_,
                       [&](JobChange& change) { return change.EndTrial(end); });
}

Status LocalJobService::LearnEpochCost(const EpochCostReport& report) {
  ZEUS_RETURN_IF_ERROR(CheckAmount("time_seconds", report.time.count()));
  ZEUS_RETURN_IF_ERROR(CheckAmount("energy_joules", report.energy.value()));
  ZEUS_RETURN_IF_ERROR(CheckMaxPower(report.max_power));
  ZEUS_RETURN_IF_ERROR(CheckName("gpu_model", report.gpu_model));
  if (report.time == Seconds(0.0)) return FieldError("time_seconds", "must be greater than 0");
  return Change<std::monostate>(repository_, report.job_id, clock_,
                                [&](JobChange& change) { return change.LearnEpochCost(report); });
}

Result<Job> LocalJobService::GetJob(const std::string& job_id) {
  return repository_.FindJob(job_id);
}

Result<std::vector<Job>> LocalJobService::ListJobs(const JobQuery& query) {
  return repository_.ListJobs(query);
}

Result<Trial> LocalJobService::GetTrial(const std::string& job_id, std::int64_t trial) {
  return repository_.FindTrial(job_id, trial);
}

Result<std::vector<Trial>> LocalJobService::ListTrials(const std::string& job_id,
                                                       const TrialQuery& query) {
  return repository_.ListTrials(job_id, query);
}

Result<JobArms> LocalJobService::GetArms(const std::string& job_id, const std::string& gpu_model) {
  ZEUS_TRY(const Job job, repository_.FindJob(job_id));
  ZEUS_TRY(JobPolicy policies, JobPolicy::Restore(job));
  const std::string model = gpu_model.empty() ? job.spec.gpu_model : gpu_model;
  ZEUS_TRY(const BatchSizePolicy* policy, policies.For(model));
  return JobArms{.gpu_model = model,
                 .stage = std::string(policy->stage()),
                 .best_batch_size = policy->Best(model),
                 .arms = policy->Beliefs(model)};
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
  ZEUS_TRY(const std::vector<std::string> jobs,
           repository_.JobsWithOverdueTrials(clock_.WallNow(), kJobsAtOnce));
  int expired = 0;
  std::optional<Error> failure;
  for (const std::string& job : jobs) {
    const auto freed = Change<int>(repository_, job, clock_,
                                   [](JobChange& change) { return change.ExpireOverdueTrials(); });
    if (freed.ok())
      expired += freed.value();
    else if (freed.error().code != ErrorCode::kNotFound)  // Deleted meanwhile.
      failure = freed.error().While("job " + job);        // The others are not to blame.
  }
  if (failure) return *std::move(failure);
  return expired;
}

}  // namespace zeus
