#include "zeus/optimizer/pipeline/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "zeus/base/text.h"

namespace zeus::pipeline {
namespace {

// The two directions in which microbatches travel through the stages.
enum class Direction { kForward, kBackward };

std::optional<Direction> ParseDirection(std::string_view instruction) {
  if (instruction == kForward) return Direction::kForward;
  if (instruction == kBackward || instruction == kForwardBackward) return Direction::kBackward;
  return std::nullopt;
}

// Builds a Problem from a profile and a schedule.
class ProblemBuilder {
 public:
  ProblemBuilder(const PipelineProfile& profile, const Schedule& schedule)
      : profile_(profile), schedule_(schedule) {
    problem_.name = schedule.name;
    problem_.stages = profile.stages;
    problem_.microbatches = schedule.microbatches;
    problem_.blocking_power = profile.blocking_power;
    problem_.stage_order.resize(schedule.stages.size());
  }

  Result<Problem> Build() {
    for (int stage = 0; stage < profile_.stages; ++stage) ZEUS_RETURN_IF_ERROR(AddStage(stage));
    const int computations = static_cast<int>(problem_.computations.size());
    for (int i = 0; i < computations; ++i) ZEUS_RETURN_IF_ERROR(AddTravel(i));
    const auto name = [this](int i) { return Name(i); };
    ZEUS_TRY(problem_.graph,
             ComputationGraph::Of(static_cast<int>(problem_.computations.size()), edges_, name));
    return std::move(problem_);
  }

 private:
  // The passage of a microbatch through a chunk of a stage, once in each direction.
  struct Passage {
    Direction direction;
    int stage;
    int chunk;
    int microbatch;

    std::uint64_t key() const {
      return ((static_cast<std::uint64_t>(stage) << 21 | static_cast<std::uint64_t>(chunk)) << 21 |
              static_cast<std::uint64_t>(microbatch))
                 << 1 |
             (direction == Direction::kForward ? 1U : 0U);
    }
  };

  std::string Name(int computation) const {
    const Computation& c = problem_.computations[At(computation)];
    return fmt::format("{} of microbatch {} on stage {}",
                       Printable(problem_.Kind(computation).instruction), c.microbatch, c.stage);
  }

  Result<int> KindIndex(int stage, const std::string& instruction) {
    const auto [found, inserted] =
        kinds_.try_emplace({stage, instruction}, static_cast<int>(problem_.kinds.size()));
    if (!inserted) return found->second;
    const InstructionProfile* const profile = profile_.Find(stage, instruction);
    if (profile == nullptr)
      return InvalidArgument(
          fmt::format("the profile has nothing about {} on stage {}, which the schedule "
                      "needs: measure it or take it out of the schedule",
                      Quote(instruction), stage));
    problem_.kinds.push_back({.stage = stage,
                              .instruction = instruction,
                              .beside_the_stage = instruction == kTransfer,
                              .points = profile->points});
    return found->second;
  }

  Result<int> Append(int stage, const Instruction& instruction) {
    ZEUS_TRY(const int kind, KindIndex(stage, instruction.name));
    const int computation = static_cast<int>(problem_.computations.size());
    problem_.computations.push_back({stage, instruction.microbatch, instruction.chunk, kind});
    return computation;
  }

  // Appends an instruction to its stage, with an edge from the one issued before.
  Status Issue(int stage, const Instruction& instruction) {
    ZEUS_TRY(const int computation, Append(stage, instruction));
    std::vector<int>& order = problem_.stage_order[At(stage)];
    if (!order.empty()) edges_.emplace_back(order.back(), computation);
    order.push_back(computation);
    const auto direction = ParseDirection(instruction.name);
    if (!direction) return Ok();
    const Passage passage{*direction, stage, instruction.chunk, instruction.microbatch};
    if (!passages_.emplace(passage.key(), computation).second)
      return InvalidArgument(fmt::format("the schedule has {} twice", Name(computation)));
    if (*direction == Direction::kBackward) return CheckForwardCameFirst(passage, computation);
    return Ok();
  }

  Status CheckForwardCameFirst(Passage passage, int computation) const {
    passage.direction = Direction::kForward;
    if (passages_.contains(passage.key())) return Ok();
    return InvalidArgument(
        fmt::format("the schedule has {} before its forward", Name(computation)));
  }

  Status AddStage(int stage) {
    const bool loads = profile_.Find(stage, kDataLoad) != nullptr;
    bool loads_on_its_own = false;
    for (const Instruction& instruction : schedule_.stages[At(stage)])
      loads_on_its_own |= instruction.name == kDataLoad;
    bool steps = profile_.Find(stage, kOptimizerStep) != nullptr;
    for (const Instruction& instruction : schedule_.stages[At(stage)]) {
      if (loads && !loads_on_its_own && instruction.name == kForward)
        ZEUS_RETURN_IF_ERROR(
            Issue(stage, {std::string(kDataLoad), instruction.microbatch, instruction.chunk}));
      ZEUS_RETURN_IF_ERROR(Issue(stage, instruction));
      steps = steps && instruction.name != kOptimizerStep;
    }
    if (steps) ZEUS_RETURN_IF_ERROR(Issue(stage, {std::string(kOptimizerStep), 0, 0}));
    return Ok();
  }

  // Returns the passage before `passage`; nullopt where the microbatch enters the pipeline.
  std::optional<Passage> Before(Passage passage) const {
    const int last = profile_.stages - 1;
    if (passage.direction == Direction::kForward) {
      if (passage.stage > 0) return Moved(passage, passage.stage - 1, passage.chunk);
      if (passage.chunk > 0) return Moved(passage, last, passage.chunk - 1);
    } else {
      if (passage.stage < last) return Moved(passage, passage.stage + 1, passage.chunk);
      if (passage.chunk + 1 < schedule_.chunks) return Moved(passage, 0, passage.chunk + 1);
    }
    return std::nullopt;
  }
  static Passage Moved(Passage passage, int stage, int chunk) {
    passage.stage = stage;
    passage.chunk = chunk;
    return passage;
  }

