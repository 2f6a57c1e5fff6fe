#include "zeus/plan/local_plan_service.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/plan/plan_repository.h"

namespace zeus {
namespace {

// Attempts at a change before it fails, each of which another process may thwart.
constexpr int kAttempts = 16;
// A pace outside of this range is a mistake, and the energy of waiting for it might overflow.
constexpr Seconds kShortestPace{1e-6};
constexpr Seconds kLongestPace{1e6};

Error Contended(const std::string& id) {
  return Error{ErrorCode::kUnavailable,
               fmt::format("id: plan {} is being changed by many at once: ask again", id)};
}

Status CheckTime(std::string_view field, Seconds time) {
  if (std::isfinite(time.count()) && time > Seconds(0)) return Ok();
  return FieldError(field, "must be greater than 0 and finite");
}

}  // namespace

LocalPlanService::LocalPlanService(PlanRepository& repository, const Clock& clock)
    : LocalPlanService(repository, clock, Options()) {}

LocalPlanService::LocalPlanService(PlanRepository& repository, const Clock& clock, Options options)
    : repository_(repository),
      clock_(clock),
      options_(std::move(options)),
      cache_(clock, options_.solving) {}

// Finds every error of a spec without solving it, so that the spec can be stored before the solve.
Status LocalPlanService::CheckCanBePlanned(const PlanSpec& spec) const {
  ZEUS_TRY(const pipeline::Problem problem, ToProblem(spec));
  if (problem.graph.size() > options_.most_instructions)
    return FieldError("microbatches",
                      fmt::format("the pipeline has {} instructions, and frontiers are solved here "
                                  "for at most {}: plan for fewer microbatches, or one deadline "
                                  "with zeus plan",
                                  problem.graph.size(), options_.most_instructions));
  const Seconds fastest = Evaluate(problem, FastestChoice(problem)).time;
  const Seconds baseline = Evaluate(problem, HighestClockChoice(problem)).time;
  if (spec.slowdown * baseline < fastest)
    return FieldError(
        "slowdown", fmt::format("{} means {:.6g} s, but the fastest iteration takes "
                                "{:.6g} s",
                                spec.slowdown, spec.slowdown * baseline.count(), fastest.count()));
  return Ok();
}

Result<PlanRecord> LocalPlanService::FindOrInsert(const PlanSpec& spec, bool& created) {
  const bool named = !spec.id.empty();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t incarnation = options_.entropy();
    PlanSpec stored = spec;
    if (!named) stored.id = fmt::format("plan-{:014x}", incarnation);
    PlanRecord record{.id = stored.id, .incarnation = incarnation, .created_at = clock_.WallNow()};
    Status inserted = repository_.Insert(record, stored);
    created = inserted.ok();
    if (created) return record;
    if (inserted.error().code != ErrorCode::kConflict) return std::move(inserted).error();
    if (!named) continue;
    auto found = repository_.Find(spec.id);
    auto other = found.ok() ? repository_.FindSpec(found.value()) : found.error();
    if (other.ok()) {
      ZEUS_RETURN_IF_ERROR(CheckSame(spec, other.value()));
      return found;
    }
    // The plan was deleted in the meantime: the next attempt may insert it.
    if (other.error().code != ErrorCode::kNotFound) return std::move(other).error();
  }
  return Contended(spec.id);
}

Result<PlannerCache::Solved> LocalPlanService::Solve(const PlanRecord& record) {
  return cache_.Get(record,
                    [&](const pipeline::SolveOptions& options) -> Result<PlannerCache::Solved> {
                      ZEUS_TRY(const PlanSpec spec, repository_.FindSpec(record));
                      return SolvedPipeline::Solve(spec, options);
                    });
}

Result<CurrentPlan> LocalPlanService::Current(const PlanRecord& record) {
  ZEUS_TRY(const PlannerCache::Solved solved, Solve(record));
  ZEUS_TRY(const SolvedPipeline::Plan plan, solved->PlanAt(record.pace));
  return CurrentPlan{.id = record.id,
                     .version = record.version,
                     .pace = record.pace,
                     .plan = *plan,
                     .baseline_time = solved->baseline().time,
                     .baseline_energy = solved->baseline().energy,
                     .ranks = solved->ranks()};
}

