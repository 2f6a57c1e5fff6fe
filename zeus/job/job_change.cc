#include "zeus/job/job_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/job/event_replay.h"

namespace zeus {
namespace {

// Bounds the time that one request spends on expired trials; the next request finds the others.
constexpr int kExpiredAtOnce = 100;

PlannedRun PlannedRunFor(const Trial& trial) {
  return {.recurrence = trial.recurrence,
          .attempt = trial.attempt,
          .gpu_model = trial.gpu_model,
          .batch_size = trial.batch_size,
          .role = trial.role};
}

// The policy learns from its own trials only, and only if they were measured and alone on their
// GPUs.
bool Teaches(const Trial& trial) { return trial.role != RunRole::kBaseline && trial.Comparable(); }

std::string EpochsText(int epochs) {
  return fmt::format("{} epoch{}", epochs, epochs == 1 ? "" : "s");
}

Json ProgressDetail(const Trial& trial) {
  Json json = {{"batch_size", trial.batch_size},
               {"epochs", trial.epochs},
               {"time_seconds", trial.time.count()},
               {"energy_joules", trial.energy.value()},
               {"cost_joules", trial.cost.value()}};
  if (trial.metric) json["metric"] = *trial.metric;
  if (trial.power_limit) json["power_limit_watts"] = trial.power_limit->value();
  if (trial.undisturbed) json["undisturbed"] = true;
  if (trial.shared) json["shared"] = true;
  if (trial.unmeasured) json["unmeasured"] = true;
  return json;
}

}  // namespace

Result<JobChange> JobChange::Begin(JobTransaction& transaction, const std::string& job_id,
                                   const Clocks& clocks) {
  ZEUS_TRY(Job job, transaction.LockJob(job_id));
  ZEUS_TRY(JobPolicy policies, JobPolicy::Restore(job));
  return JobChange(transaction, std::move(job), std::move(policies), clocks);
}

Status JobChange::Finish() {
  job_.policy_state = policies_.Save();
  return transaction_.UpdateJob(job_);
}

Status JobChange::Append(EventKind kind, std::optional<std::int64_t> trial, Json detail) {
  return transaction_.AppendEvent({.job_id = job_.spec.id,
                                   .sequence = ++job_.events,
                                   .at = now_,
                                   .kind = kind,
                                   .trial = trial,
                                   .detail = std::move(detail)});
}

Result<Trial> JobChange::Find(std::int64_t number) {
  ZEUS_TRY(std::optional<Trial> trial, transaction_.FindTrial(job_.spec.id, number));
  if (!trial)
    return Error{ErrorCode::kNotFound,
                 fmt::format("trial: job {} has no trial {}", job_.spec.id, number)};
  return *std::move(trial);
}

void JobChange::Renew(Trial& trial) const {
  trial.lease_until =
      lease_now_ + std::chrono::duration_cast<std::chrono::microseconds>(trial.lease);
}

Result<int> JobChange::ExpireOverdueTrials() {
  ZEUS_TRY(std::vector<Trial> overdue,
           transaction_.OverdueTrials(job_.spec.id, lease_now_, kExpiredAtOnce));
  for (Trial& trial : overdue) {
    trial.status = TrialStatus::kExpired;
    trial.ended_at = now_;
    trial.reason = fmt::format("nothing was heard of it for {:g} s", trial.lease.count());
    ZEUS_RETURN_IF_ERROR(transaction_.UpdateTrial(trial));
    ZEUS_RETURN_IF_ERROR(Append(EventKind::kTrialExpired, trial.number, ProgressDetail(trial)));
  }
  return static_cast<int>(overdue.size());
}

Result<StartedTrial> JobChange::StartTrial(const TrialRequest& request) {
  if (!request.request_id.empty()) {
    ZEUS_TRY(std::optional<Trial> known,
             transaction_.FindTrialByRequest(job_.spec.id, request.request_id));
    if (known) return Started(*known);
  }
  ZEUS_RETURN_IF_ERROR(ExpireOverdueTrials());
  ZEUS_TRY(Trial trial,
           request.baseline || request.batch_size ? GivenTrial(request) : ChooseTrial(request));
  trial.number = ++job_.trials;
  trial.max_power = request.max_power.value_or(job_.spec.max_power);
  trial.request_id = request.request_id;
  trial.started_at = now_;
  trial.lease = request.lease.value_or(job_.spec.lease);
  Renew(trial);
  ZEUS_RETURN_IF_ERROR(transaction_.InsertTrial(trial));
  return Started(trial);
}

Result<JobChange::Place> JobChange::NextPlace(const TrialRequest& request) {
  if (!request.recurrence) return Place{.recurrence = job_.recurrences++};
  ZEUS_TRY(const std::vector<Trial> tries,
           transaction_.TrialsOfRecurrence(job_.spec.id, *request.recurrence));
  if (tries.empty())
    return Error{ErrorCode::kNotFound, fmt::format("recurrence: job {} has no recurrence {}",
                                                   job_.spec.id, *request.recurrence)};
  const Trial& last = tries.back();
  if (last.role == RunRole::kBaseline)
    return Error{ErrorCode::kConflict,
                 fmt::format("recurrence: recurrence {} is an undisturbed run of the default and "
                             "has no other try",
                             last.recurrence)};
  if (IsActive(last.status) || last.status == TrialStatus::kConverged)
    return Error{ErrorCode::kConflict,
                 fmt::format("recurrence: trial {} of recurrence {} is {}: there is nothing to try "
                             "again",
                             last.number, last.recurrence, Name(last.status))};
  if (last.attempt + 1 >= kMostAttempts)
    return Error{ErrorCode::kConflict,
                 fmt::format("recurrence: {} tries of recurrence {} did not reach the target",
                             kMostAttempts, last.recurrence)};
  return Place{.recurrence = last.recurrence, .attempt = last.attempt + 1};
}

Result<Trial> JobChange::ChooseTrial(const TrialRequest& request) {
  ZEUS_TRY(const bool exploring, transaction_.HasActiveTrial(job_.spec.id, RunRole::kExploring));
  ZEUS_TRY(const Place place, NextPlace(request));
  Situation situation{
      .recurrence = place.recurrence,
      .attempt = place.attempt,
      .gpu_model = request.gpu_model.empty() ? job_.spec.gpu_model : request.gpu_model,
      .exploring = exploring};
  ZEUS_TRY(BatchSizePolicy * policy, policies_.For(situation.gpu_model));
  for (;; ++situation.attempt) {
    std::string why = policy->Explain(situation).why;
    const Choice choice = policy->Choose(situation);
    const Trial trial{.job_id = job_.spec.id,
                      .recurrence = situation.recurrence,
                      .attempt = situation.attempt,
                      .batch_size = choice.batch_size,
                      .role = choice.role,
                      .gpu_model = situation.gpu_model,
                      .why = std::move(why)};
    if (BoundNow(*policy, trial).begins) {
      ZEUS_RETURN_IF_ERROR(
          Append(EventKind::kTrialStarted, job_.trials + 1, ChoiceDetail(situation, choice)));
      return trial;
    }
    ZEUS_RETURN_IF_ERROR(Skip(situation, choice, trial));
  }
}

Result<Trial> JobChange::GivenTrial(const TrialRequest& request) {
  if (request.recurrence)
    return Error{ErrorCode::kInvalidArgument,
                 "recurrence: a run whose batch size is given is a recurrence of its own"};
  const int batch_size = request.batch_size.value_or(job_.spec.default_batch_size);
  if (request.baseline && batch_size != job_.spec.default_batch_size)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("batch_size: the default of job {} is {}, not {}", job_.spec.id,
                             job_.spec.default_batch_size, batch_size)};
  ZEUS_RETURN_IF_ERROR(CheckBatchSize(batch_size));
  const Situation situation{
      .recurrence = job_.recurrences++,
      .gpu_model = request.gpu_model.empty() ? job_.spec.gpu_model : request.gpu_model};
  const Choice choice{.batch_size = batch_size,
                      .role = request.baseline ? RunRole::kBaseline : RunRole::kConcurrent};
  Json detail = ChoiceDetail(situation, choice);
  detail["given"] = true;
  ZEUS_RETURN_IF_ERROR(Append(EventKind::kTrialStarted, job_.trials + 1, std::move(detail)));
  return Trial{.job_id = job_.spec.id,
               .recurrence = situation.recurrence,
               .batch_size = choice.batch_size,
               .role = choice.role,
               .gpu_model = situation.gpu_model,
               .why = request.baseline
                          ? "An undisturbed run of the default, which savings are compared with."
                          : "The runner chose the batch size itself, without asking."};
}

