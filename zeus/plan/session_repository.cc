#include "zeus/plan/session_repository.h"

#include <fmt/format.h>

#include "zeus/base/text.h"

namespace zeus {

Result<MemorySessionRepository::Entry*> MemorySessionRepository::FindEntry(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end())
    return Error{ErrorCode::kNotFound, "job_id: there is no pipeline " + Quote(id)};
  return &found->second;
}

Status MemorySessionRepository::Insert(const PipelineSession& session) {
  const std::lock_guard lock(mutex_);
  if (!entries_.try_emplace(session.id, Entry{.session = session}).second)
    return Error{ErrorCode::kConflict, "job_id: there is a pipeline " + Quote(session.id)};
  return Ok();
}

Result<PipelineSession> MemorySessionRepository::Find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const Entry* const entry, FindEntry(id));
  return entry->session;
}

Status MemorySessionRepository::MarkUsed(const std::string& id, WallTime at) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(id));
  entry->session.used_at = at;
  return Ok();
}

Status MemorySessionRepository::AddRank(const std::string& id, const SessionRank& rank) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(id));
  for (const auto& [number, known] : entry->ranks) ZEUS_RETURN_IF_ERROR(CheckBeside(rank, known));
  entry->ranks.try_emplace(rank.rank, rank);
  return Ok();
}

Result<std::vector<SessionRank>> MemorySessionRepository::Ranks(const std::string& id) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const Entry* const entry, FindEntry(id));
  std::vector<SessionRank> ranks;
  for (const auto& [number, rank] : entry->ranks) ranks.push_back(rank);
  return ranks;
}

Status MemorySessionRepository::PutMeasurement(const std::string& id,
                                               const SessionMeasurement& measurement) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(id));
  entry->measurements[{measurement.round, measurement.rank}] = measurement;
  return Ok();
}

Result<std::vector<SessionMeasurement>> MemorySessionRepository::Measurements(
    const std::string& id) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const Entry* const entry, FindEntry(id));
  std::vector<SessionMeasurement> measurements;
  for (const auto& [key, measurement] : entry->measurements) measurements.push_back(measurement);
  return measurements;
}

Status MemorySessionRepository::EndRound(const PipelineSession& session) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(session.id));
  if (entry->session.round != session.round) return Ok();
  ++entry->session.round;
  entry->session.plan_id = session.plan_id;
  return Ok();
}

Status MemorySessionRepository::StartOver(const PipelineSession& session) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(session.id));
  if (entry->session.round != session.round) return Ok();
  entry->session.round = 0;
  entry->measurements.clear();
  return Ok();
}

Result<int> MemorySessionRepository::DeleteUnused(WallTime before, int limit) {
  const std::lock_guard lock(mutex_);
  int deleted = 0;
  for (auto next = entries_.begin(); next != entries_.end() && deleted < limit;) {
    const auto entry = next++;
    if (entry->second.session.used_at >= before) continue;
    entries_.erase(entry);
    ++deleted;
  }
  return deleted;
}

Status CheckBeside(const SessionRank& rank, const SessionRank& known) {
  if (rank.rank == known.rank) {
    if (rank == known) return Ok();
    return Error{ErrorCode::kConflict,
                 fmt::format("rank: {} has registered as somebody else", rank.rank)};
  }
  if (rank.data_rank != known.data_rank || rank.pipeline_rank != known.pipeline_rank ||
      rank.tensor_rank != known.tensor_rank)
    return Ok();
  return Error{
      ErrorCode::kConflict,
      fmt::format("rank: {} cannot be dp_rank {}, pp_rank {}, tp_rank {}: rank {} is", rank.rank,
                  rank.data_rank, rank.pipeline_rank, rank.tensor_rank, known.rank)};
}

}  // namespace zeus
