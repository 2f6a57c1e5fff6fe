#include "zeus/optimizer/pipeline/instance_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::pipeline {
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