// Uses the epoch cost that is known before the run.
RunBound JobChange::BoundNow(const BatchSizePolicy& policy, const Trial& trial) const {
  if (!Teaches(trial)) return {.last_epoch = job_.spec.max_epochs};
  return ComputeBound(policy, PlannedRunFor(trial),
                      policy.ProfiledEpochCost(trial.gpu_model, trial.batch_size),
                      job_.spec.max_epochs);
}

Status JobChange::Skip(const Situation& situation, const Choice& choice, const Trial& trial) {
  ZEUS_TRY(BatchSizePolicy * policy, policies_.For(situation.gpu_model));
  ZEUS_TRY(const Joules earlier, EarlierCost(trial));
  const RunResult result = MakeResult(PlannedRunFor(trial), {}, earlier);
  policy->Observe(result);
  Json detail = ChoiceDetail(situation, choice);
  detail["result"] = ResultDetail(result);
  return Append(EventKind::kTrialSkipped, std::nullopt, std::move(detail));
}

Result<StartedTrial> JobChange::Started(const Trial& trial) {
  ZEUS_TRY(BatchSizePolicy * policy, policies_.For(trial.gpu_model));
  StartedTrial started{.trial = trial, .max_epochs = BoundNow(*policy, trial).last_epoch};
  for (const int batch_size : job_.spec.batch_sizes) {
    if (!policy->ProfiledEpochCost(trial.gpu_model, batch_size))
      started.unprofiled_batch_sizes.push_back(batch_size);
  }
  return started;
}

