#include "zeus/optimizer/budget/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/budget/market.h"

namespace zeus::water_filling {

namespace {

using internal::Corner;
using internal::Load;
using internal::Market;

constexpr std::size_t kNamesInASentence = 5;

// The limits, and the prices that prove how good they are.
struct Purchase {
  std::vector<Watts> limits{};
  std::vector<double> prices{};
  double bound = 0;
};

Purchase Buy(Market& market) {
  std::optional<double> common;  // Least slowdown that all jobs can have.
  if (market.problem.objective == Objective::kWorst)
    common = internal::RaiseToCommonSlowdown(market);
  internal::FillShelves(market);
  Purchase purchase{.limits = internal::BuySteps(market, market.stretches),
                    .prices = internal::BuyFractions(market).prices};
  if (market.spanning && !common) {
    internal::Improved improved = internal::ImproveByPrices(
        market, {.limits = std::move(purchase.limits), .prices = std::move(purchase.prices)});
    purchase.limits = std::move(improved.limits);
    purchase.prices = std::move(improved.prices);
  }
  purchase.bound = common ? *common - 1 : internal::LowerBound(market, purchase.prices);
  return purchase;
}

// Returns the worth of the next watt of a job.
double Marginal(const Market& market, std::size_t job, Watts limit) {
  const auto corners = market.CornersOf(job);
  for (std::size_t i = 1; i < corners.size(); ++i) {
    if (corners[i].limit < limit.value() + market.problem.step.value()) continue;
    return (corners[i - 1].loss - corners[i].loss) / (corners[i].taken - corners[i - 1].taken) /
           market.problem.jobs[job].gpus();
  }
  return 0;
}

void AddJobs(const Market& market, const Purchase& purchase, Allocation& allocation) {
  double slowdowns = 0;
  double gpus = 0;
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const Job& job = market.problem.jobs[j];
    const Watts limit = purchase.limits[j];
    const double slowdown = job.curve->SlowdownAt(limit);
    const double count = job.gpus();
    allocation.jobs.push_back(
        {.limit = limit,
         .slowdown = slowdown,
         .taken = Watts(count * market.TakenAt(j, limit)),
         .marginal = Marginal(market, j, limit),
         // A job may have come near enough by what it bought.
         .bound_missed = market.bound_missed[j] && slowdown > *job.max_slowdown + 1e-9});
    slowdowns += count * slowdown;
    gpus += count;
    allocation.worst_slowdown = std::max(allocation.worst_slowdown, slowdown);
  }
  if (gpus > 0) allocation.mean_slowdown = slowdowns / gpus;
}

void AddDomains(const Market& market, const Purchase& purchase, Allocation& allocation) {
  const std::vector<Domain>& domains = market.problem.domains;
  std::vector<double> taken(domains.size(), 0);
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const double per_gpu = market.TakenAt(j, purchase.limits[j]);
    for (const Load& load : market.LoadsOf(j)) taken[load.domain] += load.gpus * per_gpu;
  }
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const double free = (domains[d].watts - domains[d].reserved).value() - taken[d];
    allocation.domains.push_back({.taken = Watts(taken[d]),
                                  .free = Watts(std::max(free, 0.0)),
                                  .missing = Watts(market.missing[d]),
                                  .price = purchase.prices[d]});
  }
}

void AddLoss(const Market& market, const Purchase& purchase, Allocation& allocation) {
  allocation.bound = std::max(purchase.bound, 0.0);
  if (market.problem.objective == Objective::kWorst) {
    allocation.loss = allocation.worst_slowdown - 1;
    allocation.bound = std::min(allocation.bound, allocation.loss);
    allocation.gap_points = 100 * (allocation.loss - allocation.bound);
    return;
  }
  allocation.loss = internal::LossOf(market, purchase.limits);
  allocation.bound = std::min(allocation.bound, allocation.loss);
  const double whole = internal::WholeLoss(market);
  allocation.gap_points = whole > 0 ? 100 * (allocation.loss - allocation.bound) / whole : 0;
}

int DepthOf(const Problem& problem, std::size_t domain) {
  int depth = 0;
  for (auto at = problem.domains[domain].parent; at; at = problem.domains[*at].parent) ++depth;
  return depth;
}

