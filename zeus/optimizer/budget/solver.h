#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/budget/problem.h"

// Decides the power limit of every job under nested budgets.
//
// All jobs start at their lowest limit, or at the one that their slowdown bound asks for. Then the
// stretches of all curves' lower hulls are bought in the order of slowdown saved per watt, while
// every domain around the job has room; a stretch that does not fit is cut to what fits. Where each
// job lies in one innermost domain, no other choice is better (domains that are nested or apart
// form a polymatroid, for which the greedy choice is optimal), but for the last watt of a limit.
// Jobs across domains are bought by the prices of a Lagrangian dual instead. In both cases the
// prices prove how far from the optimum the answer can be.
namespace zeus::water_filling {

struct JobGrant {
  Watts limit{};        // Limit of each of its GPUs.
  double slowdown = 1;  // Expected there.
  Watts taken{};        // Share of the budget that all its GPUs take.
  // One more watt would save this much: GPUs x weight x slowdown, or watts of cost per watt for
  // Objective::kCost. 0 when no watt would help.
  double marginal = 0;
  bool bound_missed = false;  // There are not enough watts for its max_slowdown.
};

struct DomainUse {
  Watts taken{};    // By jobs; reserved watts are not in it.
  Watts free{};     // Never negative.
  Watts missing{};  // By which the lowest limits of its jobs exceed it; else 0.
  // One more watt for this domain alone would save this much, in the unit of JobGrant::marginal; 0
  // when there is room, or when a domain around it would not let the watt in.
  double price = 0;
};

// Not even the lowest limits fit.
struct Shortfall {
  std::vector<std::size_t> hold{};  // Jobs without which the rest would fit, by rising weight.
  bool enough = true;               // False when it would not fit even without any job.
};

struct Allocation {
  std::vector<JobGrant> jobs{};      // In the order of the problem.
  std::vector<DomainUse> domains{};  // Likewise.
  double mean_slowdown = 1;          // Over GPUs, unweighted.
  double worst_slowdown = 1;
  // The sum of weight x GPUs x (slowdown - 1), the worst slowdown - 1, or watts of cost above the
  // cheapest limits, according to the objective.
  double loss = 0;
  // No choice of limits has a smaller loss.
  double bound = 0;
  // Distance to it in points of per cent: of the mean slowdown, weighted, of the worst slowdown, or
  // of the cost.
  double gap_points = 0;
  std::optional<Shortfall> shortfall{};
  // Sentences for people on everything that could not be had: missing watts and the jobs to hold,
  // slowdown bounds that are missed.
  std::vector<std::string> troubles{};
};

// Returns the errors of Check(). Pure: the same problem has the same answer.
Result<Allocation> Solve(const Problem& problem);

}  // namespace zeus::water_filling
