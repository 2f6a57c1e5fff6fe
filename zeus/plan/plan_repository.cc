#include "zeus/plan/plan_repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/identifier.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus {
namespace {

constexpr std::string_view kCustom = "custom";
constexpr int kMostReplicas = 1'000'000;
constexpr double kLargestSlowdown = 1000;
constexpr Seconds kLongestLatency{60};

Status CheckCount(std::string_view field, int count) {
  if (count < 1) return FieldError(field, fmt::format("must be 1 or more: {}", count));
  if (count > kMostReplicas)
    return FieldError(field, fmt::format("must be at most {}: {}", kMostReplicas, count));
  return Ok();
}

Status CheckSchedule(const PlanSpec& spec) {
  if (spec.schedule == kCustom) {
    if (spec.custom_schedule.empty())
      return FieldError("custom_schedule", "a custom schedule needs the list of its instructions");
    return Ok();
  }
  if (!spec.custom_schedule.empty())
    return FieldError("custom_schedule", "is there, but schedule is not \"custom\"");
  ZEUS_RETURN_IF_ERROR(CheckCount("microbatches", spec.microbatches));
  return CheckCount("chunks", spec.chunks);
}

Status CheckClockChanges(const pipeline::ClockChangeRules& rules) {
  if (rules.least_instructions < 1)
    return FieldError("least_instructions", "must be 1 or more instructions between two changes");
  if (!(rules.latency >= Seconds(0) && rules.latency <= kLongestLatency))
    return FieldError("latency_seconds",
                      fmt::format("must be between 0 and {}", kLongestLatency.count()));
  return Ok();
}

Result<pipeline::Schedule> ToSchedule(const PlanSpec& spec) {
  if (spec.schedule == kCustom) return pipeline::ParseSchedule(spec.custom_schedule);
  return pipeline::MakeSchedule(
      spec.schedule,
      {.stages = spec.profile.stages, .microbatches = spec.microbatches, .chunks = spec.chunks});
}

Json ToJson(const pipeline::ClockChangeRules& rules) {
  return {{"least_instructions", rules.least_instructions},
          {"latency_seconds", rules.latency.count()}};
}

Result<pipeline::ClockChangeRules> ClockChangesFromJson(const Json& json) {
  pipeline::ClockChangeRules rules;
  double latency = rules.latency.count();
  FieldReader fields("clock_changes", json);
  fields.Read("least_instructions", rules.least_instructions);
  fields.Read("latency_seconds", latency);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  rules.latency = Seconds(latency);
  return rules;
}

}  // namespace

bool operator==(const PlanSpec& a, const PlanSpec& b) { return ToJson(a) == ToJson(b); }

Result<PlanSpec> Checked(PlanSpec spec) {
  ZEUS_RETURN_IF_ERROR(CheckScopedIdentifier("id", spec.id));
  ZEUS_RETURN_IF_ERROR(CheckSchedule(spec));
  ZEUS_RETURN_IF_ERROR(CheckCount("data_parallel", spec.data_parallel));
  ZEUS_RETURN_IF_ERROR(CheckCount("tensor_parallel", spec.tensor_parallel));
  ZEUS_RETURN_IF_ERROR(CheckClockChanges(spec.clock_changes));
  if (!(spec.slowdown > 0 && spec.slowdown <= kLargestSlowdown))
    return FieldError("slowdown",
                      fmt::format("must be greater than 0 and at most {}: 1.05 lets an iteration "
                                  "take 5 % longer than at the highest clocks",
                                  kLargestSlowdown));
  ZEUS_RETURN_IF_ERROR(pipeline::Check(spec.profile));
  return spec;
}

Result<pipeline::Problem> ToProblem(const PlanSpec& spec) {
  ZEUS_TRY(const pipeline::Schedule schedule, ToSchedule(spec));
  return pipeline::MakeProblem(spec.profile, schedule);
}

