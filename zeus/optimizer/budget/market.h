#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "zeus/optimizer/budget/problem.h"

// The parts of Solve(): what jobs need at least, what more they could buy, and buying it. Watts are
// plain numbers here, because the loops over them decide how long an answer takes.
namespace zeus::water_filling::internal {

// How many GPUs of a job are in a domain or in the domains inside it.
struct Load {
  std::uint32_t domain;
  int gpus;
};

// A corner of the lower hull of a job's curve.
struct Corner {
  double limit;
  double taken;  // Watts of the budget, by one GPU.
  double loss;   // Loss of the whole job, in the unit of Allocation::loss.
};

// The hull from a corner to the one before it.
struct Stretch {
  double worth;  // Loss saved per watt. A job's stretches have falling worths.
  std::uint32_t job;
  std::uint32_t corner;  // Index of its upper end in Market::corners.
};

// Everything that Solve() knows of a problem. Index by job: first[j] to first[j + 1] are the
// indices of its loads or corners.
struct Market {
  const Problem& problem;
  std::vector<Load> loads{};
  std::vector<std::uint32_t> first_load{};
  bool spanning = false;  // Whether some job lies in domains of which neither contains the other.

  std::vector<LimitRange> ranges{};
  std::vector<Watts> start{};  // Limits from which jobs buy.
  std::vector<bool> bound_missed{};
  std::vector<double> capacity{};  // Watts of each domain for jobs; what the lowest limits take,
                                   // where that is more.
  std::vector<double> missing{};   // By which they are more.
  std::vector<double> free{};      // Capacity less what the start limits take.

  std::vector<Corner> corners{};
  std::vector<std::uint32_t> first_corner{};
  std::vector<Stretch> stretches{};  // In the order in which they are bought.

  std::size_t jobs() const { return problem.jobs.size(); }
  std::span<const Load> LoadsOf(std::size_t job) const;
  std::span<const Corner> CornersOf(std::size_t job) const;
  double TakenAt(std::size_t job, Watts limit) const;  // By one GPU.
  double LossAt(std::size_t job, Watts limit) const;   // By the whole job.
  double LossAtPoint(std::size_t job, const CurvePoint& point) const;
};

// Makes a market in which every job starts at the lowest limit that its slowdown bound allows. If
// not all bounds can be kept, those of heavy jobs are, and among equals those that need few watts.
Market OpenMarket(const Problem& problem);

// For Objective::kWorst: raises the start limits to the least slowdown that all jobs can have, and
// returns the least one that they could have if limits were not multiples of a step.
double RaiseToCommonSlowdown(Market& market);

// Makes corners and stretches, after the start limits are final.
void FillShelves(Market& market);

// Limits of any fraction: the optimum of the relaxed problem where no job is spanning.
struct Relaxed {
  std::vector<double> prices{};  // Price of a watt in each domain; they certify the bound.
};
Relaxed BuyFractions(const Market& market);

// Buys in whole steps and in the order of `stretches`; returns the limit of every job.
std::vector<Watts> BuySteps(const Market& market, std::span<const Stretch> stretches);

// Returns the loss below which no choice of limits can be, by the Lagrangian dual at `prices`. Any
// prices from 0 give such a bound; the best ones give the highest.
double LowerBound(const Market& market, std::span<const double> prices);

// Where jobs span domains: improves prices by subgradients, and limits by buying in the order of
// worth per price, while the distance between both is above 0.1 % of the total weight.
struct Improved {
  std::vector<Watts> limits{};
  std::vector<double> prices{};
};
Improved ImproveByPrices(const Market& market, Improved start);

// The sum of the jobs' losses.
double LossOf(const Market& market, std::span<const Watts> limits);

// The loss that counts as 100 %: weight x GPUs, for Objective::kCost the least cost.
double WholeLoss(const Market& market);

}  // namespace zeus::water_filling::internal
