#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/units.h"
#include "zeus/job/job_spec.h"

namespace zeus {

// A recurring job and what has been learned about it. Spec, seed and created_at never change; the
// other members change while the job is locked (JobTransaction::LockJob()).
struct Job {
  JobSpec spec{};
  std::uint64_t seed = 0;
  WallTime created_at{};
  std::int64_t recurrences = 0;  // The number of recurrences that have begun.
  std::int64_t trials = 0;       // The number of the latest trial.
  std::int64_t events = 0;       // The sequence number of the latest event.
  Json policy_state{};           // JobPolicy::Save(): states by GPU model, or one for "*".
  // The least cost of converged trials. A cheap failure says nothing about the cost to converge.
  std::optional<Joules> least_cost{};
  std::optional<int> least_cost_batch_size{};
};

enum class TrialStatus {
  kDispatched,  // Started, without a report yet.
  kReporting,   // At least one epoch was reported, and the run goes on.
  kConverged,   // Ended: the target was reached.
  kStopped,     // Ended without reaching the target: budget, deadline, greatest number of epochs.
  kFailed,      // Ended by an error or by its user: the policy learns nothing from it.
  kExpired,     // Silent for longer than its lease. A report or a heartbeat revives it.
};

// Names are "dispatched", "reporting", "converged", "stopped", "failed" and "expired".
std::string_view Name(TrialStatus status);
std::optional<TrialStatus> TrialStatusNamed(std::string_view name);
// Names are "exploring", "concurrent", "exploiting" and "baseline".
std::string_view Name(RunRole role);
std::optional<RunRole> RunRoleNamed(std::string_view name);

// An active trial is dispatched or reporting. It counts as running.
constexpr bool IsActive(TrialStatus status) {
  return status == TrialStatus::kDispatched || status == TrialStatus::kReporting;
}
// A final trial is converged, stopped or failed. It does not change any more.
constexpr bool IsFinal(TrialStatus status) {
  return !IsActive(status) && status != TrialStatus::kExpired;
}

// One run of a job with one batch size. Amounts are cumulative since its start.
struct Trial {
  std::string job_id{};
  std::int64_t number = 0;      // Counts the trials of the job, from 1.
  std::int64_t recurrence = 0;  // Counts the recurrences of the job, from 0.
  int attempt = 0;              // Counts the trials of the recurrence, from 0.
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
  std::string gpu_model{};
  Watts max_power{};
  TrialStatus status = TrialStatus::kDispatched;
  // The id of the request that began the trial; may be empty. The same request gets the same trial.
  std::string request_id{};
  WallTime started_at{};
  Seconds lease{};         // The trial expires when it is silent for so long.
  WallTime lease_until{};  // In a repository by the lease clock, in answers by the time of day.
  std::optional<WallTime> ended_at{};
  int epochs = 0;
  Seconds time{};
  Joules energy{};
  Joules cost{};
  std::optional<double> metric{};
  std::optional<Joules> epoch_cost{};  // The cost of a typical epoch; else of the latest one.
  std::optional<Watts> power_limit{};
  std::string reason{};  // Why the trial ended, in words for users.
  std::string why{};     // Why it has its batch size, in words; empty for runs of old versions.
  // The runner left the power limit as it found it, and tried nothing.
  bool undisturbed = false;
  // Other processes used the GPUs: `energy` is the share of this run, `time` that of a shared GPU.
  bool shared = false;
  // The energy of the run is not known well enough: too short for the sensor, or measured too late.
  bool unmeasured = false;

  // Whether its amounts are those of this run alone, so that they may be learned from and compared.
  bool Comparable() const { return !shared && !unmeasured; }
};

enum class EventKind {
  kJobCreated,
  kTrialStarted,
  kTrialReported,
  kTrialEnded,    // The trial has become final.
  kTrialSkipped,  // A batch size was chosen that, by its known epoch cost, is not worth a trial.
  kTrialExpired,
  kEpochCostLearned,
};

std::string_view Name(EventKind kind);  // "job_created", "trial_started" and so on.
std::optional<EventKind> EventKindNamed(std::string_view name);

// A change of a job. Events are numbered in the order in which they were committed. The state of
// the policy is a function of the spec, the seed and the events (event_replay.h).
struct JobEvent {
  std::string job_id{};
  std::int64_t sequence = 0;  // Counts the events of the job, from 1, without gaps.
  WallTime at{};
  EventKind kind = EventKind::kJobCreated;
  std::optional<std::int64_t> trial{};
  Json detail{};
};

}  // namespace zeus
