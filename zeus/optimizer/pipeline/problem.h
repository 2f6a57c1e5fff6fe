#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::pipeline {

// Converts an index of a computation, kind or point, which are signed here, for use with
// containers.
constexpr std::size_t At(int index) { return static_cast<std::size_t>(index); }

// A node of the computation graph.
struct Computation {
  int stage = 0;
  int microbatch = 0;
  int chunk = 0;
  int kind = 0;  // Index into Problem::kinds.
};

// The computations of an iteration and their dependencies, as an acyclic graph. Immutable.
class ComputationGraph {
 public:
  // Makes a graph of edges (from, to), where `to` waits for `from`. Returns kInvalidArgument when
  // an edge has no such computation, or when the graph has a cycle, which the message spells out
  // with the names that `name` gives to computations.
  static Result<ComputationGraph> Of(int computations,
                                     const std::vector<std::pair<int, int>>& edges,
                                     const std::function<std::string(int)>& name);

  int size() const { return static_cast<int>(order_.size()); }
  int edges() const { return static_cast<int>(successors_.ends.size()); }
  std::span<const int> Successors(int computation) const { return successors_.Of(computation); }
  std::span<const int> Predecessors(int computation) const { return predecessors_.Of(computation); }
  // All computations, each after those that it waits for.
  std::span<const int> topological_order() const { return order_; }

 private:
  // Adjacency lists in one array: those of computation i are ends[first[i]] .. ends[first[i + 1]].
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

// Perseus' model of effective energy in joules: a * exp(b * q) + c, where the duration q is from
// `min` to `max` quanta of Problem::quantum, and b < 0 <= a.
struct ExponentialModel {
  double a = 0;
  double b = 0;
  double c = 0;
  std::int64_t min = 1;
  std::int64_t max = 1;
};

// The kind of all computations of one instruction on one stage: they share a profile.
struct ComputationKind {
  int stage = 0;
  std::string instruction{};
  bool beside_the_stage = false;  // A transfer, during which the stage is free for other work.
  std::vector<OperatingPoint> points{};
  std::optional<ExponentialModel> exponential{};  // If given with an instance; else it is fitted.
};

// One training iteration of one pipeline.
struct Problem {
  std::string name{};
  int stages = 0;
  int microbatches = 0;
  Watts blocking_power{};  // Power of one stage while it waits.
  Seconds quantum{0.001};  // Time step of the exponential model.
  std::vector<ComputationKind> kinds{};
  std::vector<Computation> computations{};
  ComputationGraph graph{};
  std::vector<std::vector<int>> stage_order{};  // Each stage's computations in order of issue.

  const ComputationKind& Kind(int computation) const {
    return kinds[At(computations[At(computation)].kind)];
  }
};

// Builds the graph in time proportional to its size. Returns kInvalidArgument when the profile
// lacks an instruction of a stage, or when the schedule's order contradicts its dependencies.
Result<Problem> MakeProblem(const PipelineProfile& profile, const Schedule& schedule);

// Returns the effective energy of a computation: the energy that it adds to an iteration of a given
// length. The stage would draw blocking power during that time anyway, so it is e - P_b * t, or e
// alone for a transfer, which does not occupy the stage.
Joules EffectiveEnergy(const Problem& problem, const ComputationKind& kind,
                       const OperatingPoint& point);

// Parses a whole problem: profile, cost models, nodes and edges (docs/formats.md). The text is not
// trusted: kInvalidArgument names the field that is wrong.
Result<Problem> ParseInstance(std::string_view text);

}  // namespace zeus::pipeline
