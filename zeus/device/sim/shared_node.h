#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/sim/node_layout.h"

namespace zeus::sim {

enum class Access { kRead, kWrite };

// Memory of a node, unmapped with its owner.
class NodeMemory {
 public:
  NodeMemory(void* address, std::size_t size) : address_(address), size_(size) {}
  NodeMemory(NodeMemory&& other) noexcept;
  NodeMemory& operator=(NodeMemory&&) = delete;
  ~NodeMemory();

  void* address() const { return address_; }
  std::size_t size() const { return size_; }

 private:
  void* address_;
  std::size_t size_;
};

// A simulated node in memory that several processes may share. State advances lazily: every
// access brings a GPU from its last change to the present of the node's clock, which is the
// injected clock since the node started, times the time scale. So no process has to run for the
// node to exist, and reading changes nothing.
//
// Thread-safe, and safe against processes that die at any instruction. `clock` must outlive it.
class SharedNode {
 public:
  // A node of this process alone, without a file.
  static Result<SharedNode> CreatePrivate(const NodeSpec& spec, Clock& clock);

  // Takes over memory that passed CheckLayout(). `name` is for messages.
  SharedNode(std::string name, NodeMemory memory, Access access, Clock& clock);

  const std::string& name() const { return name_; }
  unsigned gpu_count() const { return header().gpu_count; }
  std::uint64_t seed() const { return header().seed; }
  double time_scale() const { return header().time_scale; }

  // Whether the node was stopped while it was mapped here.
  bool stopped() const { return header().stopped.load(std::memory_order_acquire) != 0; }
  void MarkStopped();

  // The present in node time.
  Seconds Now() const;

  // A reader's own copy of a GPU, at a moment of node time.
  using View = CoreSlot::Snapshot;
  Result<View> Read(unsigned index, Seconds time) const;

  // Brings a view of the same GPU to `time`. Copies the GPU only if it was changed since.
  Status Refresh(unsigned index, Seconds time, View& view) const;

  // Applies a change at the present time. What `change` returns is returned, and an error leaves
  // the GPU as it was. kPermissionDenied when the node was opened for reading.
  Status Update(unsigned index, const std::function<Status(GpuCore&)>& change);

  // The same at an earlier time of the node, or at that of the last change if it is later: for a
  // program that learns of an event a little after it happened. What readers saw since then must
  // not be more energy than the change leads to.
  Status UpdateAt(unsigned index, Seconds time, const std::function<Status(GpuCore&)>& change);

 private:
  const NodeHeader& header() const { return *static_cast<const NodeHeader*>(memory_.address()); }
  Status CheckIndex(unsigned index) const;

  std::string name_;
  NodeMemory memory_;
  Access access_;
  Clock* clock_;
};

}  // namespace zeus::sim
