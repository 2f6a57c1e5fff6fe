#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/device/gpu.h"
#include "zeus/device/sim/load.h"
#include "zeus/device/sim/node_directory.h"
#include "zeus/device/sim/shared_node.h"

namespace zeus::sim {

// A node that was opened for work, and the clock that it needs.
struct OpenedNode {
  std::unique_ptr<SystemClock> clock;
  SharedNode node;
};

// The node of that name where the environment says that nodes are: see NodeDirectory.
Result<OpenedNode> OpenNode(std::string_view name);

// Which GPU of the node a driver shows as `visible`: it may count them in another order, hide some,
// or show another machine's (kNotFound).
Result<unsigned> IndexOnNode(const SharedNode& node, const Gpu& visible);

// The work of this process on one or several GPUs of a node, until destruction. Thread-safe.
//
// An endless load (steps and duration infinite) belongs to this process and needs heartbeats: each
// call here sends one, and so does a thread once KeepAlive() was called. A load with a number of
// steps or seconds ends by itself and needs no heartbeat.
class NodeWork {
 public:
  // `clock` is the one that the node was opened with; both must outlive this. Either all GPUs run
  // the load or, after an error, none. kInvalidArgument without a GPU or when one is named twice.
  static Result<std::unique_ptr<NodeWork>> Attach(SharedNode& node, Clock& clock,
                                                  const std::vector<unsigned>& gpus,
                                                  const LoadSpec& load);
  ~NodeWork();
  NodeWork(const NodeWork&) = delete;
  NodeWork& operator=(const NodeWork&) = delete;

  // Heartbeats come from a thread from now on. In real time only.
  void KeepAlive();

  // For a load without end: what is waited for is so many steps of every GPU from now on. A GPU
  // that is ahead of the slowest one goes on, as it spins when it waits for the others.
  Status Begin(double steps);

  // Node time until the slowest GPU has done its work, if nothing changes; zero when it has.
  // kUnavailable when the node was stopped.
  Result<Seconds> Remaining();

  // Waits, but for `longest` of real time only; whether all is done. Knobs may change meanwhile.
  Result<bool> WaitFor(Seconds longest);
  Status Wait();

 private:
  // One GPU of the node and what runs on it.
  struct Attachment {
    unsigned index;
    std::uint32_t load = 0;
    double target = 0;  // Steps of the load when what was asked for is done.
  };

  NodeWork(SharedNode& node, Clock& clock, const LoadSpec& load);

  bool endless() const;
  Status AttachTo(unsigned gpu);
  Status BeatIfDue();
  Result<Seconds> RemainingOn(const Attachment& gpu) const;

  SharedNode& node_;
  Clock& clock_;
  LoadSpec load_;
  std::mutex mutex_;
  std::vector<Attachment> gpus_;  // Guarded by mutex_, as the rest.
  TimePoint last_beat_{};
  double asked_ = 0;  // Steps of this run.
  std::optional<Ticker> heartbeat_;
};

}  // namespace zeus::sim
