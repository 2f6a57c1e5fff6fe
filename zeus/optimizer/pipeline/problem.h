#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::pipeline {

// Numbers of computations, kinds and points are signed; containers want them otherwise.
constexpr std::size_t At(int index) { return static_cast<std::size_t>(index); }

// A node of the computation graph.
struct Computation {
  int stage = 0;
  int microbatch = 0;
  int chunk = 0;
  int kind = 0;  // Index into Problem::kinds.
};

// Computations and who waits for whom.
class ComputationGraph {
 public:
  // kInvalidArgument when an edge leads nowhere or when a computation would wait for itself, with
  // one such circle in the message; `name` says what a computation is called there.
  static Result<ComputationGraph> Of(int computations,
                                     const std::vector<std::pair<int, int>>& edges,
                                     const std::function<std::string(int)>& name);

  int size() const { return static_cast<int>(order_.size()); }
  int edges() const { return static_cast<int>(successors_.ends.size()); }
  std::span<const int> Successors(int computation) const { return successors_.Of(computation); }
  std::span<const int> Predecessors(int computation) const { return predecessors_.Of(computation); }
  // Every computation after all that it waits for.
  std::span<const int> topological_order() const { return order_; }

 private:
  // The other ends of each computation's edges, one after the other.
  struct Neighbours {
    std::vector<std::size_t> first{0};
    std::vector<int> ends{};

    std::span<const int> Of(int computation) const {
      const auto at = static_cast<std::size_t>(computation);
      return std::span(ends).subspan(first[at], first[at + 1] - first[at]);
    }
  };
  template <class From, class To>
  static Neighbours Sorted(int computations, const std::vector<std::pair<int, int>>& edges,
                           From from, To to);
  Status Sort(const std::function<std::string(int)>& name);

  Neighbours successors_{};
  Neighbours predecessors_{};
  std::vector<int> order_{};
};

// a * exp(b * q) + c: effective energy in joules over the duration in quanta of
// Problem::quantum, between min and max. b < 0 <= a.
struct ExponentialModel {
  double a = 0;
  double b = 0;
  double c = 0;
  std::int64_t min = 1;
  std::int64_t max = 1;
};

// All computations of the same instruction on the same stage: they share a profile.
struct ComputationKind {
  int stage = 0;
  std::string instruction{};
  bool beside_the_stage = false;  // A transfer: the stage is free meanwhile.
  std::vector<OperatingPoint> points{};
  std::optional<ExponentialModel> exponential{};  // Given with an instance; fitted otherwise.
};

// One training iteration of one pipeline.
struct Problem {
  std::string name{};
  int stages = 0;
  int microbatches = 0;
  Watts blocking_power{};  // Of each stage while it computes nothing.
  Seconds quantum{0.001};  // Of the exponential model.
  std::vector<ComputationKind> kinds{};
  std::vector<Computation> computations{};
  ComputationGraph graph{};
  std::vector<std::vector<int>> stage_order{};  // Of each stage, in the order it issues them.

  const ComputationKind& KindOf(int computation) const {
    return kinds[At(computations[At(computation)].kind)];
  }
};

// Builds the graph in time proportional to its size. kInvalidArgument when the profile lacks an
// instruction of a stage, or when the schedule's order contradicts its dependencies.
Result<Problem> MakeProblem(const PipelineProfile& profile, const Schedule& schedule);

// What a computation adds to the energy of the iteration beyond blocking power over all of it:
// e - P_b * t, or e alone where the stage is free meanwhile.
Joules EffectiveEnergy(const Problem& problem, const ComputationKind& kind,
                       const OperatingPoint& point);

}  // namespace zeus::pipeline