Result<CurrentPlan> LocalPlanService::Submit(const PlanSpec& asked) {
  ZEUS_TRY(const PlanSpec spec, Checked(asked));
  ZEUS_RETURN_IF_ERROR(CheckCanBePlanned(spec));
  bool created = false;
  ZEUS_TRY(const PlanRecord record, FindOrInsert(spec, created));
  ZEUS_TRY(CurrentPlan current, Current(record));
  current.created = created;
  return current;
}

Result<CurrentPlan> LocalPlanService::Get(const std::string& id) {
  ZEUS_TRY(const PlanRecord record, repository_.Find(id));
  return Current(record);
}

Result<bool> LocalPlanService::Exists(const std::string& id) {
  const Result<PlanRecord> record = repository_.Find(id);
  if (!record.ok() && record.error().code != ErrorCode::kNotFound) return record.error();
  return record.ok();
}

Result<std::optional<CurrentPlan>> LocalPlanService::GetNewer(const std::string& id,
                                                              std::int64_t version) {
  ZEUS_TRY(const PlanRecord record, repository_.Find(id));
  if (record.version == version) return std::optional<CurrentPlan>();
  ZEUS_TRY(CurrentPlan current, Current(record));
  return std::optional(std::move(current));
}

Result<PlanFrontier> LocalPlanService::GetFrontier(const std::string& id) {
  ZEUS_TRY(const PlanRecord record, repository_.Find(id));
  ZEUS_TRY(const PlannerCache::Solved solved, Solve(record));
  return solved->frontier();
}

Result<pipeline::PipelinePlan> LocalPlanService::PlanFor(const std::string& id, Seconds deadline) {
  ZEUS_RETURN_IF_ERROR(CheckTime("deadline_seconds", deadline));
  ZEUS_TRY(const PlanRecord record, repository_.Find(id));
  ZEUS_TRY(const PlannerCache::Solved solved, Solve(record));
  return solved->PlanFor(deadline);
}

Result<CurrentPlan> LocalPlanService::ReportPace(const std::string& id,
                                                 std::optional<Seconds> pace) {
  if (pace && !(*pace >= kShortestPace && *pace <= kLongestPace))
    return FieldError("pace_seconds", fmt::format("must be between {:g} and {:g}",
                                                  kShortestPace.count(), kLongestPace.count()));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ZEUS_TRY(PlanRecord record, repository_.Find(id));
    if (record.pace == pace) return Current(record);
    // The new plan is made before the record is changed, so that a failure changes nothing.
    ZEUS_TRY(const PlannerCache::Solved solved, Solve(record));
    ZEUS_TRY(const SolvedPipeline::Plan before, solved->PlanAt(record.pace));
    ZEUS_TRY(const SolvedPipeline::Plan after, solved->PlanAt(pace));
    record.pace = pace;
    if (!SameClocks(*before, *after)) ++record.version;
    ZEUS_TRY(const bool updated, repository_.Update(record));
    if (updated) return Current(record);
  }
  return Contended(id);
}

Result<PlanSummary> LocalPlanService::Summarize(const std::string& id) {
  ZEUS_TRY(const PlanRecord record, repository_.Find(id));
  ZEUS_TRY(const PlanSpec spec, repository_.FindSpec(record));
  const int stages = spec.profile.stages;
  PlanSummary summary{.id = id,
                      .created_at = record.created_at,
                      .version = record.version,
                      .pace = record.pace,
                      .stages = stages,
                      .microbatches = spec.microbatches,
                      .schedule = spec.schedule,
                      .replicas = spec.data_parallel,
                      .gpus = stages * spec.data_parallel * spec.tensor_parallel};
  const PlannerCache::Solved solved = cache_.Peek(record);
  if (!solved) return summary;
  ZEUS_TRY(const SolvedPipeline::Plan plan, solved->PlanAt(record.pace));
  summary.solved = PlanSummary::Solved{.time = plan->time,
                                       .energy = plan->energy,
                                       .baseline_time = solved->baseline().time,
                                       .baseline_energy = solved->baseline().energy};
  return summary;
}

Result<std::vector<std::string>> LocalPlanService::List(const std::string& after, int limit) {
  return repository_.List(after, limit);
}

Status LocalPlanService::Delete(const std::string& id) {
  ZEUS_RETURN_IF_ERROR(repository_.Delete(id));
  cache_.Forget(id);
  return Ok();
}

}  // namespace zeus
