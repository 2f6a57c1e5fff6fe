#include "zeus/device/amd/smi_board.h"

namespace zeus::amd {
namespace {

bool LibraryCannot(const Error& error) {
  return error.code == ErrorCode::kNotSupported || error.code == ErrorCode::kNotFound;
}

// sysfs knows the board under names that do not depend on the library; the library may know a
// better model name than a number.
GpuIdentity Merge(GpuIdentity identity, const Smi::Device& device) {
  if (!device.model.empty() && identity.model.starts_with("AMD GPU "))
    identity.model = device.model;
  if (identity.uuid.empty()) identity.uuid = device.uuid;
  return identity;
}

}  // namespace

SmiBoard::SmiBoard(std::shared_ptr<Smi> smi, const Smi::Device& device,
                   std::unique_ptr<Board> beneath)
    : Board(Merge(beneath->identity(), device)),
      smi_(std::move(smi)),
      handle_(device.handle),
      beneath_(std::move(beneath)) {}

Result<CounterSample> SmiBoard::Energy() {
  auto sample = smi_->Energy(handle_);
  return !sample.ok() && LibraryCannot(sample.error()) ? beneath_->Energy() : sample;
}

Result<Watts> SmiBoard::Power(PowerKind kind) {
  auto power = smi_->Power(handle_, kind);
  return !power.ok() && LibraryCannot(power.error()) ? beneath_->Power(kind) : power;
}

Result<PowerCap> SmiBoard::Cap() {
  auto cap = smi_->Cap(handle_);
  return !cap.ok() && LibraryCannot(cap.error()) ? beneath_->Cap() : cap;
}

Status SmiBoard::SetCap(Watts limit) {
  auto set = smi_->SetCap(handle_, limit);
  return !set.ok() && LibraryCannot(set.error()) ? beneath_->SetCap(limit) : set;
}

GpuIdentity IdentityFromSmi(const Smi::Device& device) {
  return {.uuid = device.uuid,
          .pci_address = device.pci_address,
          .model = device.model.empty() ? "AMD GPU of unknown type" : device.model,
          .driver = "",
          .vendor = Vendor::kAmd};
}

}  // namespace zeus::amd