Status CheckSame(const PlanSpec& asked, const PlanSpec& stored) {
  const Json ours = ToJson(stored);
  const Json theirs = ToJson(asked);
  std::vector<std::string> differences;
  for (const auto& [field, value] : ours.items()) {
    if (theirs.at(field) == value) continue;
    // Profiles and custom schedules are too long to be shown.
    differences.push_back(
        value.is_primitive() && field != "custom_schedule"
            ? fmt::format("{} is {}, not {}", field, value.dump(), theirs.at(field).dump())
            : field + " differs");
  }
  if (differences.empty()) return Ok();
  return Error{ErrorCode::kConflict,
               fmt::format("id: plan {} exists with another specification ({}); use another id, "
                           "or delete it first",
                           stored.id, fmt::join(differences, "; "))};
}

Json ToJson(const PlanSpec& spec) {
  return {{"id", spec.id},
          {"schedule", spec.schedule},
          {"microbatches", spec.microbatches},
          {"chunks", spec.chunks},
          {"custom_schedule", spec.custom_schedule},
          {"data_parallel", spec.data_parallel},
          {"tensor_parallel", spec.tensor_parallel},
          {"clock_changes", ToJson(spec.clock_changes)},
          {"slowdown", spec.slowdown},
          {"profile", pipeline::ToJson(spec.profile)}};
}

Result<PlanSpec> PlanSpecFromJson(const Json& json) {
  PlanSpec spec;
  Json profile;
  Json clock_changes = ToJson(spec.clock_changes);
  FieldReader fields("a plan", json);
  fields.ReadUnlessNull("id", spec.id);
  fields.Read("schedule", spec.schedule);
  fields.Read("microbatches", spec.microbatches);
  fields.Read("chunks", spec.chunks);
  fields.Read("custom_schedule", spec.custom_schedule);
  fields.Read("data_parallel", spec.data_parallel);
  fields.Read("tensor_parallel", spec.tensor_parallel);
  fields.Read("clock_changes", clock_changes);
  fields.Read("slowdown", spec.slowdown);
  fields.Require("profile", profile);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  ZEUS_TRY(spec.clock_changes, ClockChangesFromJson(clock_changes));
  ZEUS_TRY(spec.profile, pipeline::ProfileFromJson(profile));
  return spec;
}

namespace {

Error NoPlan(const std::string& id) {
  return Error{ErrorCode::kNotFound, "id: there is no plan " + Quote(id)};
}

}  // namespace

MemoryPlanRepository::Entry* MemoryPlanRepository::FindSame(const PlanRecord& record) {
  const auto found = entries_.find(record.id);
  const bool same =
      found != entries_.end() && found->second.record.incarnation == record.incarnation;
  return same ? &found->second : nullptr;
}

Status MemoryPlanRepository::Insert(const PlanRecord& record, const PlanSpec& spec) {
  const std::lock_guard lock(mutex_);
  if (!entries_.try_emplace(record.id, Entry{.record = record, .spec = spec}).second)
    return Error{ErrorCode::kConflict, "id: there is a plan " + Quote(record.id)};
  return Ok();
}

Result<bool> MemoryPlanRepository::Update(const PlanRecord& record) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = FindSame(record);
  if (entry == nullptr) return NoPlan(record.id);
  if (entry->record.revision != record.revision) return false;
  ++entry->record.revision;
  entry->record.version = record.version;
  entry->record.pace = record.pace;
  return true;
}

Status MemoryPlanRepository::Delete(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (entries_.erase(id) == 0) return NoPlan(id);
  return Ok();
}

Result<PlanRecord> MemoryPlanRepository::Find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return NoPlan(id);
  return found->second.record;
}

Result<PlanSpec> MemoryPlanRepository::FindSpec(const PlanRecord& record) {
  const std::lock_guard lock(mutex_);
  const Entry* const entry = FindSame(record);
  if (entry == nullptr) return NoPlan(record.id);
  return entry->spec;
}

Result<std::int64_t> MemoryPlanRepository::Count(const std::string& name_space) {
  const std::lock_guard lock(mutex_);
  return std::count_if(entries_.begin(), entries_.end(),
                       [&](const auto& entry) { return NameSpaceOf(entry.first) == name_space; });
}

Result<std::vector<std::string>> MemoryPlanRepository::List(const std::string& after, int limit) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> ids;
  for (auto entry = entries_.upper_bound(after); entry != entries_.end(); ++entry) {
    if (static_cast<int>(ids.size()) >= limit) break;
    ids.push_back(entry->first);
  }
  return ids;
}

}  // namespace zeus
