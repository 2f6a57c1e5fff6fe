#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/budget/power_curve.h"

// Watts to hand out: who may have how many, and who wants them.
namespace zeus::water_filling {

// The unit in which jobs use up their domains.
enum class Resource {
  kLimits,  // The power limits of its GPUs: whatever happens, no more is drawn.
  kDrawn,   // The draw that is expected of its GPUs, and two standard deviations more.
};

enum class Objective {
  kMean,   // Least mean slowdown, each GPU counted by the weight of its job.
  kWorst,  // Least slowdown of the slowest job; the rest of the watts as for kMean.
  kCost,   // Least cost (eta * energy + (1 - eta) * MAXPOWER * time); no job gets more than the
           // limit that costs it least.
};

// Watts that buy no speed by the curves.
enum class Spare {
  kHandOut,  // The limits rise as far as there is room, because curves can be wrong.
  kKeep,     // The limits stay where more watts stop helping.
};

// A part of the machines that share one budget: a site, a room, a rack. Domains form trees.
struct Domain {
  std::string name{};
  std::optional<std::size_t> parent{};  // Index of the domain around it; nullopt for a root.
  Watts watts{};                        // Budget; infinite where only the domains around it limit.
  Watts reserved{};                     // Part of it that is not for jobs: idle GPUs, start
                                        // allowances, unmanaged load, a safety margin.
};

// GPUs of a job in a domain. It names the innermost domain; those around it follow.
struct Placement {
  std::size_t domain = 0;
  int gpus = 0;
};

// A job: all its GPUs get the same limit, because the slowest sets the pace.
struct Job {
  std::string name{};
  SharedCurve curve{};
  std::vector<Placement> placements{};
  double weight = 1;                     // Worth of its time compared with that of other jobs.
  std::optional<double> max_slowdown{};  // 1.05: it must not take more than 5 % longer.
  std::optional<Watts> lowest{};         // Bounds beside those of the curve: the range of the
  std::optional<Watts> highest{};        // device's limit, ramps, a limit that its user asked for.
  Watts idle{};                          // Drawn by each of its GPUs while the job is held.

  int gpus() const;
};

struct Problem {
  std::vector<Domain> domains{};
  std::vector<Job> jobs{};
  Resource resource = Resource::kLimits;
  Objective objective = Objective::kMean;
  double eta = 0.5;  // For Objective::kCost.
  Spare spare = Spare::kHandOut;
  Watts step{1};  // Limits are multiples of it.
};

// kInvalidArgument, naming domain or job, for what has no meaning: NaN, negative watts, domains in
// a circle, jobs without GPUs.
Status Check(const Problem& problem);

// Sentences about budgets that make sense but were hardly meant: ten times too much, or too little
// for all jobs at their lowest limits. Call Check() before.
std::vector<std::string> Doubts(const Problem& problem);

// The limits between which a job can be set, in whole steps.
struct LimitRange {
  Watts lowest{};
  Watts highest{};
};
LimitRange RangeOf(const Job& job, Watts step);

// Returns the watts of the budget that one GPU of the job takes at a limit.
Watts TakenAt(const Job& job, Watts limit, Resource resource);

}  // namespace zeus::water_filling