  // Adds the edge from the stage that a computation's input comes from, through a transfer if the
  // profile has one.
  Status AddTravel(int computation) {
    const Computation c = problem_.computations[At(computation)];
    const auto direction = ParseDirection(problem_.Kind(computation).instruction);
    if (!direction) return Ok();
    const auto before = Before({*direction, c.stage, c.chunk, c.microbatch});
    if (!before) return Ok();
    const auto found = passages_.find(before->key());
    if (found == passages_.end())
      return InvalidArgument(
          fmt::format("the schedule has {} but not on stage {}, where its input comes "
                      "from",
                      Name(computation), before->stage));
    if (before->stage == c.stage || profile_.Find(before->stage, kTransfer) == nullptr) {
      edges_.emplace_back(found->second, computation);
      return Ok();
    }
    ZEUS_TRY(const int transfer,
             Append(before->stage, {std::string(kTransfer), c.microbatch, before->chunk}));
    edges_.emplace_back(found->second, transfer);
    edges_.emplace_back(transfer, computation);
    return Ok();
  }

  const PipelineProfile& profile_;
  const Schedule& schedule_;
  Problem problem_{};
  std::map<std::pair<int, std::string>, int> kinds_{};
  std::unordered_map<std::uint64_t, int> passages_{};
  std::vector<std::pair<int, int>> edges_{};
};

}  // namespace

Result<Problem> MakeProblem(const PipelineProfile& profile, const Schedule& schedule) {
  ZEUS_RETURN_IF_ERROR(Check(profile));
  if (static_cast<int>(schedule.stages.size()) != profile.stages)
    return InvalidArgument(
        fmt::format("the profile has {} stages and the schedule {}: they must agree",
                    profile.stages, schedule.stages.size()));
  return ProblemBuilder(profile, schedule).Build();
}

Joules EffectiveEnergy(const Problem& problem, const ComputationKind& kind,
                       const OperatingPoint& point) {
  if (kind.beside_the_stage) return point.energy;
  return point.energy - problem.blocking_power * point.time;
}

namespace {

// Finds a cycle among the computations that still wait for predecessors: each has one that waits,
// too, so a walk backwards repeats a computation at some point.
std::vector<int> FindCircle(const ComputationGraph& graph, const std::vector<int>& waiting) {
  const auto stuck = [&](int computation) { return waiting[At(computation)] > 0; };
  int at = 0;
  while (!stuck(at)) ++at;
  std::vector<int> seen_at(waiting.size(), -1);
  std::vector<int> walk;
  while (seen_at[At(at)] < 0) {
    seen_at[At(at)] = static_cast<int>(walk.size());
    walk.push_back(at);
    at = *std::ranges::find_if(graph.Predecessors(at), stuck);
  }
  walk.erase(walk.begin(), walk.begin() + seen_at[At(at)]);
  return walk;
}

std::string Describe(const std::vector<int>& circle, const std::function<std::string(int)>& name) {
  constexpr std::size_t kShown = 8;
  std::string text = name(circle.front());
  for (std::size_t i = 1; i < std::min(circle.size(), kShown); ++i)
    text += " waits for " + name(circle[i]);
  if (circle.size() > kShown) text += fmt::format(" waits for {} more", circle.size() - kShown);
  return text + " waits for " + name(circle.front());
}

}  // namespace

template <class From, class To>
ComputationGraph::Neighbours ComputationGraph::Sorted(int computations,
                                                      const std::vector<std::pair<int, int>>& edges,
                                                      From from, To to) {
  Neighbours neighbours;
  neighbours.first.assign(At(computations) + 1, 0);
  for (const auto& edge : edges) ++neighbours.first[At(edge.*from) + 1];
  for (std::size_t i = 1; i < neighbours.first.size(); ++i)
    neighbours.first[i] += neighbours.first[i - 1];
  std::vector<std::size_t> next = neighbours.first;
  neighbours.ends.resize(edges.size());
  for (const auto& edge : edges) neighbours.ends[next[At(edge.*from)]++] = edge.*to;
  return neighbours;
}

Status ComputationGraph::Sort(const std::function<std::string(int)>& name) {
  const int computations = static_cast<int>(successors_.first.size()) - 1;
  std::vector<int> waiting(At(computations));
  for (int i = 0; i < computations; ++i) {
    waiting[At(i)] = static_cast<int>(Predecessors(i).size());
    if (Predecessors(i).empty()) order_.push_back(i);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {
    for (const int next : Successors(order_[at]))
      if (--waiting[At(next)] == 0) order_.push_back(next);
  }
  if (static_cast<int>(order_.size()) == computations) return Ok();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the schedule can never finish: {}", Describe(FindCircle(*this, waiting), name))};
}

Result<ComputationGraph> ComputationGraph::Of(int computations,
                                              const std::vector<std::pair<int, int>>& edges,
                                              const std::function<std::string(int)>& name) {
  for (const auto& [from, to] : edges) {
    if (from < 0 || from >= computations || to < 0 || to >= computations)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the edge from {} to {} leads out of the {} computations", from, to,
                               computations)};
  }
  using Edge = std::pair<int, int>;
  ComputationGraph graph;
  graph.successors_ = Sorted(computations, edges, &Edge::first, &Edge::second);
  graph.predecessors_ = Sorted(computations, edges, &Edge::second, &Edge::first);
  ZEUS_RETURN_IF_ERROR(graph.Sort(name));
  return graph;
}

}  // namespace zeus::pipeline
