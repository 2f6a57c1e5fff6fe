#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// A pipeline whose frontier was solved, so that plans for it are quick to make. Thread-safe.
class SolvedPipeline {
 public:
  using Plan = std::shared_ptr<const pipeline::PipelinePlan>;

  // Solves the frontier, which takes up to minutes for large pipelines.
  static Result<std::shared_ptr<const SolvedPipeline>> Solve(const PlanSpec& spec,
                                                             const pipeline::SolveOptions& options);

  // Returns the plan for iterations that take `pace` because of a straggler, or without one
  // (nullopt). A pace within the deadline of the spec counts as none.
  Result<Plan> PlanAt(std::optional<Seconds> pace) const;
  Result<pipeline::PipelinePlan> PlanFor(Seconds deadline) const;
  PlanFrontier frontier() const;

  const pipeline::Evaluation& baseline() const { return planner_->baseline(); }
  int ranks() const { return ranks_; }
  // The size of the problem, by which memory is budgeted.
  int computations() const { return planner_->problem().graph.size(); }

 private:
  SolvedPipeline(std::unique_ptr<pipeline::Planner> planner, const PlanSpec& spec);

  std::unique_ptr<const pipeline::Planner> planner_;
  const pipeline::ClockChangeRules rules_;
  const Seconds usual_deadline_;
  const int ranks_;
  mutable std::mutex mutex_;
  mutable std::map<std::optional<double>, Plan> plans_{};  // By pace; guarded by mutex_.
};

// Whether both plans set the same clocks, even if predicted times and energies differ.
bool SameClocks(const pipeline::PipelinePlan& a, const pipeline::PipelinePlan& b);

// Limits on the share of the machine that solving may take.
struct SolveLimits {
  int solves_at_once = 2;
  int most_waiting = 6;  // Solves that may wait for their turn; further ones get kUnavailable.
  // Greatest size of all solved pipelines in the cache together. The latest one is always kept.
  std::int64_t most_computations = std::int64_t{1} << 18;
};

struct SolveFigures {
  std::int64_t solves = 0;        // Successful solves.
  std::int64_t failures = 0;      // Failed solves, including those refused because too many wait.
  Seconds time{0};                // Time of all solves, successful or not.
  std::int64_t pipelines = 0;     // Solved pipelines in the cache.
  std::int64_t computations = 0;  // Size of those pipelines together.
};

// Keeps the pipelines that were used last, and solves each of them once however many callers ask
// for it at the same time. No lock is held during a solve. Thread-safe; the clock must outlive it.
class PlannerCache {
 public:
  using Solved = std::shared_ptr<const SolvedPipeline>;
  using Solve = std::function<Result<Solved>(const pipeline::SolveOptions&)>;

  PlannerCache(const Clock& clock, const SolveLimits& limits) : clock_(clock), limits_(limits) {}

  // Returns the solved pipeline of a plan, from the cache or by calling `solve`. A failure is not
  // cached.
  Result<Solved> Get(const PlanRecord& plan, const Solve& solve);
  // Returns the solved pipeline of a plan if it is in the cache, else null. Never waits.
  Solved Peek(const PlanRecord& plan);
  void Forget(const std::string& id);

  // Ends running solves and all later calls with kUnavailable.
  void Stop();

  SolveFigures figures() const;

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // Id and incarnation.
  // One solve, under way or finished.
  struct Flight {
    std::optional<Result<Solved>> outcome{};  // Guarded by mutex_.
    std::list<Key>::iterator place{};         // Place in order_, once the solve is finished.
  };

  Result<Solved> SolveOne(const Solve& solve);
  Status WaitForTurn();
  void Keep(const Key& key, Flight& flight);
  void Remove(std::map<Key, std::shared_ptr<Flight>>::iterator flight);

  const Clock& clock_;
  const SolveLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<Flight>> flights_{};  // Guarded by mutex_, as is all that follows.
  std::list<Key> order_{};                            // Finished solves, the latest used first.
  SolveFigures figures_{};
  int solving_ = 0;
  int waiting_ = 0;
  bool stopping_ = false;
};

}  // namespace zeus
