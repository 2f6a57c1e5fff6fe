#include "zeus/device/sim/shared_node.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace zeus::sim {
namespace {

class SlotLock {
 public:
  explicit SlotLock(CoreSlot& slot) : slot_(slot) {}
  SlotLock(const SlotLock&) = delete;
  SlotLock& operator=(const SlotLock&) = delete;
  ~SlotLock() { slot_.Unlock(); }

 private:
  CoreSlot& slot_;
};

}  // namespace

NodeMemory::NodeMemory(NodeMemory&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

NodeMemory::~NodeMemory() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

Result<SharedNode> SharedNode::CreatePrivate(const NodeSpec& spec, Clock& clock) {
  ZEUS_RETURN_IF_ERROR(CheckNodeSpec(spec));
  const std::size_t size = NodeSize(static_cast<unsigned>(spec.gpus.size()));
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Error{ErrorCode::kUnavailable, "no memory for a simulated node"};
  NodeMemory memory(address, size);
  ZEUS_RETURN_IF_ERROR(FormatNode(address, spec, clock.Now().time_since_epoch().count(), ""));
  return SharedNode("private", std::move(memory), Access::kWrite, clock);
}

SharedNode::SharedNode(std::string name, NodeMemory memory, Access access, Clock& clock)
    : name_(std::move(name)), memory_(std::move(memory)), access_(access), clock_(&clock) {}

void SharedNode::MarkStopped() {
  static_cast<NodeHeader*>(memory_.address())->stopped.store(1, std::memory_order_release);
}

Seconds SharedNode::Now() const {
  const Seconds real = clock_->Now().time_since_epoch() - Seconds(header().start);
  return real * header().time_scale;
}

Status SharedNode::CheckIndex(unsigned index) const {
  if (index < gpu_count()) return Ok();
  const std::string range =
      gpu_count() == 1 ? "only GPU 0" : fmt::format("GPUs 0 to {}", gpu_count() - 1);
  return Error{ErrorCode::kNotFound,
               fmt::format("node \"{}\" has no GPU {}: it has {}", name_, index, range)};
}

Result<SharedNode::View> SharedNode::Read(unsigned index, Seconds time) const {
  ZEUS_RETURN_IF_ERROR(CheckIndex(index));
  auto view = SlotAt(memory_.address(), index).Load();
  if (!view.ok()) {
    return Error{view.error().code,
                 fmt::format("GPU {} of node \"{}\": {}; remove the node with: zeus sim stop "
                             "--name {}",
                             index, name_, view.error().message, name_)};
  }
  view.value().core.AdvanceTo(time);
  return view;
}

Status SharedNode::Refresh(unsigned index, Seconds time, View& view) const {
  ZEUS_RETURN_IF_ERROR(CheckIndex(index));
  if (SlotAt(memory_.address(), index).sequence() == view.sequence) {
    view.core.AdvanceTo(time);
    return Ok();
  }
  ZEUS_TRY(view, Read(index, time));
  return Ok();
}

Status SharedNode::Update(unsigned index, const std::function<Status(GpuCore&)>& change) {
  return UpdateAt(index, Seconds(std::numeric_limits<double>::infinity()), change);
}

Status SharedNode::UpdateAt(unsigned index, Seconds time,
                            const std::function<Status(GpuCore&)>& change) {
  ZEUS_RETURN_IF_ERROR(CheckIndex(index));
  if (access_ == Access::kRead) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("node \"{}\" is open for reading only", name_)};
  }
  CoreSlot& slot = SlotAt(memory_.address(), index);
  if (auto locked = slot.Lock(); !locked.ok()) {
    return std::move(locked).error().While(
        fmt::format("GPU {} of node \"{}\" cannot be changed now", index, name_));
  }
  const SlotLock lock(slot);
  // The time is taken under the lock: changes are made in the order of their times.
  ZEUS_TRY(View view, Read(index, std::min(time, Now())));
  ZEUS_RETURN_IF_ERROR(change(view.core));
  slot.Store(view.core);
  return Ok();
}

}  // namespace zeus::sim
