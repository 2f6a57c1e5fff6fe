#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus {

// A pipeline whose ranks register one by one, measure, and ask for their clocks: how clients of the
// reference implementation come to a plan.
struct PipelineSession {
  std::string id{};
  int data_parallel = 1;
  int pipeline_parallel = 1;
  int tensor_parallel = 1;
  std::string metadata{};  // What the client said about it.
  std::string plan_id{};   // Whose clocks it runs at; empty: it has no plan yet.
  int round = 0;           // Of measurements: grows when every rank has reported.
  WallTime created_at{};
  WallTime used_at{};  // When somebody asked or told something last.

  int world_size() const { return data_parallel * pipeline_parallel * tensor_parallel; }
  friend bool operator==(const PipelineSession&, const PipelineSession&) = default;
};

struct SessionRank {
  int rank = 0;
  int data_rank = 0;
  int pipeline_rank = 0;
  int tensor_rank = 0;
  std::vector<int> clocks_mhz{};  // That its GPU can be set to, the highest first.

  friend bool operator==(const SessionRank&, const SessionRank&) = default;
};

// Ok when `rank` may register beside `known`: no other rank, and nobody else in its place.
// kConflict otherwise, which says who is there.
Status CheckBeside(const SessionRank& rank, const SessionRank& known);

// What a rank measured in a round: lines of a profile (pipeline/profile_csv.h), without the header.
struct SessionMeasurement {
  int round = 0;
  int rank = 0;
  std::string points{};

  friend bool operator==(const SessionMeasurement&, const SessionMeasurement&) = default;
};

// Where sessions live. What was answered with Ok is on disk. Thread-safe; several processes may
// share one database. Everything is kNotFound when there is no such session; errors of the database
// are kUnavailable (try again) or kInternal.
class SessionRepository {
 public:
  virtual ~SessionRepository() = default;

  // kConflict when there is a session of this id.
  virtual Status Insert(const PipelineSession& session) = 0;
  virtual Result<PipelineSession> Find(const std::string& id) = 0;
  virtual Status MarkUsed(const std::string& id, WallTime at) = 0;

  // The same once more is fine; a rank that is there and different, or that takes the place of
  // another, is a kConflict.
  virtual Status AddRank(const std::string& id, const SessionRank& rank) = 0;
  virtual Result<std::vector<SessionRank>> Ranks(const std::string& id) = 0;  // By rank.

  // Replaces what the rank said in this round before.
  virtual Status PutMeasurement(const std::string& id, const SessionMeasurement& measurement) = 0;
  // By round and rank.
  virtual Result<std::vector<SessionMeasurement>> Measurements(const std::string& id) = 0;

  // Ends round `session.round` with its plan_id, unless somebody else has ended it: does nothing
  // then.
  virtual Status EndRound(const PipelineSession& session) = 0;

  // Forgets all measurements and goes back to the first round, unless somebody else has ended round
  // `session.round`: does nothing then.
  virtual Status StartOver(const PipelineSession& session) = 0;

  // Deletes sessions, with all that belongs to them, that were not used since `before`; at most
  // `limit`. Returns how many.
  virtual Result<int> DeleteUnused(WallTime before, int limit) = 0;
};

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
