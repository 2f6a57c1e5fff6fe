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

// A recurring job and what has been learned about it. Everything but the spec changes under the
// lock of the job's row.
struct Job {
  JobSpec spec{};
  std::uint64_t seed = 0;
  WallTime created_at{};
  std::int64_t recurrences = 0;  // Begun.
  std::int64_t trials = 0;       // Handed out; the number of the last one.
  std::int64_t events = 0;       // The sequence number of the last one.
  Json policy_state{};           // BatchSizePolicy::Save().
  // Of converged trials only: a cheap failure says nothing about what convergence costs.
  std::optional<Joules> least_cost{};
  std::optional<int> least_cost_batch_size{};
};

enum class TrialStatus {
  kDispatched,  // Handed out; nothing heard yet.
  kReporting,   // At least one epoch was reported, and it goes on.
  kConverged,   // Ended: the target was reached.
  kStopped,     // Ended without reaching the target: budget, deadline, greatest number of epochs.
  kFailed,      // Ended by an error or by its user: teaches nothing.
  kExpired,     // Not heard of for the time of its lease. Comes back to life with a report.
};

// dispatched, reporting, converged, stopped, failed, expired.
std::string_view Name(TrialStatus status);
std::optional<TrialStatus> TrialStatusNamed(std::string_view name);
// exploring, concurrent, exploiting, baseline.
std::string_view Name(RunRole role);
std::optional<RunRole> RunRoleNamed(std::string_view name);

// Dispatched or reporting: holds its place.
constexpr bool IsActive(TrialStatus status) {
  return status == TrialStatus::kDispatched || status == TrialStatus::kReporting;
}
// Converged, stopped or failed: nothing changes it any more.
constexpr bool IsFinal(TrialStatus status) {
  return !IsActive(status) && status != TrialStatus::kExpired;
}

// One run of a job with one batch size. Numbers are cumulative since its start.
struct Trial {
  std::string job_id{};
  std::int64_t number = 0;      // Of the job, from 1.
  std::int64_t recurrence = 0;  // From 0.
  int attempt = 0;              // Of the recurrence, from 0.
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
  std::string gpu_model{};
  Watts max_power{};
  TrialStatus status = TrialStatus::kDispatched;
  // Of the request that began it: the same request again gets the same trial. May be empty.
  std::string request_id{};
  WallTime started_at{};
  Seconds lease{};         // How long a sign of life counts.
  WallTime lease_until{};  // By the lease clock in a repository, by the time of day in answers.
  std::optional<WallTime> ended_at{};
  int epochs = 0;
  Seconds time{};
  Joules energy{};
  Joules cost{};
  std::optional<double> metric{};
  std::optional<Joules> epoch_cost{};  // Of the latest epoch, or as the runner knows it better.
  std::optional<Watts> power_limit{};
  std::string reason{};  // Why it ended, for people.
  // The runner vouches for it: the power limit stayed as it was found, and nothing was tried.
  bool undisturbed = false;
  // Other processes used its GPUs: `energy` is its own share, its time is that of a crowded GPU.
  bool shared = false;
};

enum class EventKind {
  kJobCreated,
  kTrialStarted,
  kTrialReported,
  kTrialEnded,    // Converged, stopped or failed.
  kTrialSkipped,  // A batch size was chosen and, by its epoch cost, not worth starting.
  kTrialExpired,
  kEpochCostLearned,
};

std::string_view Name(EventKind kind);  // job_created, trial_started, …
std::optional<EventKind> EventKindNamed(std::string_view name);

// What happened to a job, in the order in which it was committed. The belief of a job is a function
// of its spec, its seed and these (event_replay.h).
struct JobEvent {
  std::string job_id{};
  std::int64_t sequence = 0;  // Of the job, from 1, without gaps.
  WallTime at{};
  EventKind kind = EventKind::kJobCreated;
  std::optional<std::int64_t> trial{};
  Json detail{};
};

}  // namespace zeus
