#pragma once

#include <optional>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

// The exploration with pruning of Zeus §4.4 (Algorithm 3, lines 2-9). The paper observes that costs
// are convex in the batch size: where one fails to reach the target, those further away from the
// default fail, too, and need not be tried. Each round tries the default batch size, then smaller
// ones until one fails, then larger ones until one fails. Those that converged are the candidates
// of the next round, and the cheapest of them is its default. The candidates after the last round
// are worth sampling; if nothing ever converged, the default is the only one. One owner.
class PruningExplorer {
 public:
  // Batch sizes ascending; the default is one of them.
  PruningExplorer(std::vector<int> batch_sizes, int default_batch_size, int rounds);

  // Returns the batch size to explore next; nullopt when exploration is over.
  std::optional<int> Next() const;
  // Records the result of a run with Next(). Costs only matter relative to each other.
  void Observe(bool converged, Joules cost);

  // The batch sizes that were not pruned, ascending.
  const std::vector<int>& candidates() const { return candidates_; }
  // Whether the batch size was pruned in an earlier round or failed in this one.
  bool Dropped(int batch_size) const;

  Json Save() const;
  static Result<PruningExplorer> Restore(PruningExplorer fresh, const Json& state);

 private:
  using Cost = std::optional<Joules>;  // nullopt: the run did not converge.

  std::optional<int> NextInRound() const;
  void EndRound();
  void GiveUp();

  std::vector<int> candidates_;
  int job_default_;
  int default_;  // The default of this round.
  int rounds_left_;
  bool any_converged_ = false;    // Whether any run of any round converged.
  ByBatchSize<Cost> explored_{};  // Results of this round.
};

}  // namespace zeus
