#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/closeable.h"
#include "zeus/device/sim/node_directory.h"
#include "zeus/device/sim/node_work.h"

namespace zeus::python {

// What Python calls a simulated node: one that this process started, which ends with it, or one
// that it found in its environment. Used with the GIL held.
class SimNode final : public Closeable {
 public:
  // Throw Failure. Nodes are where ZEUS_SIM_DIR says.
  static std::shared_ptr<SimNode> Start(const std::string& name, const sim::NodeSpec& spec);
  static std::shared_ptr<SimNode> Attach(const std::string& name);
  ~SimNode() override { Close(); }

  // The node and the clock that it needs, for as long as somebody works there.
  std::shared_ptr<sim::OpenedNode> opened() const;
  sim::SharedNode& node() const { return opened()->node; }

  // Ends whatever was made in this process since the node was, the newest first, and then the node:
  // monitors have let go of its GPUs and knobs are as they were.
  void Stop();

 private:
  SimNode() = default;
  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<sim::OpenedNode> opened_;
  std::optional<sim::NodeDirectory> directory_;  // Of a node that this process started.
};

// Work on GPUs of a node. Used with the GIL held.
class SimWork final : public Closeable {
 public:
  // `gpus` are positions among those that NVML shows to this process; none for all of them.
  static std::shared_ptr<SimWork> Open(const std::shared_ptr<SimNode>& node,
                                       const std::optional<std::vector<unsigned>>& gpus,
                                       const sim::LoadSpec& load);
  ~SimWork() override { Close(); }

  const std::vector<unsigned>& gpus() const { return gpus_; }  // As the node counts them.

  // The load runs from now on, for that many steps if a number is given.
  void Launch(std::optional<double> steps);
  // Runs so many steps while `compute` is called, if it is not None, and waits for them, without
  // the GIL. What it returns. Ctrl-C, and what it raises, ends the steps.
  pybind11::object Step(double steps, const pybind11::object& compute);

 private:
  void Wait();
  void Cancel();
  SimWork(const std::shared_ptr<SimNode>& node, std::vector<unsigned> gpus,
          const sim::LoadSpec& load);
  void DoClose() override { Cancel(); }
  void Abandon() override;

  std::shared_ptr<sim::OpenedNode> opened_;
  std::vector<unsigned> gpus_;
  sim::LoadSpec load_;
  std::shared_ptr<sim::NodeWork> running_;
};

}  // namespace zeus::python