// Holds jobs by rising weight, of equal ones those that free most, until the domain fits.
void HoldIn(const Market& market, std::size_t domain, std::vector<double>& missing,
            std::vector<bool>& held) {
  struct Candidate {
    std::size_t job;
    int gpus;  // In this domain.
    double freed_per_gpu;
  };
  std::vector<Candidate> candidates;
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const double freed =
        market.TakenAt(j, market.ranges[j].lowest) - market.problem.jobs[j].idle.value();
    for (const Load& load : market.LoadsOf(j)) {
      if (load.domain == domain && !held[j] && freed > 0)
        candidates.push_back({.job = j, .gpus = load.gpus, .freed_per_gpu = freed});
    }
  }
  const auto key = [&](const Candidate& candidate) {
    return std::tuple(market.problem.jobs[candidate.job].weight,
                      -candidate.gpus * candidate.freed_per_gpu, candidate.job);
  };
  std::ranges::sort(candidates, {}, key);
  for (const Candidate& candidate : candidates) {
    if (missing[domain] <= 0) break;
    held[candidate.job] = true;
    for (const Load& load : market.LoadsOf(candidate.job))
      missing[load.domain] -= candidate.freed_per_gpu * load.gpus;
  }
}

std::optional<Shortfall> ShortfallOf(const Market& market) {
  if (std::ranges::all_of(market.missing, [](double watts) { return watts <= 0; }))
    return std::nullopt;
  // Innermost domains first: what is held there helps those around it too.
  std::vector<std::size_t> order(market.problem.domains.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t d) { return DepthOf(market.problem, d); });
  Shortfall shortfall;
  std::vector<double> missing = market.missing;
  std::vector<bool> held(market.jobs(), false);
  for (const std::size_t domain : order) {
    if (missing[domain] > 0) HoldIn(market, domain, missing, held);
  }
  for (std::size_t j = 0; j < held.size(); ++j) {
    if (held[j]) shortfall.hold.push_back(j);
  }
  std::ranges::stable_sort(shortfall.hold, {},
                           [&](std::size_t j) { return market.problem.jobs[j].weight; });
  shortfall.enough = std::ranges::all_of(missing, [](double watts) { return watts <= 1e-9; });
  return shortfall;
}

std::string Names(const Problem& problem, const std::vector<std::size_t>& jobs) {
  std::string names;
  for (std::size_t i = 0; i < std::min(jobs.size(), kNamesInASentence); ++i)
    names += (i ? ", " : "") + Quote(problem.jobs[jobs[i]].name);
  if (jobs.size() > kNamesInASentence)
    names += fmt::format(" and {} more", jobs.size() - kNamesInASentence);
  return names;
}

void AddTroubles(const Problem& problem, Allocation& allocation) {
  for (std::size_t d = 0; d < problem.domains.size(); ++d) {
    const Domain& domain = problem.domains[d];
    if (allocation.domains[d].missing <= Watts(0)) continue;
    allocation.troubles.push_back(fmt::format(
        "the budget of {} is {}, of which {} are reserved, but its jobs take {} at their lowest "
        "limits: {} are missing, and all of them stay at their lowest limits",
        Quote(domain.name), PowerText(domain.watts), PowerText(domain.reserved),
        PowerText(allocation.domains[d].taken), PowerText(allocation.domains[d].missing)));
  }
  if (allocation.shortfall && !allocation.shortfall->hold.empty()) {
    allocation.troubles.push_back(fmt::format("{}: {}",
                                              allocation.shortfall->enough
                                                  ? "to fit, these jobs would have to be held"
                                                  : "it would not fit even if these jobs were held",
                                              Names(problem, allocation.shortfall->hold)));
  }
  std::vector<std::size_t> missed;
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    if (allocation.jobs[j].bound_missed) missed.push_back(j);
  }
  if (!missed.empty())
    allocation.troubles.push_back(fmt::format(
        "there are not enough watts for the max_slowdown of {}", Names(problem, missed)));
}

}  // namespace

Result<Allocation> Solve(const Problem& problem) {
  ZEUS_RETURN_IF_ERROR(Check(problem));
  Market market = internal::OpenMarket(problem);
  const Purchase purchase = Buy(market);
  Allocation allocation;
  AddJobs(market, purchase, allocation);
  AddDomains(market, purchase, allocation);
  AddLoss(market, purchase, allocation);
  allocation.shortfall = ShortfallOf(market);
  AddTroubles(problem, allocation);
  return allocation;
}

}  // namespace zeus::water_filling
