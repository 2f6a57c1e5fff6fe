#include "zeus/job/job.h"

#include <array>
#include <utility>

namespace zeus {
namespace {

template <class Value, std::size_t kSize>
using NameTable = std::array<std::pair<Value, std::string_view>, kSize>;

constexpr NameTable<TrialStatus, 6> kStatusNames = {{
    {TrialStatus::kDispatched, "dispatched"},
    {TrialStatus::kReporting, "reporting"},
    {TrialStatus::kConverged, "converged"},
    {TrialStatus::kStopped, "stopped"},
    {TrialStatus::kFailed, "failed"},
    {TrialStatus::kExpired, "expired"},
}};

constexpr NameTable<RunRole, 4> kRoleNames = {{
    {RunRole::kExploring, "exploring"},
    {RunRole::kConcurrent, "concurrent"},
    {RunRole::kExploiting, "exploiting"},
    {RunRole::kBaseline, "baseline"},
}};

constexpr NameTable<EventKind, 7> kEventNames = {{
    {EventKind::kJobCreated, "job_created"},
    {EventKind::kTrialStarted, "trial_started"},
    {EventKind::kTrialReported, "trial_reported"},
    {EventKind::kTrialEnded, "trial_ended"},
    {EventKind::kTrialSkipped, "trial_skipped"},
    {EventKind::kTrialExpired, "trial_expired"},
    {EventKind::kEpochCostLearned, "epoch_cost_learned"},
}};

template <class Table, class Value>
std::string_view NameIn(const Table& table, Value value) {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return "unknown";
}

template <class Value, std::size_t kSize>
std::optional<Value> ValueIn(const NameTable<Value, kSize>& table, std::string_view name) {
  for (const auto& [value, known] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(TrialStatus status) { return NameIn(kStatusNames, status); }
std::string_view Name(RunRole role) { return NameIn(kRoleNames, role); }
std::string_view Name(EventKind kind) { return NameIn(kEventNames, kind); }

std::optional<TrialStatus> TrialStatusNamed(std::string_view name) {
  return ValueIn(kStatusNames, name);
}
std::optional<RunRole> RunRoleNamed(std::string_view name) { return ValueIn(kRoleNames, name); }
std::optional<EventKind> EventKindNamed(std::string_view name) {
  return ValueIn(kEventNames, name);
}

}  // namespace zeus
