#include "zeus/device/amd/smi.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "zeus/device/privilege.h"

namespace zeus::amd {

Error SmiCaller::ErrorFor(std::uint32_t status, const char* name) const {
  for (const SmiStatus& row : statuses) {
    if (row.status != status) continue;
    const bool refused = row.code == ErrorCode::kPermissionDenied;
    return {row.code, fmt::format("{}: {}{}{} (status {})", name, row.meaning, refused ? "; " : "",
                                  refused ? RefusalAdvice() : "", status)};
  }
  return {ErrorCode::kInternal, fmt::format("{}: unknown status {}", name, status)};
}

Error SmiCaller::Missing(const char* name) const {
  return {ErrorCode::kNotSupported, fmt::format("this {} has no {}", library, name)};
}

Result<CounterSample> SampleFromSmi(std::uint64_t ticks, float microjoules_per_tick) {
  constexpr float kAnnounced = 15.3F;
  constexpr float kTolerance = 0.05F;  // Also covers 15.259, said by a library that says it right.
  if (ticks == std::numeric_limits<std::uint64_t>::max())
    return Error{ErrorCode::kNotSupported, "the library has no energy counter for this board"};
  if (std::abs(microjoules_per_tick - kAnnounced) < kTolerance)
    return CounterSample{.ticks = ticks, .tick = kEnergyTick};
  if (!(microjoules_per_tick > 0.0F) || !std::isfinite(microjoules_per_tick)) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the library says that a tick of the energy counter is {} uJ",
                             microjoules_per_tick)};
  }
  return CounterSample{.ticks = ticks,
                       .tick = Joules::FromMicro(static_cast<double>(microjoules_per_tick))};
}

double MicrowattsPerUnit(const RawCap& cap) {
  constexpr std::uint64_t kMostWatts = 100'000;
  return cap.max < kMostWatts ? 1e6 : 1.0;
}

PowerCap CapFromSmi(const RawCap& cap) {
  const auto watts = [scale = MicrowattsPerUnit(cap)](std::uint64_t units) {
    return Watts::FromMicro(static_cast<double>(units) * scale);
  };
  return {.range = {.min = watts(cap.min), .max = watts(cap.max)},
          .default_limit = watts(cap.default_limit),
          .current = watts(cap.current)};
}

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