Result<ReportAnswer> JobChange::Report(const TrialReport& report) {
  ZEUS_TRY(Trial trial, Find(report.trial));
  if (IsFinal(trial.status)) return AnswerAbout(trial);
  ZEUS_RETURN_IF_ERROR(CheckProgress(report, trial));
  if (report.epoch == trial.epochs && IsActive(trial.status)) return AnswerAbout(trial);
  // A report revives an expired trial.
  trial.status = TrialStatus::kReporting;
  trial.ended_at.reset();
  trial.reason.clear();
  Apply(report, trial);
  Renew(trial);
  ZEUS_RETURN_IF_ERROR(Append(EventKind::kTrialReported, trial.number, ProgressDetail(trial)));
  if (report.epoch <= job_.spec.max_epochs && ReachesTarget(job_.spec, report.metric)) {
    ZEUS_RETURN_IF_ERROR(End(trial, TrialStatus::kConverged,
                             "reached the target after " + EpochsText(trial.epochs)));
    return AnswerAbout(trial);
  }
  ZEUS_TRY(std::optional<std::string> why, WhyStop(trial));
  if (why)
    ZEUS_RETURN_IF_ERROR(End(trial, TrialStatus::kStopped, *std::move(why)));
  else
    ZEUS_RETURN_IF_ERROR(transaction_.UpdateTrial(trial));
  return AnswerAbout(trial);
}

