#include "zeus/optimizer/budget/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"

namespace zeus::water_filling {

namespace {

// A budget this many times what its jobs can take was hardly meant.
constexpr double kHardlyMeant = 5;

bool NotNegative(Watts watts) { return std::isfinite(watts.value()) && watts.value() >= 0; }

Status CheckDomain(const Problem& problem, std::size_t index) {
  const Domain& domain = problem.domains[index];
  const std::string name = "the domain " + Quote(domain.name) + " ";
  if (std::isnan(domain.watts.value()) || domain.watts.value() < 0)
    return InvalidArgument(
        fmt::format("{}has a budget of {} W: it must be 0 or more", name, domain.watts.value()));
  if (!NotNegative(domain.reserved))
    return InvalidArgument(
        fmt::format("{}reserves {} W: it must be a number from 0", name, domain.reserved.value()));
  std::size_t steps = 0;
  for (auto at = domain.parent; at; at = problem.domains[*at].parent) {
    if (*at >= problem.domains.size())
      return InvalidArgument(name + "lies in a domain that does not exist");
    if (++steps > problem.domains.size())
      return InvalidArgument(name + "lies in a circle of domains: one of them must be outermost");
  }
  return Ok();
}

Status CheckBounds(const Job& job, const std::string& name) {
  if (job.max_slowdown && !(std::isfinite(*job.max_slowdown) && *job.max_slowdown >= 1))
    return InvalidArgument(fmt::format(
        "{}has a max_slowdown of {}: it must be 1 or more (1.05 lets it take 5 % longer)", name,
        *job.max_slowdown));
  for (const std::optional<Watts>& bound : {job.lowest, job.highest}) {
    if (bound && !(std::isfinite(bound->value()) && bound->value() > 0))
      return InvalidArgument(
          fmt::format("{}is bounded to a limit of {} W: it must be above 0", name, bound->value()));
  }
  return Ok();
}

Status CheckJob(const Problem& problem, const Job& job) {
  const std::string name = "the job " + Quote(job.name) + " ";
  if (!job.curve) return InvalidArgument(name + "has no power curve");
  if (job.placements.empty()) return InvalidArgument(name + "is in no domain");
  for (const Placement& placement : job.placements) {
    if (placement.domain >= problem.domains.size())
      return InvalidArgument(name + "is in a domain that does not exist");
    if (placement.gpus <= 0)
      return InvalidArgument(fmt::format("{}has {} GPUs in {}: it needs one at least", name,
                                         placement.gpus,
                                         Quote(problem.domains[placement.domain].name)));
  }
  if (!(std::isfinite(job.weight) && job.weight > 0))
    return InvalidArgument(
        fmt::format("{}has a weight of {}: it must be a positive number", name, job.weight));
  if (!NotNegative(job.idle))
    return InvalidArgument(fmt::format("{}has an idle power of {} W: it must be a number from 0",
                                       name, job.idle.value()));
  return CheckBounds(job, name);
}

// The sums over the jobs of a domain, those of the domains inside it included.
struct Demand {
  Watts lowest{};
  Watts highest{};
  int gpus = 0;
};

std::vector<Demand> DemandOfDomains(const Problem& problem) {
  std::vector<Demand> demands(problem.domains.size());
  for (const Job& job : problem.jobs) {
    const LimitRange range = RangeOf(job, problem.step);
    const Watts lowest = TakenAt(job, range.lowest, problem.resource);
    const Watts highest = TakenAt(job, range.highest, problem.resource);
    for (const Placement& placement : job.placements) {
      for (auto at = std::optional(placement.domain); at; at = problem.domains[*at].parent) {
        demands[*at].lowest += placement.gpus * lowest;
        demands[*at].highest += placement.gpus * highest;
        demands[*at].gpus += placement.gpus;
      }
    }
  }
  return demands;
}

std::string TooMuch(const Domain& domain, const Demand& demand, double times) {
  return fmt::format(
      "the budget of {}, {}, is {:.3g} times what its {} GPUs can take ({}), so it limits nothing: "
      "is there a digit too many?",
      Quote(domain.name), PowerText(domain.watts), times, demand.gpus, PowerText(demand.highest));
}

std::string TooLittle(const Domain& domain, const Demand& demand) {
  const Watts available = std::max(domain.watts - domain.reserved, Watts(0));
  return fmt::format(
      "the budget of {}, {} of which {} are reserved, is {:.3g} % of what its {} GPUs take at "
      "their "
      "lowest limits ({}): is there a digit missing?",
      Quote(domain.name), PowerText(domain.watts), PowerText(domain.reserved),
      100 * (available / demand.lowest), demand.gpus, PowerText(demand.lowest));
}

}  // namespace

int Job::gpus() const {
  return std::accumulate(placements.begin(), placements.end(), 0,
                         [](int sum, const Placement& placement) { return sum + placement.gpus; });
}

Status Check(const Problem& problem) {
  if (!(std::isfinite(problem.step.value()) && problem.step.value() > 0))
    return InvalidArgument(
        fmt::format("limits in steps of {} W: it must be a positive number", problem.step.value()));
  if (!(problem.eta >= 0 && problem.eta <= 1))
    return InvalidArgument(fmt::format("eta is {}: it must be from 0 to 1", problem.eta));
  for (std::size_t i = 0; i < problem.domains.size(); ++i)
    ZEUS_RETURN_IF_ERROR(CheckDomain(problem, i));
  for (const Job& job : problem.jobs) ZEUS_RETURN_IF_ERROR(CheckJob(problem, job));
  return Ok();
}

std::vector<std::string> Doubts(const Problem& problem) {
  const std::vector<Demand> demands = DemandOfDomains(problem);
  std::vector<std::string> doubts;
  for (std::size_t i = 0; i < problem.domains.size(); ++i) {
    const Domain& domain = problem.domains[i];
    const Demand& demand = demands[i];
    if (demand.gpus == 0 || !std::isfinite(domain.watts.value())) continue;
    const double times = domain.watts / (demand.highest + domain.reserved);
    if (times >= kHardlyMeant) doubts.push_back(TooMuch(domain, demand, times));
    if (domain.watts - domain.reserved < demand.lowest) doubts.push_back(TooLittle(domain, demand));
  }
  return doubts;
}

LimitRange RangeOf(const Job& job, Watts step) {
  const auto up = [&](Watts limit) { return step * std::ceil(limit / step - 1e-9); };
  const auto down = [&](Watts limit) { return step * std::floor(limit / step + 1e-9); };
  const Watts lowest = up(std::max(job.curve->lowest(), job.lowest.value_or(Watts(0))));
  // Where the bounds contradict each other the lower one counts: devices refuse a limit below
  // theirs.
  const Watts highest = std::max(
      lowest, down(std::min(job.curve->highest(), job.highest.value_or(job.curve->highest()))));
  return {.lowest = lowest, .highest = highest};
}

Watts TakenAt(const Job& job, Watts limit, Resource resource) {
  return resource == Resource::kLimits ? limit : job.curve->DrawBoundAt(limit);
}

}  // namespace zeus::water_filling
