// Random problems: the answers are compared with a linear program and with all choices there are,
// and must have the properties that follow from what they promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "zeus/optimizer/budget/solver.h"
#include "zeus/optimizer/budget/testing/budget_program.h"
#include "zeus/optimizer/budget/testing/random_budget.h"

namespace zeus::water_filling {
namespace solver_random_test {

Allocation Solved(const Problem& problem) {
  auto allocation = Solve(problem);
  EXPECT_TRUE(allocation.ok()) << allocation.error().message;
  return std::move(allocation).value();
}

// Watts that jobs take of each domain at their limits.
std::vector<double> TakenOf(const Problem& problem, const std::vector<Watts>& limits) {
  std::vector<double> taken(problem.domains.size(), 0);
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const double per_gpu = TakenAt(problem.jobs[j], limits[j], problem.resource).value();
    for (const Placement& placement : problem.jobs[j].placements) {
      for (auto at = std::optional(placement.domain); at; at = problem.domains[*at].parent)
        taken[*at] += placement.gpus * per_gpu;
    }
  }
  return taken;
}

std::vector<Watts> LimitsOf(const Allocation& allocation) {
  std::vector<Watts> limits;
  for (const JobGrant& grant : allocation.jobs) limits.push_back(grant.limit);
  return limits;
}

bool Fits(const Problem& problem, const std::vector<Watts>& limits) {
  const std::vector<double> taken = TakenOf(problem, limits);
  for (std::size_t d = 0; d < taken.size(); ++d) {
    if (taken[d] > (problem.domains[d].watts - problem.domains[d].reserved).value() + 1e-6)
      return false;
  }
  return true;
}

double Worth(const Problem& problem) {
  double worth = 0;
  for (const Job& job : problem.jobs) worth += job.weight * job.gpus();
  return worth;
}

// Whatever the problem: limits are whole and in range, domains that can hold their jobs do, and the
// numbers of the answer agree with each other.
void CheckAnswer(const Problem& problem, const Allocation& allocation) {
  ASSERT_EQ(allocation.jobs.size(), problem.jobs.size());
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const JobGrant& grant = allocation.jobs[j];
    const LimitRange range = RangeOf(problem.jobs[j], problem.step);
    ASSERT_GE(grant.limit, range.lowest);
    ASSERT_LE(grant.limit, range.highest);
    ASSERT_EQ(grant.limit.value(), std::round(grant.limit.value()));
    ASSERT_GE(grant.marginal, 0);
    const bool within =
        !problem.jobs[j].max_slowdown || grant.slowdown <= *problem.jobs[j].max_slowdown + 1e-9;
    ASSERT_EQ(within, !grant.bound_missed);
  }
  const std::vector<double> taken = TakenOf(problem, LimitsOf(allocation));
  bool missing = false;
  for (std::size_t d = 0; d < taken.size(); ++d) {
    const Domain& domain = problem.domains[d];
    const DomainUse& use = allocation.domains[d];
    const double watts = std::max((domain.watts - domain.reserved).value(), 0.0);
    ASSERT_NEAR(use.taken.value(), taken[d], 1e-6);
    ASSERT_LE(taken[d], watts + use.missing.value() + 1e-6);
    ASSERT_NEAR(use.free.value(), std::max(watts - taken[d], 0.0), 1e-6);
    ASSERT_GE(use.price, 0);
    missing = missing || use.missing > Watts(0);
  }
  ASSERT_EQ(missing, allocation.shortfall.has_value());
  ASSERT_EQ(missing, !allocation.troubles.empty() &&
                         allocation.troubles.front().find("are missing") != std::string::npos);
  ASSERT_LE(allocation.bound, allocation.loss);
  ASSERT_GE(allocation.gap_points, 0);
}

TEST(BudgetRandomTest, AnswersOfAnyShapeFit) {
  Random random(2);
  int infeasible = 0;
  int missed = 0;
  for (int round = 0; round < 6000; ++round) {
    Problem problem = RandomProblem(random, {.spanning = round % 3 == 0});
    problem.objective = std::array{Objective::kMean, Objective::kWorst,
                                   Objective::kCost}[static_cast<std::size_t>(round % 5 % 3)];
    problem.eta = random.Uniform();
    const Allocation allocation = Solved(problem);
    ASSERT_NO_FATAL_FAILURE(CheckAnswer(problem, allocation)) << "round " << round;
    infeasible += allocation.shortfall.has_value();
    missed += std::ranges::any_of(allocation.jobs, &JobGrant::bound_missed);
  }
  EXPECT_GT(infeasible, 100);
  EXPECT_GT(missed, 100);
}

// Returns a bound of what whole watts, and hulls that their curves do not touch, may cost: in each
// domain one job is cut inside a stretch.
double CutLoss(const Problem& problem) {
  double most = 0;
  for (const Job& job : problem.jobs)
    most = std::max(most, job.weight * job.gpus() * (job.curve->points().front().slowdown - 1));
  return most * static_cast<double>(problem.domains.size());
}

