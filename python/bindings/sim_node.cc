#include "python/bindings/sim_node.h"

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "python/bindings/errors.h"
#include "python/bindings/without_gil.h"
#include "zeus/device/node.h"
#include "zeus/device/nvml/nvml_discovery.h"

namespace zeus::python {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kRealSignalPeriod = 50ms;  // Real time, not the node's.

// Which GPUs of the node this process sees at these positions.
Result<std::vector<unsigned>> OnNode(const sim::OpenedNode& opened,
                                     const std::optional<std::vector<unsigned>>& positions) {
  ZEUS_TRY(const Findings found, DiscoverNvidia(RealSurroundings(*opened.clock)));
  std::vector<unsigned> wanted(found.gpus.size());
  std::iota(wanted.begin(), wanted.end(), 0U);
  if (positions) wanted = *positions;
  if (wanted.empty())
    return Error{ErrorCode::kNotFound, positions || found.absent.empty()
                                           ? "work needs a GPU: name one at least"
                                           : "no GPU is visible: " + found.absent.front().reason};
  std::vector<unsigned> indices;
  for (const unsigned position : wanted) {
    if (position >= found.gpus.size())
      return Error{ErrorCode::kNotFound,
                   fmt::format("there is no GPU {}: {} are visible to this process", position,
                               found.gpus.size())};
    ZEUS_TRY(const unsigned index, sim::IndexOnNode(opened.node, *found.gpus[position]));
    if (std::find(indices.begin(), indices.end(), index) != indices.end())
      return Error{ErrorCode::kInvalidArgument, fmt::format("GPU {} was named twice", position)};
    indices.push_back(index);
  }
  return indices;
}

}  // namespace

std::shared_ptr<SimNode> SimNode::Start(const std::string& name, const sim::NodeSpec& spec) {
  auto clock = std::make_unique<SystemClock>();
  auto directory = Unwrap(sim::NodeDirectory::FromEnvironment(*clock));
  sim::SharedNode created = Unwrap(directory.Create(name, spec));
  std::shared_ptr<SimNode> node(new SimNode);
  node->opened_ = std::make_shared<sim::OpenedNode>(
      sim::OpenedNode{.clock = std::move(clock), .node = std::move(created)});
  node->directory_ = std::move(directory);
  return node;
}

std::shared_ptr<SimNode> SimNode::Attach(const std::string& name) {
  auto opened = Unwrap(sim::OpenNode(name));
  std::shared_ptr<SimNode> node(new SimNode);
  node->opened_ = std::make_shared<sim::OpenedNode>(std::move(opened));
  return node;
}

std::shared_ptr<sim::OpenedNode> SimNode::opened() const {
  CheckOpen("simulated node");
  return opened_;
}

void SimNode::Stop() {
  if (closed() || InForkedChild()) return Close();
  CloseNewerThan(*this);
  Close();
}

void SimNode::DoClose() {
  const auto opened = std::exchange(opened_, nullptr);
  const auto directory = std::exchange(directory_, std::nullopt);
  // Somebody may have stopped it before: then there is nothing to do.
  if (directory) (void)directory->Remove(opened->node.name());
}

void SimNode::Abandon() {
  // Memory that is shared with whoever runs the node, without a thread or a lock of ours.
  opened_.reset();
  directory_.reset();
}

SimWork::SimWork(const std::shared_ptr<SimNode>& node, std::vector<unsigned> gpus,
                 const sim::LoadSpec& load)
    : Closeable(node.get()), opened_(node->opened()), gpus_(std::move(gpus)), load_(load) {}

std::shared_ptr<SimWork> SimWork::Open(const std::shared_ptr<SimNode>& node,
                                       const std::optional<std::vector<unsigned>>& gpus,
                                       const sim::LoadSpec& load) {
  const auto opened = node->opened();
  std::vector<unsigned> indices;
  {
    const WithoutGil released;
    indices = Unwrap(OnNode(*opened, gpus));
  }
  // An unknown GPU or a load that means nothing shows now, not at the first step.
  for (const unsigned gpu : indices)
    Unwrap(sim::MakeLoad(load, Unwrap(opened->node.Read(gpu, opened->node.Now())).core.model()));
  return std::shared_ptr<SimWork>(new SimWork(node, std::move(indices), load));
}

void SimWork::Launch(std::optional<double> steps) {
  CheckOpen("work");
  if (running_)
    throw Failure({ErrorCode::kConflict, "this work runs already: use one for each thread"});
  sim::LoadSpec load = load_;
  if (steps) load.steps = *steps;
  std::shared_ptr<sim::NodeWork> work =
      Unwrap(sim::NodeWork::Attach(opened_->node, *opened_->clock, gpus_, load));
  if (!steps) work->KeepAlive();
  running_ = std::move(work);
}

void SimWork::Wait() {
  CheckOpen("work");
  const auto work = running_;
  while (work) {
    bool done = false;
    {
      const WithoutGil released;
      done = Unwrap(work->WaitFor(kRealSignalPeriod));
    }
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    if (closed())
      throw Failure({ErrorCode::kUnavailable, "this work was stopped while it was waited for"});
    if (done) break;
  }
}

void SimWork::Cancel() { running_.reset(); }

pybind11::object SimWork::Step(double steps, const pybind11::object& compute) {
  Launch(steps);
  // In one call, so that no Ctrl-C can come between the beginning and the end.
  struct AtTheEnd {
    SimWork& work;
    ~AtTheEnd() { work.Cancel(); }
  } const at_the_end{*this};
  pybind11::object result = compute.is_none() ? compute : compute();
  Wait();
  return result;
}

void SimWork::Abandon() {
  // Its thread does not exist here, and what it runs is its parent's.
  static auto* const abandoned = new std::vector<std::shared_ptr<sim::NodeWork>>();
  static auto* const nodes = new std::vector<std::shared_ptr<sim::OpenedNode>>();
  abandoned->push_back(std::move(running_));
  nodes->push_back(std::move(opened_));
}

}  // namespace zeus::python