Status JobChange::CheckProgress(const TrialReport& report, const Trial& trial) const {
  const auto conflict = [&](std::string_view field, std::string_view why) {
    return Error{ErrorCode::kConflict, fmt::format("{}: trial {} {}", field, trial.number, why)};
  };
  if (report.epoch < trial.epochs)
    return conflict("epoch", fmt::format("has already reported epoch {}", trial.epochs));
  const bool repeated = report.epoch == trial.epochs;
  if (report.time < trial.time || (repeated && report.time != trial.time))
    return conflict("time_seconds", fmt::format("has already reported {} s", trial.time.count()));
  if (report.energy < trial.energy || (repeated && report.energy != trial.energy))
    return conflict("energy_joules",
                    fmt::format("has already reported {} J", trial.energy.value()));
  if (repeated && report.metric != trial.metric)
    return conflict("metric",
                    fmt::format("has already reported another for epoch {}", trial.epochs));
  return Ok();
}

void JobChange::Apply(const TrialReport& report, Trial& trial) const {
  const Joules cost = ComputeZeusCost(job_.spec.eta, trial.max_power, report.energy, report.time);
  if (report.epoch_energy && report.epoch_time) {
    trial.epoch_cost =
        ComputeZeusCost(job_.spec.eta, trial.max_power, *report.epoch_energy, *report.epoch_time);
  } else if (report.epoch > trial.epochs) {
    // Only the epochs since the previous report: the first ones include profiling.
    trial.epoch_cost = (cost - trial.cost) / double(report.epoch - trial.epochs);
  }
  trial.epochs = report.epoch;
  trial.time = report.time;
  trial.energy = report.energy;
  trial.cost = cost;
  trial.metric = report.metric;
  if (report.power_limit) trial.power_limit = report.power_limit;
  trial.undisturbed = report.undisturbed;
  trial.shared = trial.shared || report.shared;
  trial.unmeasured = report.unmeasured;
}

Result<std::optional<std::string>> JobChange::WhyStop(const Trial& trial) {
  using Reason = std::optional<std::string>;
  if (trial.epochs >= job_.spec.max_epochs)
    return Reason("did not reach the target within " + EpochsText(trial.epochs));
  ZEUS_TRY(BatchSizePolicy * policy, policies_.For(trial.gpu_model));
  const RunBound bound =
      ComputeBound(*policy, PlannedRunFor(trial), trial.epoch_cost, job_.spec.max_epochs);
  // A run from which nothing is learned is not stopped by the budget.
  if (Teaches(trial) && trial.epochs >= bound.last_epoch)
    return Reason(fmt::format("stopped after {}: more would cost more than it can gain",
                              EpochsText(trial.epochs)));
  ZEUS_TRY(const bool too_late, DeadlineHasPassed(trial));
  if (too_late)
    return Reason(fmt::format("stopped after {}: the deadline of {:g} s has passed",
                              EpochsText(trial.epochs), job_.spec.deadline->count()));
  return Reason();
}

Status JobChange::End(Trial& trial, TrialStatus status, std::string reason) {
  trial.status = status;
  trial.ended_at = now_;
  trial.reason = std::move(reason);
  Json detail = ProgressDetail(trial);
  detail["status"] = Name(status);
  detail["reason"] = trial.reason;
  if (status != TrialStatus::kFailed && Teaches(trial)) {
    ZEUS_TRY(const Joules earlier, EarlierCost(trial));
    const RunResult result = MakeResult(PlannedRunFor(trial),
                                        {.converged = status == TrialStatus::kConverged,
                                         .epochs = trial.epochs,
                                         .cost = trial.cost,
                                         .epoch_cost = trial.epoch_cost},
                                        earlier);
    ZEUS_TRY(BatchSizePolicy * policy, policies_.For(trial.gpu_model));
    policy->Observe(result);
    detail["result"] = ResultDetail(result);
  }
  if (status == TrialStatus::kConverged && Teaches(trial) &&
      !(job_.least_cost && *job_.least_cost <= trial.cost)) {
    job_.least_cost = trial.cost;
    job_.least_cost_batch_size = trial.batch_size;
  }
  ZEUS_RETURN_IF_ERROR(Append(EventKind::kTrialEnded, trial.number, std::move(detail)));
  return transaction_.UpdateTrial(trial);
}

