#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"
#include "zeus/plan/plan_service.h"
#include "zeus/plan/session_repository.h"

namespace zeus {

// Brings ranks that know each other only by number to one plan, with the protocol of the reference
// implementation's server (Perseus): every rank registers, asks for its clocks, and may report its
// measurements.
//
// The clocks come from one of three sources: a plan that the metadata names ("plan=ID"), the
// schedule in the options, or measurements ("microbatches=8"). To measure, all ranks run at one
// clock in each round, from the highest down, and report. After the last round a plan is submitted
// under the session's id. A report with several clocks for an instruction is a whole profile and
// ends the rounds at once.
//
// All state is in the repository, so any number of PipelineSessions may share one. Thread-safe;
// what the constructor is given must outlive it.
class PipelineSessions {
 public:
  struct Options {
    // Clocks of sessions whose metadata name no other source: a list for each stage or each rank.
    std::vector<pipeline::RankClocks> schedule{};
    Seconds forgotten_after = std::chrono::hours(24 * 7);  // Time since the last request.
    Entropy entropy = SystemEntropy;
  };

  PipelineSessions(SessionRepository& repository, PlanService& plans, const Clock& clock,
                   Options options);

  // Makes a session with the degrees and the metadata of `asked`, and a unique id. With a name
  // space (a tenant, see identifier.h), the id is in it, and so is the plan that the metadata name.
  Result<PipelineSession> Register(const PipelineSession& asked,
                                   const std::string& name_space = "");
  // Registers a rank; returns whether all ranks have registered now.
  Result<bool> AddRank(const std::string& id, const SessionRank& rank);
  // Returns the clocks of a rank; nullopt while ranks have not registered, or have not reported a
  // round that this rank has reported.
  Result<std::optional<pipeline::RankClocks>> ClocksFor(const std::string& id, int rank);
  // Returns how many ranks have registered.
  Result<int> RegisteredRanks(const std::string& id);
  // Stores a rank's measurements; returns whether this ended the round. Returns kInvalidArgument
  // when the report is not valid, which is then not stored, or when no plan can be made from all
  // measurements, after which the session starts over.
  Result<bool> Report(const std::string& id, RankReport report);

  // Deletes some of the sessions that were not used for Options::forgotten_after; returns how many.
  // To be called from time to time.
  Result<int> DeleteUnused();

 private:
  // A session with its ranks and measurements.
  struct State {
    PipelineSession session{};
    std::vector<SessionRank> ranks{};
    std::vector<SessionMeasurement> measurements{};
  };

  Status CheckSource(const PipelineSession& session, const std::string& name_space) const;
  Result<State> Load(const std::string& id);
  // Ends the round if all ranks have reported; returns whether it did.
  Result<bool> EndRoundIfComplete(State& state);
  Result<std::string> SubmitPlan(const State& state);
  Result<pipeline::RankClocks> FindClocks(const State& state, const SessionRank& rank) const;

  SessionRepository& repository_;
  PlanService& plans_;
  const Clock& clock_;
  const Options options_;
};

}  // namespace zeus
