#include "zeus/device/nvml/nvml_handle.h"

#include <utility>

#include "zeus/device/nvml/nvml_error.h"

namespace zeus::nvml {

EnergyCounter::Total ForkableCounter::Advance(std::uint64_t raw) {
  const unsigned next = 1 - current_;
  states_[next].emplace(*states_[1 - next]);
  const EnergyCounter::Total total = states_[next]->Advance(raw);
  current_.store(next, std::memory_order_release);
  return total;
}

NvmlHandle::NvmlHandle(std::shared_ptr<NvmlSession> session, Device device,
                       const GpuIdentity& identity)
    : session_(std::move(session)),
      uuid_(identity.uuid),
      pci_address_(identity.pci_address),
      process_(new Process(ForkGeneration(), device)) {}

NvmlHandle::~NvmlHandle() { delete process_.load(); }

Return NvmlHandle::FindDevice(Device* device) const {
  const Return by_uuid = Call(api().get_handle_by_uuid, uuid_.c_str(), device);
  if (by_uuid == kSuccess) return by_uuid;
  const Return by_pci = Call(api().get_handle_by_pci, pci_address_.c_str(), device);
  return by_pci == kSuccess ? by_pci : by_uuid;
}

Result<NvmlHandle::Process*> NvmlHandle::AfterFork(Process* of_parent) {
  ZEUS_RETURN_IF_ERROR(session_->Enter());
  Device device = nullptr;
  const Return code = FindDevice(&device);
  if (code != kSuccess) return NvmlError(code, "find " + uuid_ + " again after a fork");
  auto own = std::make_unique<Process>(ForkGeneration(), device, *of_parent);
  if (process_.compare_exchange_strong(of_parent, own.get())) return own.release();
  (void)own->parent.release();  // Another thread was first; the parent's state is now its.
  return of_parent;
}

}  // namespace zeus::nvml
