#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/optimizer/budget/problem.h"

namespace zeus::water_filling {

// Shape of a random problem.
struct RandomShape {
  std::size_t most_jobs = 12;
  std::size_t most_domains = 7;
  bool bounds = true;     // Some jobs have a max_slowdown.
  bool spanning = false;  // Some jobs lie in two domains.
};

// A random curve of two to nine measurements, noisy and not always convex.
inline SharedCurve RandomCurve(Random& random) {
  std::vector<CurveSample> samples;
  const double steepness = random.Uniform(0.1, 2);
  const auto count = 2 + random.Below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double limit = 100 + 25 * static_cast<double>(i);
    const double ratio = 100 + 25 * static_cast<double>(count);
    samples.push_back(
        {.limit = Watts(limit),
         .time = Seconds(std::pow(ratio / limit, steepness) * random.Uniform(0.95, 1.05)),
         .draw = Watts(limit * random.Uniform(0.6, 1)),
         .draw_sigma = Watts(random.Uniform(0, 3))});
  }
  return std::make_shared<const PowerCurve>(PowerCurve::FromSamples(samples).value());
}

// A tree of domains, jobs in it, and budgets from too small to more than enough.
inline Problem RandomProblem(Random& random, const RandomShape& shape = {}) {
  Problem problem;
  problem.resource = random.Below(2) ? Resource::kLimits : Resource::kDrawn;
  problem.spare = random.Below(2) ? Spare::kHandOut : Spare::kKeep;
  const std::size_t domains = 1 + random.Below(shape.most_domains);
  for (std::size_t d = 0; d < domains; ++d) {
    problem.domains.push_back({.name = "domain" + std::to_string(d)});
    if (d > 0 && random.Below(8) > 0) problem.domains[d].parent = random.Below(d);
  }
  const std::size_t jobs = 1 + random.Below(shape.most_jobs);
  std::vector<double> most(domains, 0);
  for (std::size_t j = 0; j < jobs; ++j) {
    Job job{.name = "job" + std::to_string(j), .curve = RandomCurve(random)};
    const std::size_t places = shape.spanning && domains > 1 && random.Below(2) ? 2 : 1;
    for (std::size_t k = 0; k < places; ++k)
      job.placements.push_back(
          {.domain = random.Below(domains), .gpus = static_cast<int>(1 + random.Below(4))});
    job.weight = random.Below(3) ? 1 : random.Uniform(0.5, 4);
    if (shape.bounds && random.Below(4) == 0) job.max_slowdown = random.Uniform(1, 1.5);
    for (const Placement& placement : job.placements) {
      for (auto at = std::optional(placement.domain); at; at = problem.domains[*at].parent)
        most[*at] += placement.gpus * job.curve->highest().value();
    }
    problem.jobs.push_back(std::move(job));
  }
  for (std::size_t d = 0; d < domains; ++d) {
    const bool free = d > 0 && random.Below(3) == 0;
    problem.domains[d].watts = Watts(most[d] * (free ? 2 : random.Uniform(0.3, 1.1)));
    problem.domains[d].reserved = Watts(random.Below(3) ? 0 : 0.02 * most[d]);
  }
  return problem;
}

}  // namespace zeus::water_filling
