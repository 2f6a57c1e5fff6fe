#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus {

// A pipeline whose ranks register one by one, measure, and ask for their clocks. This is how
// clients of the reference implementation (Perseus) get a plan.
struct PipelineSession {
  std::string id{};
  int data_parallel = 1;
  int pipeline_parallel = 1;
  int tensor_parallel = 1;
  std::string metadata{};  // The client's description; see session_repository.h.
  std::string plan_id{};   // Id of its plan; empty: it has no plan yet.
  int round = 0;           // Round of measurements; grows when every rank has reported.
  WallTime created_at{};
  WallTime used_at{};  // Time of the last request.

  int world_size() const { return data_parallel * pipeline_parallel * tensor_parallel; }
  friend bool operator==(const PipelineSession&, const PipelineSession&) = default;
};

// A registered rank and its place in the pipeline.
struct SessionRank {
  int rank = 0;
  int data_rank = 0;
  int pipeline_rank = 0;
  int tensor_rank = 0;
  std::vector<int> clocks_mhz{};  // Clocks that its GPU can be set to, the highest first.

  friend bool operator==(const SessionRank&, const SessionRank&) = default;
};

// Returns Ok when `rank` may register beside `known`: they have different numbers and places, or
// are the same. Otherwise returns kConflict, which names the other rank.
Status CheckBeside(const SessionRank& rank, const SessionRank& known);

// The measurements of a rank in one round: lines of a profile (pipeline/profile_csv.h) without the
// header.
struct SessionMeasurement {
  int round = 0;
  int rank = 0;
  std::string points{};

  friend bool operator==(const SessionMeasurement&, const SessionMeasurement&) = default;
};

// Stores sessions. A change is on disk when the call returns Ok. Thread-safe; several processes may
// share one database. All calls return kNotFound when there is no such session; errors of the
// database are kUnavailable (try again) or kInternal.
class SessionRepository {
 public:
  virtual ~SessionRepository() = default;

  // Returns kConflict when there is a session with this id.
  virtual Status Insert(const PipelineSession& session) = 0;
  virtual Result<PipelineSession> Find(const std::string& id) = 0;
  virtual Status MarkUsed(const std::string& id, WallTime at) = 0;

  // The same rank may be added again. Returns kConflict when the number is taken by a different
  // rank, or the place by another number (see CheckBeside()).
  virtual Status AddRank(const std::string& id, const SessionRank& rank) = 0;
  // Returns the ranks in the order of their numbers.
  virtual Result<std::vector<SessionRank>> Ranks(const std::string& id) = 0;

  // Replaces an earlier report of the rank in this round.
  virtual Status PutMeasurement(const std::string& id, const SessionMeasurement& measurement) = 0;
  // Returns the measurements in the order of rounds, then of ranks.
  virtual Result<std::vector<SessionMeasurement>> Measurements(const std::string& id) = 0;

  // Ends round `session.round` and stores session.plan_id. Does nothing if another process has
  // ended that round.
  virtual Status EndRound(const PipelineSession& session) = 0;

  // Deletes all measurements and goes back to the first round. Does nothing if another process has
  // ended round `session.round`.
  virtual Status StartOver(const PipelineSession& session) = 0;

  // Deletes at most `limit` sessions that were not used since `before`, with their ranks and
  // measurements. Returns how many it deleted.
  virtual Result<int> DeleteUnused(WallTime before, int limit) = 0;
};

// Keeps sessions in memory. Thread-safe.
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
    std::map<std::pair<int, int>, SessionMeasurement> measurements{};  // Keyed by round and rank.
  };

  // The caller holds mutex_.
  Result<Entry*> FindEntry(const std::string& id);

  std::mutex mutex_;
  std::map<std::string, Entry> entries_{};  // Guarded by mutex_.
};

// The settings of a pipeline, which a client gives in its metadata as words like "microbatches=8",
// separated by blanks, commas or semicolons. Other words are ignored.
struct SessionSettings {
  std::string plan{};  // Id of the plan whose clocks are used; empty: none.
  std::string schedule = "1f1b";
  int microbatches = 0;  // 0: not given.
  double slowdown = 1.0;
  Watts blocking_power{70};  // Power of one waiting GPU; the default is that of Perseus.
};

// Returns kInvalidArgument, for the field job_metadata, when a known word has no valid value.
Result<SessionSettings> SettingsFrom(std::string_view metadata);

// Returns the clocks at which a session measures, the highest first: at most eight that all ranks
// have, spread evenly down to two fifths of the highest. Lower clocks save no energy on GPUs.
std::vector<int> ClocksToMeasure(const std::vector<SessionRank>& ranks);

// The measurements of a rank. Points without a clock were measured at the clock that the rank was
// given.
struct RankReport {
  struct Point {
    std::string instruction{};
    std::optional<Hertz> clock{};
    Seconds time{0};
    Joules energy{};
    int times_in_iteration = 0;  // How often it ran in each iteration; 0: not reported.
  };
  int rank = 0;
  std::vector<Point> points{};
};

// Drops instructions that the rank's stage does not run. `runs` maps each instruction of the stage
// to how often it runs in an iteration. Returns kInvalidArgument when one of them is missing, or
// ran another number of times.
Status KeepInstructions(const std::map<std::string, int>& runs, RankReport& report);

// Returns SessionMeasurement::points of a report. `given` is the clock of points without one; if
// there is none either, returns kConflict.
Result<std::string> PointLines(const RankReport& report, std::optional<Hertz> given);

// Whether the points contain an instruction at several clocks, so that no more rounds are needed.
bool IsWholeProfile(std::string_view points);

// Makes the profile of the pipeline from the measurements of all its ranks, without blocking power.
// Returns kInvalidArgument when the ranks measured different things.
Result<pipeline::PipelineProfile> ProfileFrom(const std::vector<SessionRank>& ranks,
                                              const std::vector<SessionMeasurement>& measurements);

}  // namespace zeus