TEST(BudgetRandomTest, TheBoundIsThatOfALinearProgram) {
  if (!HasLinearPrograms()) GTEST_SKIP() << "built without GLPK: install libglpk-dev";
  Random random(3);
  int compared = 0;
  for (int round = 0; round < 1500; ++round) {
    const Problem problem = RandomProblem(random, {.most_jobs = 40, .bounds = false});
    const Allocation allocation = Solved(problem);
    if (allocation.shortfall) continue;
    const auto least = LeastLoss(problem);
    ASSERT_TRUE(least) << "round " << round;
    ASSERT_NEAR(allocation.bound, std::max(*least, 0.0), 1e-6 * Worth(problem))
        << "round " << round;
    ASSERT_LE(allocation.loss - allocation.bound, CutLoss(problem) + 1e-9) << "round " << round;
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

TEST(BudgetRandomTest, AcrossDomainsTheBoundIsNoHigherThanTheLinearProgram) {
  if (!HasLinearPrograms()) GTEST_SKIP() << "built without GLPK: install libglpk-dev";
  Random random(4);
  int compared = 0;
  double distance = 0;  // Sum of what the bounds lack of the linear programs, in points.
  for (int round = 0; round < 500; ++round) {
    const Problem problem =
        RandomProblem(random, {.most_jobs = 40, .bounds = false, .spanning = true});
    const Allocation allocation = Solved(problem);
    if (allocation.shortfall) continue;
    const auto least = LeastLoss(problem);
    ASSERT_TRUE(least) << "round " << round;
    ASSERT_LE(allocation.bound, *least + 1e-6 * Worth(problem)) << "round " << round;
    ASSERT_GE(allocation.loss, *least - 1e-6 * Worth(problem)) << "round " << round;
    distance += 100 * (*least - allocation.bound) / Worth(problem);
    ++compared;
  }
  ASSERT_GT(compared, 100);
  EXPECT_LT(distance / compared, 0.1);
}

// Two to four jobs and all their limits in steps of 25 W.
TEST(BudgetRandomTest, NoOtherChoiceOfLimitsIsBetterThanTheBound) {
  Random random(5);
  int exact = 0;
  for (int round = 0; round < 300; ++round) {
    Problem problem = RandomProblem(
        random, {.most_jobs = 4, .most_domains = 3, .bounds = false, .spanning = round % 2 == 0});
    problem.step = Watts(25);
    const Allocation allocation = Solved(problem);
    if (allocation.shortfall) continue;
    double least = std::numeric_limits<double>::infinity();
    std::vector<Watts> limits;
    for (const Job& job : problem.jobs) limits.push_back(RangeOf(job, problem.step).lowest);
    while (true) {
      if (Fits(problem, limits)) {
        double loss = 0;
        for (std::size_t j = 0; j < limits.size(); ++j)
          loss += problem.jobs[j].weight * problem.jobs[j].gpus() *
                  (problem.jobs[j].curve->SlowdownAt(limits[j]) - 1);
        least = std::min(least, loss);
      }
      std::size_t j = 0;
      while (j < limits.size()) {
        limits[j] += problem.step;
        if (limits[j] <= RangeOf(problem.jobs[j], problem.step).highest) break;
        limits[j] = RangeOf(problem.jobs[j], problem.step).lowest;
        ++j;
      }
      if (j == limits.size()) break;
    }
    ASSERT_LE(allocation.bound, least + 1e-9) << "round " << round;
    ASSERT_GE(allocation.loss, least - 1e-9) << "round " << round;
    exact += allocation.loss < least + 1e-9;
  }
  EXPECT_GT(exact, 60);
}

TEST(BudgetRandomTest, TheWorstSlowdownIsTheLeastThatFits) {
  Random random(6);
  for (int round = 0; round < 500; ++round) {
    Problem problem = RandomProblem(random, {.bounds = false});
    problem.objective = Objective::kWorst;
    const Allocation allocation = Solved(problem);
    if (allocation.shortfall) continue;
    // A little less for everybody would not fit, even in fractions of watts.
    std::vector<Watts> limits;
    for (const Job& job : problem.jobs) {
      const LimitRange range = RangeOf(job, problem.step);
      const double slowdown = std::max(1.0, 1 + allocation.bound - 1e-6);
      limits.push_back(std::clamp(job.curve->LimitFor(slowdown).value_or(range.highest),
                                  range.lowest, range.highest));
    }
    if (allocation.bound > 1e-5) {
      ASSERT_FALSE(Fits(problem, limits)) << "round " << round;
    }
    problem.objective = Objective::kMean;
    ASSERT_LE(allocation.worst_slowdown, Solved(problem).worst_slowdown + 0.05)
        << "round " << round;
  }
}

TEST(BudgetRandomTest, MoreWattsMoreWeightAndWiderRangesNeverHurt) {
  Random random(7);
  for (int round = 0; round < 800; ++round) {
    const Problem problem = RandomProblem(random, {.bounds = false});
    const Allocation before = Solved(problem);
    if (before.shortfall) continue;
    const std::size_t chosen = random.Below(problem.jobs.size());

    Problem richer = problem;
    richer.domains[random.Below(problem.domains.size())].watts += Watts(random.Uniform(0, 200));
    ASSERT_LE(Solved(richer).bound, before.bound + 1e-9) << "round " << round;

    // The favoured job's own slowdown does not rise, but for what is cut.
    Problem heavier = problem;
    heavier.jobs[chosen].weight *= 3;
    const LimitRange range = RangeOf(problem.jobs[chosen], problem.step);
    ASSERT_GE(
        Solved(heavier).jobs[chosen].taken.value() + 1e-6 + 25.0 * problem.jobs[chosen].gpus(),
        before.jobs[chosen].taken.value())
        << "round " << round;

    Problem narrower = problem;
    narrower.jobs[chosen].highest = (range.lowest + range.highest) / 2;
    ASSERT_GE(Solved(narrower).bound, before.bound - 1e-9) << "round " << round;
  }
}

TEST(BudgetRandomTest, TheOrderOfJobsDoesNotMatter) {
  Random random(8);
  for (int round = 0; round < 500; ++round) {
    Problem problem = RandomProblem(random);
    const Allocation before = Solved(problem);
    std::ranges::reverse(problem.jobs);
    const Allocation after = Solved(problem);
    ASSERT_NEAR(after.bound, before.bound, 1e-9 * Worth(problem)) << "round " << round;
    ASSERT_NEAR(after.loss, before.loss, CutLoss(problem) + 1e-9) << "round " << round;
    for (std::size_t d = 0; d < problem.domains.size(); ++d)
      ASSERT_NEAR(after.domains[d].missing.value(), before.domains[d].missing.value(), 1e-6);
  }
}

TEST(BudgetRandomTest, WithoutTheHeldJobsTheRestFits) {
  Random random(9);
  int infeasible = 0;
  for (int round = 0; round < 2000; ++round) {
    Problem problem = RandomProblem(random, {.spanning = round % 2 == 0});
    const Allocation allocation = Solved(problem);
    if (!allocation.shortfall) continue;
    ++infeasible;
    std::vector<bool> held(problem.jobs.size(), false);
    for (const std::size_t j : allocation.shortfall->hold) held[j] = true;
    std::vector<Job> rest;
    for (std::size_t j = 0; j < held.size(); ++j) {
      if (!held[j]) rest.push_back(problem.jobs[j]);
    }
    problem.jobs = rest;
    EXPECT_TRUE(allocation.shortfall->enough) << "nothing is drawn by held jobs here";
    ASSERT_FALSE(Solved(problem).shortfall) << "round " << round;
  }
  EXPECT_GT(infeasible, 100);
}

// Numbers that no reader would let through reach the solver nevertheless: it refuses or answers.
TEST(BudgetRandomTest, NumbersWithoutMeaningAreRefused) {
  Random random(10);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::array<double, 8> hostile{nan, inf, -inf, -1, 0, 1e-300, 1e300, 1};
  const auto any = [&] { return hostile[random.Below(hostile.size())]; };
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    Problem problem = RandomProblem(random, {.spanning = true});
    Job& job = problem.jobs[random.Below(problem.jobs.size())];
    Domain& domain = problem.domains[random.Below(problem.domains.size())];
    switch (random.Below(10)) {
      case 0:
        domain.watts = Watts(any());
        break;
      case 1:
        domain.reserved = Watts(any());
        break;
      case 2:
        domain.parent = random.Below(problem.domains.size() + 2);
        break;
      case 3:
        job.weight = any();
        break;
      case 4:
        job.max_slowdown = any();
        break;
      case 5:
        job.lowest = Watts(any());
        break;
      case 6:
        job.highest = Watts(any());
        break;
      case 7:
        job.placements.front().gpus = static_cast<int>(random.Below(3)) - 1;
        break;
      case 8:
        job.placements.front().domain = random.Below(problem.domains.size() + 2);
        break;
      default:
        problem.eta = any();
        break;
    }
    const auto allocation = Solve(problem);
    if (!allocation.ok()) {
      ++refused;
      ASSERT_EQ(allocation.error().code, ErrorCode::kInvalidArgument);
      continue;
    }
    ASSERT_FALSE(std::isnan(allocation.value().loss)) << "round " << round;
    for (const JobGrant& grant : allocation.value().jobs)
      ASSERT_TRUE(std::isfinite(grant.limit.value())) << "round " << round;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace solver_random_test
}  // namespace zeus::water_filling
