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
#include "zeus/plan/session_profile.h"
#include "zeus/plan/session_repository.h"

namespace zeus {

// Brings ranks that know each other only by number to one plan, as the server of the reference
// implementation does: every rank registers, asks for its clocks, and may report what it measured.
//
// The clocks are those of a plan that the metadata names ("plan=ID"), or of the schedule in the
// options, or they are found out ("microbatches=8"): in each round everybody runs at one clock,
// from the highest down, and when all of them are measured a plan is submitted under the session's
// id. A report with several clocks for an instruction ends that at once.
//
// State is in the repository: any number of these may share one. Thread-safe; what it is given must
// outlive it.
class PipelineSessions {
 public:
  struct Options {
    // For sessions that say nothing else: a list for each stage, or for each rank.
    std::vector<pipeline::RankClocks> schedule{};
    Seconds forgotten_after = std::chrono::hours(24 * 7);  // Since anybody asked or told something.
    Entropy entropy = SystemEntropy;
  };

  PipelineSessions(SessionRepository& repository, PlanService& plans, const Clock& clock,
                   Options options);

  // The degrees and the metadata of `asked`; the rest is made up. No two get the same id, which is
  // that of a tenant (identifier.h) when there is a name space; so is the plan that it names.
  Result<PipelineSession> Register(const PipelineSession& asked,
                                   const std::string& name_space = "");
  // Whether it was the last one that was missing.
  Result<bool> AddRank(const std::string& id, const SessionRank& rank);
  // nullopt while ranks are missing, or while others have not reported this rank's last round.
  Result<std::optional<pipeline::RankClocks>> ClocksFor(const std::string& id, int rank);
  // How many ranks have registered.
  Result<int> RegisteredRanks(const std::string& id);
  // Whether this ended the round. kInvalidArgument when the report makes no sense, which is not
  // kept then; or when no plan can be made of all that was measured: the session starts over then.
  Result<bool> Report(const std::string& id, RankReport report);

  // Forgets sessions that nobody uses any more. Returns how many; call it now and then.
  Result<int> DeleteUnused();

 private:
  // A session with all that is known about it.
  struct State {
    PipelineSession session{};
    std::vector<SessionRank> ranks{};
    std::vector<SessionMeasurement> measurements{};
  };

  Status CheckSource(const PipelineSession& session, const std::string& name_space) const;
  Result<State> Load(const std::string& id);
  // Ends the round when everybody has reported it; whether it did.
  Result<bool> Settle(State& state);
  Result<std::string> SubmitPlan(const State& state);
  Result<pipeline::RankClocks> ClocksOf(const State& state, const SessionRank& rank) const;

  SessionRepository& repository_;
  PlanService& plans_;
  const Clock& clock_;
  const Options options_;
};

}  // namespace zeus
