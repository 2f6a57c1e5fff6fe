#include "zeus/optimizer/pipeline/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
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

namespace {

Error EntryError(std::string_view field, std::size_t index, std::string_view why) {
  return FieldError(fmt::format("{}[{}]", field, index), why);
}

Result<const Json*> List(const Json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_array()) return FieldError(field, "must be a list");
  if (found->size() > 8U * kMostInstructions)
    return FieldError(field,
                      fmt::format("has {} entries, which is more than we plan for", found->size()));
  return &*found;
}

// Reads a whole number in [0, below).
Result<int> Index(const Json& value, std::size_t below) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= below)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("must hold whole numbers from 0 to below {}", below)};
  return static_cast<int>(value.get<std::uint64_t>());
}

Result<OperatingPoint> ReadPoint(const Json& json) {
  double mhz = 0;
  double seconds = 0;
  double joules = 0;
  FieldReader reader("an option", json);
  reader.Require("freq", mhz);
  reader.Require("time_s", seconds);
  reader.Require("energy_j", joules);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  return OperatingPoint{Hertz::FromMega(mhz), Seconds(seconds), Joules(joules)};
}

Result<ExponentialModel> ReadModel(const Json& spec, const Json& json) {
  ExponentialModel model;
  FieldReader reader("a cost model", json);
  reader.Require("a", model.a);
  reader.Require("b", model.b);
  reader.Require("c", model.c);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  FieldReader bounds("a spec with a cost model", spec);
  bounds.Require("min_quant", model.min);
  bounds.Require("max_quant", model.max);
  ZEUS_RETURN_IF_ERROR(bounds.FinishAllowingOthers());
  return model;
}

Result<ComputationKind> ReadSpec(const Json& json) {
  ComputationKind kind;
  FieldReader reader("a spec", json);
  reader.Require("stage", kind.stage);
  reader.Require("type", kind.instruction);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  ZEUS_TRY(const Json* const options, List(json, "options_all"));
  for (std::size_t i = 0; i < options->size(); ++i) {
    Result<OperatingPoint> point = ReadPoint((*options)[i]);
    if (!point.ok()) return EntryError("options_all", i, point.error().message);
    kind.points.push_back(point.value());
  }
  if (const auto model = json.find("cost_model"); model != json.end() && !model->is_null()) {
    ZEUS_TRY(kind.exponential, ReadModel(json, *model));
  }
  return kind;
}

Status ReadSpecs(const Json& json, Problem& problem) {
  ZEUS_TRY(const Json* const specs, List(json, "specs"));
  PipelineProfile profile{.stages = problem.stages, .blocking_power = problem.blocking_power};
  for (std::size_t i = 0; i < specs->size(); ++i) {
    Result<ComputationKind> kind = ReadSpec((*specs)[i]);
    if (!kind.ok()) return EntryError("specs", i, kind.error().message);
    problem.kinds.push_back(std::move(kind).value());
    const ComputationKind& added = problem.kinds.back();
    profile.instructions.push_back({added.stage, added.instruction, added.points});
  }
  const Status checked = Check(profile);
  if (!checked.ok()) return FieldError("specs", checked.error().message);
  return Ok();
}

Status ReadNodes(const Json& json, Problem& problem) {
  ZEUS_TRY(const Json* const nodes, List(json, "nodes"));
  if (nodes->empty()) return FieldError("nodes", "needs at least one");
  if (nodes->size() > kMostInstructions)
    return FieldError("nodes", fmt::format("has {}, more than the {} that we plan for",
                                           nodes->size(), kMostInstructions));
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const Json& node = (*nodes)[i];
    if (!node.is_array() || node.size() != 4)
      return EntryError("nodes", i, "must be [stage, microbatch, \"F\" or \"B\", spec]");
    const Result<int> stage = Index(node[0], At(problem.stages));
    const Result<int> microbatch = Index(node[1], kMostInstructions);
    const Result<int> kind = Index(node[3], problem.kinds.size());
    for (const Result<int>* number : {&stage, &microbatch, &kind})
      if (!number->ok()) return EntryError("nodes", i, number->error().message);
    problem.computations.push_back(
        {.stage = stage.value(), .microbatch = microbatch.value(), .kind = kind.value()});
    if (problem.Kind(static_cast<int>(i)).stage != stage.value())
      return EntryError("nodes", i, "names a spec of another stage");
  }
  return Ok();
}

Status ReadEdges(const Json& json, Problem& problem) {
  ZEUS_TRY(const Json* const edges, List(json, "edges"));
  std::vector<std::pair<int, int>> ends;
  ends.reserve(edges->size());
  for (std::size_t i = 0; i < edges->size(); ++i) {
    const Json& edge = (*edges)[i];
    if (!edge.is_array() || edge.size() != 2) return EntryError("edges", i, "must be [from, to]");
    const Result<int> from = Index(edge[0], problem.computations.size());
    const Result<int> to = Index(edge[1], problem.computations.size());
    for (const Result<int>* number : {&from, &to})
      if (!number->ok()) return EntryError("edges", i, number->error().message);
    ends.emplace_back(from.value(), to.value());
  }
  const auto name = [](int node) { return fmt::format("node {}", node); };
  ZEUS_TRY(problem.graph,
           ComputationGraph::Of(static_cast<int>(problem.computations.size()), ends, name));
  return Ok();
}

// Requires that each stage does one computation after the other: otherwise the time that it waits,
// and so its blocking energy, would not be defined.
Status OrderStages(Problem& problem) {
  problem.stage_order.resize(At(problem.stages));
  for (const int computation : problem.graph.topological_order()) {
    const int stage = problem.computations[At(computation)].stage;
    std::vector<int>& order = problem.stage_order[At(stage)];
    if (!order.empty() && std::ranges::find(problem.graph.Successors(order.back()), computation) ==
                              problem.graph.Successors(order.back()).end())
      return FieldError("edges",
                        fmt::format("let node {} and node {} of stage {} at the same time: "
                                    "give an edge from one to the next",
                                    order.back(), computation, stage));
    order.push_back(computation);
  }
  return Ok();
}

}  // namespace

Result<Problem> ParseInstance(std::string_view text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  Problem problem;
  double quantum = problem.quantum.count();
  double blocking = 0;
  FieldReader reader("an instance", json);
  reader.Read("name", problem.name);
  reader.Require("num_stages", problem.stages);
  reader.Require("num_microbatches", problem.microbatches);
  reader.Require("p2p_power_w", blocking);
  reader.Read("unit_time_s", quantum);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (problem.stages < 1 || problem.stages > kMostInstructions)
    return FieldError("num_stages", fmt::format("must be from 1 to {}", kMostInstructions));
  if (problem.microbatches < 1 || problem.microbatches > kMostInstructions)
    return FieldError("num_microbatches", fmt::format("must be from 1 to {}", kMostInstructions));
  if (!(quantum >= 1e-6) || !(quantum <= 60))
    return FieldError("unit_time_s", "must be from 1e-6 to 60 seconds");
  problem.quantum = Seconds(quantum);
  problem.blocking_power = Watts(blocking);
  ZEUS_RETURN_IF_ERROR(ReadSpecs(json, problem));
  ZEUS_RETURN_IF_ERROR(ReadNodes(json, problem));
  ZEUS_RETURN_IF_ERROR(ReadEdges(json, problem));
  ZEUS_RETURN_IF_ERROR(OrderStages(problem));
  return problem;
}

}  // namespace zeus::pipeline
