#include "zeus/plan/pipeline_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/identifier.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/optimizer/pipeline/schedule.h"
#include "zeus/plan/session_repository.h"

namespace zeus {
namespace {

constexpr int kUpdateAttempts = 8;
constexpr int kSessionsAtOnce = 100;
constexpr int kMostRanks = 1 << 16;
constexpr std::size_t kLongestMetadata = 10'000;
Status CheckDegrees(const PipelineSession& session) {
  std::int64_t ranks = 1;
  for (const auto& [field, degree] : {std::pair{"dp_degree", session.data_parallel},
                                      {"pp_degree", session.pipeline_parallel},
                                      {"tp_degree", session.tensor_parallel}}) {
    if (degree < 1) return FieldError(field, "must be 1 or more");
    ranks *= degree;
    if (ranks > kMostRanks)
      return FieldError("world_size", fmt::format("must be at most {}", kMostRanks));
  }
  if (session.metadata.size() > kLongestMetadata)
    return FieldError("job_metadata", fmt::format("is longer than {} bytes", kLongestMetadata));
  return Ok();
}

Status CheckPlace(const PipelineSession& session, const SessionRank& rank) {
  for (const auto& [field, number, count] :
       {std::tuple{"rank", rank.rank, session.world_size()},
        {"dp_rank", rank.data_rank, session.data_parallel},
        {"pp_rank", rank.pipeline_rank, session.pipeline_parallel},
        {"tp_rank", rank.tensor_rank, session.tensor_parallel}})
    if (number < 0 || number >= count)
      return FieldError(field, fmt::format("must be between 0 and {}", count - 1));
  const auto positive = [](int clock) { return clock > 0; };
  if (rank.clocks_mhz.empty() || !std::ranges::all_of(rank.clocks_mhz, positive))
    return FieldError("available_frequencies", "at least one is needed, each in MHz");
  return Ok();
}

// Returns the lowest clock of the rank's GPU that is not below the planned one, so that no other
// rank has to wait, or else its highest. Zero, which leaves the clock as it is, stays zero.
Hertz NearestAvailable(const SessionRank& rank, Hertz planned) {
  if (planned == Hertz()) return planned;
  int nearest = 0;
  for (const int clock : rank.clocks_mhz)
    if (clock >= std::llround(planned.ToMega()) && (nearest == 0 || clock < nearest))
      nearest = clock;
  return Hertz::FromMega(nearest > 0 ? nearest : std::ranges::max(rank.clocks_mhz));
}

bool AllRegistered(const PipelineSession& session, const std::vector<SessionRank>& ranks) {
  return static_cast<int>(ranks.size()) == session.world_size();
}

const SessionRank* FindRank(const std::vector<SessionRank>& ranks, int number) {
  const auto found = std::ranges::find(ranks, number, &SessionRank::rank);
  return found == ranks.end() ? nullptr : &*found;
}

bool HasReported(const std::vector<SessionMeasurement>& measurements, int round, int rank) {
  return std::ranges::any_of(measurements, [&](const SessionMeasurement& measurement) {
    return measurement.round == round && measurement.rank == rank;
  });
}

Result<pipeline::Schedule> ToSchedule(const PipelineSession& session,
                                      const SessionSettings& settings) {
  return pipeline::MakeSchedule(settings.schedule, {.stages = session.pipeline_parallel,
                                                    .microbatches = settings.microbatches});
}

}  // namespace

PipelineSessions::PipelineSessions(SessionRepository& repository, PlanService& plans,
                                   const Clock& clock, Options options)
    : repository_(repository), plans_(plans), clock_(clock), options_(std::move(options)) {}

// --- registration ---

// Checks that there is a source of clocks, before any rank waits for them.
Status PipelineSessions::CheckSource(const PipelineSession& session,
                                     const std::string& name_space) const {
  ZEUS_TRY(const SessionSettings settings, SettingsFrom(session.metadata));
  const auto stages = static_cast<std::size_t>(session.pipeline_parallel);
  if (!settings.plan.empty()) {
    ZEUS_RETURN_IF_ERROR(CheckIdentifier("job_metadata", settings.plan));
    ZEUS_TRY(const CurrentPlan current, plans_.Get(ScopedId(name_space, settings.plan)));
    if (current.plan.stages.size() == stages) return Ok();
    return FieldError("pp_degree", fmt::format("plan {} has {} stages, not {}", settings.plan,
                                               current.plan.stages.size(), stages));
  }
  if (settings.microbatches > 0) {
    ZEUS_TRY([[maybe_unused]] const pipeline::Schedule schedule, ToSchedule(session, settings));
    return Ok();
  }
  if (options_.schedule.empty())
    return FieldError("job_metadata",
                      "must say where clocks come from: plan=ID of a plan, or microbatches=8 (and "
                      "schedule=1f1b) to find them out; or start the server with "
                      "--pipeline-schedule");
  if (options_.schedule.size() == stages ||
      options_.schedule.size() == static_cast<std::size_t>(session.world_size()))
    return Ok();
  return FieldError("pp_degree", fmt::format("the server's schedule has {} lists: for a pipeline "
                                             "of so many stages or ranks",
                                             options_.schedule.size()));
}

Result<PipelineSession> PipelineSessions::Register(const PipelineSession& asked,
                                                   const std::string& name_space) {
  ZEUS_RETURN_IF_ERROR(CheckDegrees(asked));
  ZEUS_RETURN_IF_ERROR(CheckSource(asked, name_space));
  ZEUS_TRY(const SessionSettings settings, SettingsFrom(asked.metadata));
  PipelineSession session = asked;
  session.plan_id = settings.plan.empty() ? "" : ScopedId(name_space, settings.plan);
  session.round = 0;
  session.created_at = session.used_at = clock_.WallNow();
  for (int attempt = 0; attempt < kUpdateAttempts; ++attempt) {
    session.id =
        ScopedId(name_space, fmt::format("{}-dp{}-pp{}-tp{}-{:014x}", ToText(session.created_at),
                                         session.data_parallel, session.pipeline_parallel,
                                         session.tensor_parallel, options_.entropy()));
    Status inserted = repository_.Insert(session);
    if (inserted.ok()) return session;
    if (inserted.error().code != ErrorCode::kConflict) return std::move(inserted).error();
  }
  return Error{ErrorCode::kUnavailable, "no id could be made up that is not taken: ask again"};
}

Result<bool> PipelineSessions::AddRank(const std::string& id, const SessionRank& rank) {
  ZEUS_TRY(const PipelineSession session, repository_.Find(id));
  ZEUS_RETURN_IF_ERROR(CheckPlace(session, rank));
  ZEUS_RETURN_IF_ERROR(repository_.AddRank(id, rank));
  ZEUS_RETURN_IF_ERROR(repository_.MarkUsed(id, clock_.WallNow()));
  ZEUS_TRY(const std::vector<SessionRank> ranks, repository_.Ranks(id));
  return AllRegistered(session, ranks);
}

Result<int> PipelineSessions::RegisteredRanks(const std::string& id) {
  ZEUS_TRY(const std::vector<SessionRank> ranks, repository_.Ranks(id));
  return static_cast<int>(ranks.size());
}

// --- clocks ---

Result<PipelineSessions::State> PipelineSessions::Load(const std::string& id) {
  State state;
  ZEUS_TRY(state.session, repository_.Find(id));
  ZEUS_TRY(state.ranks, repository_.Ranks(id));
  ZEUS_TRY(state.measurements, repository_.Measurements(id));
  return state;
}

Result<std::optional<pipeline::RankClocks>> PipelineSessions::ClocksFor(const std::string& id,
                                                                        int rank) {
  ZEUS_TRY(State state, Load(id));
  if (!AllRegistered(state.session, state.ranks)) return std::optional<pipeline::RankClocks>();
  const SessionRank* const asking = FindRank(state.ranks, rank);
  if (asking == nullptr)
    return FieldError("rank",
                      fmt::format("must be between 0 and {}", state.session.world_size() - 1));
  // The process that received the last report of the round may have died before it ended the round.
  ZEUS_TRY([[maybe_unused]] const bool ended, EndRoundIfComplete(state));
  if (state.session.plan_id.empty() && HasReported(state.measurements, state.session.round, rank))
    return std::optional<pipeline::RankClocks>();
  ZEUS_TRY(pipeline::RankClocks clocks, FindClocks(state, *asking));
  for (auto& [instruction, clock] : clocks) clock = NearestAvailable(*asking, clock);
  ZEUS_RETURN_IF_ERROR(repository_.MarkUsed(id, clock_.WallNow()));
  return std::optional(std::move(clocks));
}

Result<pipeline::RankClocks> PipelineSessions::FindClocks(const State& state,
                                                          const SessionRank& rank) const {
  const auto stage = static_cast<std::size_t>(rank.pipeline_rank);
  pipeline::RankClocks clocks;
  if (!state.session.plan_id.empty()) {
    ZEUS_TRY(const CurrentPlan current, plans_.Get(state.session.plan_id));
    for (const pipeline::PlannedInstruction& planned : current.plan.stages.at(stage))
      clocks.emplace_back(planned.instruction, planned.clock);
    return clocks;
  }
  ZEUS_TRY(const SessionSettings settings, SettingsFrom(state.session.metadata));
  if (settings.microbatches == 0) {
    const bool by_stage =
        options_.schedule.size() == static_cast<std::size_t>(state.session.pipeline_parallel);
    const std::size_t place = by_stage ? stage : static_cast<std::size_t>(rank.rank);
    if (place < options_.schedule.size()) return options_.schedule[place];
    return Error{ErrorCode::kUnavailable,
                 "the server that registered this pipeline had another --pipeline-schedule"};
  }
  const std::vector<int> sweep = ClocksToMeasure(state.ranks);
  if (sweep.empty())
    return Error{ErrorCode::kConflict,
                 "available_frequencies: there is no clock that all ranks have"};
  const auto round = std::min(static_cast<std::size_t>(state.session.round), sweep.size() - 1);
  ZEUS_TRY(const pipeline::Schedule schedule, ToSchedule(state.session, settings));
  for (const pipeline::Instruction& instruction : schedule.stages.at(stage))
    clocks.emplace_back(instruction.name, Hertz::FromMega(sweep[round]));
  return clocks;
}

// --- measurements ---

Result<bool> PipelineSessions::Report(const std::string& id, RankReport report) {
  ZEUS_TRY(State state, Load(id));
  const SessionRank* const rank = FindRank(state.ranks, report.rank);
  if (rank == nullptr) return FieldError("rank", fmt::format("{} has not registered", report.rank));
  ZEUS_RETURN_IF_ERROR(repository_.MarkUsed(id, clock_.WallNow()));
  ZEUS_TRY(const SessionSettings settings, SettingsFrom(state.session.metadata));
  // A session with a plan or a fixed schedule needs no measurements.
  if (!state.session.plan_id.empty() || settings.microbatches == 0) return false;
  ZEUS_TRY(const pipeline::Schedule schedule, ToSchedule(state.session, settings));
  std::map<std::string, int> runs;
  for (const auto& instruction : schedule.stages.at(static_cast<std::size_t>(rank->pipeline_rank)))
    ++runs[instruction.name];
  ZEUS_RETURN_IF_ERROR(KeepInstructions(runs, report));
  std::optional<Hertz> given;
  if (AllRegistered(state.session, state.ranks)) {
    ZEUS_TRY(const pipeline::RankClocks clocks, FindClocks(state, *rank));
    given = clocks.front().second;
  }
  SessionMeasurement measurement{.round = state.session.round, .rank = report.rank};
  ZEUS_TRY(measurement.points, PointLines(report, given));
  ZEUS_RETURN_IF_ERROR(repository_.PutMeasurement(id, measurement));
  ZEUS_TRY(state, Load(id));
  return EndRoundIfComplete(state);
}

Result<bool> PipelineSessions::EndRoundIfComplete(State& state) {
  PipelineSession& session = state.session;
  if (!session.plan_id.empty() || !AllRegistered(session, state.ranks)) return false;
  bool whole = false;
  int reported = 0;
  for (const SessionMeasurement& measurement : state.measurements) {
    if (measurement.round != session.round) continue;
    ++reported;
    whole = whole || IsWholeProfile(measurement.points);
  }
  if (reported < session.world_size()) return false;
  const auto rounds = static_cast<int>(ClocksToMeasure(state.ranks).size());
  // A whole profile replaces the measurements of earlier rounds, with which it would conflict.
  if (whole)
    std::erase_if(state.measurements, [&](const SessionMeasurement& measurement) {
      return measurement.round != session.round;
    });
  if (whole || session.round + 1 >= rounds) {
    auto submitted = SubmitPlan(state);
    // It is not known which rank's measurements are wrong, so all ranks measure again.
    if (!submitted.ok() && submitted.error().code == ErrorCode::kInvalidArgument) {
      ZEUS_RETURN_IF_ERROR(repository_.StartOver(session));
      return Error{ErrorCode::kInvalidArgument,
                   submitted.error().message +
                       ": no plan can be made of what was measured, and it is forgotten: ask for "
                       "a schedule and measure again"};
    }
    ZEUS_TRY(session.plan_id, std::move(submitted));
  }
  ZEUS_RETURN_IF_ERROR(repository_.EndRound(session));
  ++session.round;
  return true;
}

Result<std::string> PipelineSessions::SubmitPlan(const State& state) {
  const PipelineSession& session = state.session;
  ZEUS_TRY(const SessionSettings settings, SettingsFrom(session.metadata));
  PlanSpec spec{.id = session.id,
                .schedule = settings.schedule,
                .microbatches = settings.microbatches,
                .data_parallel = session.data_parallel,
                .tensor_parallel = session.tensor_parallel,
                .slowdown = settings.slowdown};
  ZEUS_TRY(spec.profile, ProfileFrom(state.ranks, state.measurements));
  spec.profile.blocking_power =
      settings.blocking_power * static_cast<double>(session.tensor_parallel);
  ZEUS_TRY(const CurrentPlan current, plans_.Submit(spec));
  return current.id;
}

Result<int> PipelineSessions::DeleteUnused() {
  const auto age = std::chrono::duration_cast<std::chrono::microseconds>(options_.forgotten_after);
  return repository_.DeleteUnused(clock_.WallNow() - age, kSessionsAtOnce);
}

}  // namespace zeus
