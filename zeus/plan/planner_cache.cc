#include "zeus/plan/planner_cache.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "zeus/plan/plan_repository.h"

namespace zeus {
namespace {

// Plans that are kept for one pipeline. A straggler comes, stays and goes, so few paces recur.
constexpr std::size_t kMostPlans = 8;

}  // namespace

Result<std::shared_ptr<const SolvedPipeline>> SolvedPipeline::Solve(
    const PlanSpec& spec, const pipeline::SolveOptions& options) {
  ZEUS_TRY(pipeline::Problem problem, ToProblem(spec));
  ZEUS_TRY(std::unique_ptr<pipeline::Planner> planner,
           pipeline::Planner::Make(std::move(problem), {.solve = options}));
  return std::shared_ptr<const SolvedPipeline>(new SolvedPipeline(std::move(planner), spec));
}

SolvedPipeline::SolvedPipeline(std::unique_ptr<pipeline::Planner> planner, const PlanSpec& spec)
    : planner_(std::move(planner)),
      rules_(spec.clock_changes),
      usual_deadline_(planner_->baseline().time * spec.slowdown),
      ranks_(spec.profile.stages * spec.data_parallel * spec.tensor_parallel) {}

Result<SolvedPipeline::Plan> SolvedPipeline::PlanAt(std::optional<Seconds> pace) const {
  if (pace && *pace <= usual_deadline_) pace.reset();
  const std::optional<double> key = pace ? std::optional(pace->count()) : std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  }
  ZEUS_TRY(pipeline::PipelinePlan made,
           pace ? planner_->PlanForPace(*pace, rules_) : planner_->Plan(usual_deadline_, rules_));
  auto plan = std::make_shared<const pipeline::PipelinePlan>(std::move(made));
  const std::lock_guard lock(mutex_);
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_.try_emplace(key, std::move(plan)).first->second;
}

Result<pipeline::PipelinePlan> SolvedPipeline::PlanFor(Seconds deadline) const {
  return planner_->Plan(deadline, rules_);
}

PlanFrontier SolvedPipeline::frontier() const {
  return {.fastest_time = planner_->fastest_time(),
          .baseline_time = baseline().time,
          .baseline_energy = baseline().energy,
          .points = planner_->frontier().points()};
}

bool SameClocks(const pipeline::PipelinePlan& a, const pipeline::PipelinePlan& b) {
  if (a.stages.size() != b.stages.size()) return false;
  for (std::size_t stage = 0; stage < a.stages.size(); ++stage) {
    if (a.stages[stage].size() != b.stages[stage].size()) return false;
    for (std::size_t i = 0; i < a.stages[stage].size(); ++i)
      if (a.stages[stage][i].clock != b.stages[stage][i].clock) return false;
  }
  return true;
}

namespace {

Error Stopped() { return Error{ErrorCode::kUnavailable, "the planner is about to end"}; }

}  // namespace

Result<PlannerCache::Solved> PlannerCache::Get(const PlanRecord& plan, const Solve& solve) {
  const Key key(plan.id, plan.incarnation);
  std::unique_lock lock(mutex_);
  if (const auto found = flights_.find(key); found != flights_.end()) {
    const std::shared_ptr<Flight> flight = found->second;
    changed_.wait(lock, [&] { return flight->outcome.has_value(); });
    // If it is still in the cache, it becomes the latest.
    if (const auto kept = flights_.find(key); kept != flights_.end() && kept->second == flight)
      order_.splice(order_.begin(), order_, flight->place);
    return *flight->outcome;
  }
  const auto flight = std::make_shared<Flight>();
  flights_.emplace(key, flight);
  lock.unlock();
  Result<Solved> outcome = SolveOne(solve);
  lock.lock();
  flight->outcome = outcome;
  Keep(key, *flight);
  lock.unlock();
  changed_.notify_all();
  return outcome;
}

Result<PlannerCache::Solved> PlannerCache::SolveOne(const Solve& solve) {
  if (Status turn = WaitForTurn(); !turn.ok()) {
    const std::lock_guard lock(mutex_);
    ++figures_.failures;
    return std::move(turn).error();
  }
  const TimePoint start = clock_.Now();
  const pipeline::SolveOptions options{.progress = [this](double) {
    const std::lock_guard lock(mutex_);
    return !stopping_;
  }};
  // Other callers wait for this solve, so they must get an outcome even if it throws.
  Result<Solved> outcome = [&]() -> Result<Solved> {
    try {
      return solve(options);
    } catch (const std::exception& failure) {
      return Error{ErrorCode::kInternal, std::string("solving failed: ") + failure.what()};
    }
  }();
  const std::lock_guard lock(mutex_);
  --solving_;
  ++(outcome.ok() ? figures_.solves : figures_.failures);
  figures_.time += clock_.Now() - start;
  changed_.notify_all();
  return outcome;
}

Status PlannerCache::WaitForTurn() {
  std::unique_lock lock(mutex_);
  if (solving_ >= limits_.solves_at_once && waiting_ >= limits_.most_waiting)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} pipelines are being solved and {} wait for it: ask again later",
                             solving_, waiting_)};
  ++waiting_;
  changed_.wait(lock, [this] { return stopping_ || solving_ < limits_.solves_at_once; });
  --waiting_;
  if (stopping_) return Stopped();
  ++solving_;
  return Ok();
}

void PlannerCache::Keep(const Key& key, Flight& flight) {
  const auto place = flights_.find(key);
  const bool forgotten = place == flights_.end() || place->second.get() != &flight;
  if (!flight.outcome->ok()) {
    if (!forgotten) flights_.erase(place);
    return;
  }
  if (forgotten) return;
  order_.push_front(key);
  flight.place = order_.begin();
  ++figures_.pipelines;
  figures_.computations += flight.outcome->value()->computations();
  while (figures_.computations > limits_.most_computations && order_.size() > 1)
    Remove(flights_.find(order_.back()));
}

void PlannerCache::Remove(std::map<Key, std::shared_ptr<Flight>>::iterator flight) {
  --figures_.pipelines;
  figures_.computations -= flight->second->outcome->value()->computations();
  order_.erase(flight->second->place);
  flights_.erase(flight);
}

PlannerCache::Solved PlannerCache::Peek(const PlanRecord& plan) {
  const std::lock_guard lock(mutex_);
  const auto found = flights_.find(Key(plan.id, plan.incarnation));
  if (found == flights_.end() || !found->second->outcome || !found->second->outcome->ok())
    return nullptr;
  return found->second->outcome->value();
}

void PlannerCache::Forget(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (auto next = flights_.lower_bound({id, 0});
       next != flights_.end() && next->first.first == id;) {
    const auto flight = next++;
    if (flight->second->outcome)
      Remove(flight);
    else
      flights_.erase(flight);  // Its solver will notice in Keep() and not keep the outcome.
  }
}

void PlannerCache::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

SolveFigures PlannerCache::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

}  // namespace zeus
