#pragma once

#include <optional>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/by_batch_size.h"

namespace zeus {

// The exploration of Zeus §4.4 (Algorithm 3, lines 2-9): in each round the default batch size, then
// smaller ones until one fails, then larger ones until one fails. Those that converged are the
// batch sizes of the next round, the cheapest of them its default. What is left after the last
// round is worth sampling; if nothing ever converged, that is the default. One owner.
class PruningExplorer {
 public:
  // Batch sizes ascending; the default is one of them.
  PruningExplorer(std::vector<int> batch_sizes, int default_batch_size, int rounds);

  // The batch size to explore; nullopt when exploration is over.
  std::optional<int> Next() const;
  // What became of Next(). Costs only matter relative to each other.
  void Observe(bool converged, Joules cost);

  // Those still in the running.
  const std::vector<int>& candidates() const { return candidates_; }
  // Failed in this round, or left out of it.
  bool Dropped(int batch_size) const;

  Json Save() const;
  static Result<PruningExplorer> Restore(PruningExplorer fresh, const Json& state);

 private:
  using Cost = std::optional<Joules>;  // nullopt: failed.

  std::optional<int> NextOfRound() const;
  void EndRound();
  void GiveUp();

  std::vector<int> candidates_;
  int usual_;    // The default of the job.
  int default_;  // Of this round.
  int rounds_left_;
  bool any_converged_ = false;    // In any round.
  ByBatchSize<Cost> explored_{};  // In this round.
};

}  // namespace zeus