Result<Joules> JobChange::EarlierCost(const Trial& trial) {
  if (trial.attempt == 0) return Joules(0.0);
  ZEUS_TRY(const std::vector<Trial> tries,
           transaction_.TrialsOfRecurrence(job_.spec.id, trial.recurrence));
  Joules sum{};
  for (const Trial& earlier : tries) {
    if (earlier.attempt < trial.attempt && earlier.status == TrialStatus::kStopped)
      sum += earlier.cost;
  }
  return sum;
}

Result<bool> JobChange::DeadlineHasPassed(const Trial& trial) {
  if (!job_.spec.deadline) return false;
  ZEUS_TRY(const std::vector<Trial> tries,
           transaction_.TrialsOfRecurrence(job_.spec.id, trial.recurrence));
  Seconds spent = trial.time;
  for (const Trial& other : tries) {
    if (other.number != trial.number) spent += other.time;
  }
  return spent >= *job_.spec.deadline;
}

Result<bool> JobChange::AnotherTryMayHelp(const Trial& trial) {
  if (trial.status != TrialStatus::kStopped || trial.role == RunRole::kBaseline) return false;
  ZEUS_TRY(const bool too_late, DeadlineHasPassed(trial));
  if (too_late) return false;
  ZEUS_TRY(const BatchSizePolicy* policy, policies_.For(trial.gpu_model));
  return zeus::AnotherTryMayHelp(*policy, PlannedRunFor(trial), job_.least_cost.has_value());
}

Result<ReportAnswer> JobChange::AnswerAbout(const Trial& trial) {
  ZEUS_TRY(const bool another, AnotherTryMayHelp(trial));
  return ReportAnswer{
      .stop = !IsActive(trial.status),
      .converged = trial.status == TrialStatus::kConverged,
      .retry = another,
      .message = trial.reason,
      .trial = trial,
  };
}

Result<Trial> JobChange::Heartbeat(std::int64_t number) {
  ZEUS_TRY(Trial trial, Find(number));
  if (IsFinal(trial.status))
    return Error{ErrorCode::kConflict, fmt::format("trial: trial {} of job {} has ended: {}",
                                                   number, job_.spec.id, trial.reason)};
  if (trial.status == TrialStatus::kExpired) {
    trial.status = trial.epochs > 0 ? TrialStatus::kReporting : TrialStatus::kDispatched;
    trial.ended_at.reset();
    trial.reason.clear();
  }
  Renew(trial);
  ZEUS_RETURN_IF_ERROR(transaction_.UpdateTrial(trial));
  return trial;
}

Result<Trial> JobChange::EndTrial(const TrialEnd& end) {
  ZEUS_TRY(Trial trial, Find(end.trial));
  if (IsFinal(trial.status)) return trial;
  // The policy can learn nothing from a run that ended before its first epoch.
  const TrialStatus status = trial.epochs > 0 ? end.status : TrialStatus::kFailed;
  ZEUS_RETURN_IF_ERROR(End(trial, status, end.reason));
  return trial;
}

Status JobChange::CheckBatchSize(int batch_size) const {
  if (std::ranges::binary_search(job_.spec.batch_sizes, batch_size)) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("batch_size: {} is not one of job {}'s ({})", batch_size, job_.spec.id,
                           fmt::join(job_.spec.batch_sizes, ", "))};
}

Status JobChange::LearnEpochCost(const EpochCostReport& report) {
  ZEUS_RETURN_IF_ERROR(CheckBatchSize(report.batch_size));
  const LearnedEpochCost learned{
      .gpu_model = report.gpu_model.empty() ? job_.spec.gpu_model : report.gpu_model,
      .batch_size = report.batch_size,
      .cost = ComputeZeusCost(job_.spec.eta, report.max_power.value_or(job_.spec.max_power),
                              report.energy, report.time)};
  ZEUS_TRY(BatchSizePolicy * policy, policies_.For(learned.gpu_model));
  policy->LearnEpochCost(learned.gpu_model, learned.batch_size, learned.cost);
  return Append(EventKind::kEpochCostLearned, std::nullopt, EpochCostDetail(learned));
}

}  // namespace zeus
