#include "zeus/plan/plan_repository.h"

#include <algorithm>

#include "zeus/base/identifier.h"
#include "zeus/base/text.h"

namespace zeus {
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
