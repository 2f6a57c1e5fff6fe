#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "zeus/plan/session_repository.h"

namespace zeus {

// Sessions that live as long as the process. Thread-safe.
class MemorySessionRepository final : public SessionRepository {
 public:
  Status Insert(const PipelineSession& session) override;
  Result<PipelineSession> Find(const std::string& id) override;
  Status MarkUsed(const std::string& id, WallTime at) override;
  Status AddRank(const std::string& id, const SessionRank& rank) override;
  Result<std::vector<SessionRank>> Ranks(const std::string& id) override;
  Status PutMeasurement(const std::string& id, const SessionMeasurement& measurement) override;
  Result<std::vector<SessionMeasurement>> Measurements(const std::string& id) override;
  Status EndRound(const PipelineSession& session) override;
  Status StartOver(const PipelineSession& session) override;
  Result<int> DeleteUnused(WallTime before, int limit) override;

 private:
  struct Entry {
    PipelineSession session{};
    std::map<int, SessionRank> ranks{};
    std::map<std::pair<int, int>, SessionMeasurement> measurements{};  // By round and rank.
  };

  // mutex_ is held.
  Result<Entry*> FindEntry(const std::string& id);

  std::mutex mutex_;
  std::map<std::string, Entry> entries_{};  // Guarded by mutex_.
};

}  // namespace zeus
