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

// A pipeline whose frontier is known: answers for it are quick from here on. Thread-safe.
class SolvedPipeline {
 public:
  using Plan = std::shared_ptr<const pipeline::PipelinePlan>;

  // Takes long.
  static Result<std::shared_ptr<const SolvedPipeline>> Solve(const PlanSpec& spec,
                                                             const pipeline::SolveOptions& options);

  // The plan that holds while iterations take `pace` because of a straggler; nullopt: there is
  // none. A pace that the spec allows anyway is like none.
  Result<Plan> PlanAt(std::optional<Seconds> pace) const;
  Result<pipeline::PipelinePlan> PlanFor(Seconds deadline) const;
  PlanFrontier frontier() const;

  const pipeline::Evaluation& baseline() const { return planner_->baseline(); }
  int ranks() const { return ranks_; }
  // What it takes in memory grows with them.
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

// Whether the same clocks are set, whatever else a plan foretells.
bool SameClocks(const pipeline::PipelinePlan& a, const pipeline::PipelinePlan& b);

// What solving may take from the rest of the machine.
struct SolveLimits {
  int solves_at_once = 2;
  int most_waiting = 6;  // For their turn; more are told to come again (kUnavailable).
  // Of all pipelines that are kept solved; the one asked for last is kept in any case.
  std::int64_t most_computations = std::int64_t{1} << 18;
};

struct SolveFigures {
  std::int64_t solves = 0;        // That succeeded.
  std::int64_t failures = 0;      // That did not, those that were told to come again included.
  Seconds time{0};                // Of both together.
  std::int64_t pipelines = 0;     // That are kept.
  std::int64_t computations = 0;  // Of these.
};

// Keeps pipelines solved, those asked for last, and solves each once, however many ask at the same
// time. No lock is held meanwhile. Thread-safe; the clock must outlive it.
class PlannerCache {
 public:
  using Solved = std::shared_ptr<const SolvedPipeline>;
  using Solve = std::function<Result<Solved>(const pipeline::SolveOptions&)>;

  PlannerCache(const Clock& clock, const SolveLimits& limits) : clock_(clock), limits_(limits) {}

  // What `solve` makes of the plan, now or earlier. A failure is not kept.
  Result<Solved> Get(const PlanRecord& plan, const Solve& solve);
  void Forget(const std::string& id);

  // Ends what is being solved, and everything from now on, with kUnavailable.
  void Stop();

  SolveFigures figures() const;

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // Id and incarnation.
  // One solve, under way or done.
  struct Flight {
    std::optional<Result<Solved>> outcome{};  // Guarded by mutex_.
    std::list<Key>::iterator place{};         // In order_, once it is done.
  };

  Result<Solved> SolveOne(const Solve& solve);
  Status TakeTurn();
  void Keep(const Key& key, Flight& flight);
  void Remove(std::map<Key, std::shared_ptr<Flight>>::iterator flight);

  const Clock& clock_;
  const SolveLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<Flight>> flights_{};  // Guarded by mutex_, as are the next.
  std::list<Key> order_{};                            // Those that are done, the latest first.
  SolveFigures figures_{};
  int solving_ = 0;
  int waiting_ = 0;
  bool stopping_ = false;
};

}  // namespace zeus
