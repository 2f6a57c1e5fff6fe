#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "zeus/device/amd/board.h"
#include "zeus/device/amd/smi.h"

namespace zeus::amd {

// A board read through a vendor library, and through `beneath` (sysfs) for all that the library
// does not offer. Thread-safe.
class SmiBoard final : public Board {
 public:
  SmiBoard(std::shared_ptr<Smi> smi, const Smi::Device& device, std::unique_ptr<Board> beneath);

  Result<CounterSample> Energy() override;
  Result<Watts> Power(PowerKind kind) override;
  Result<PowerCap> Cap() override;
  Status SetCap(Watts limit) override;

  Result<Celsius> Temperature() override { return beneath_->Temperature(); }
  Result<Utilization> Busy() override { return beneath_->Busy(); }
  Result<MemoryUse> Memory() override { return beneath_->Memory(); }
  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override {
    return beneath_->SupportedClocks(domain);
  }
  Result<Hertz> Clock(ClockDomain domain) override { return beneath_->Clock(domain); }
  Status LockClock(ClockDomain domain, ClockRange range) override {
    return beneath_->LockClock(domain, range);
  }
  Status ResetClock(ClockDomain domain) override { return beneath_->ResetClock(domain); }

 private:
  const std::shared_ptr<Smi> smi_;
  const Smi::Handle handle_;
  const std::unique_ptr<Board> beneath_;
};

// The identity of a board that only the library knows.
GpuIdentity IdentityFromSmi(const Smi::Device& device);

}  // namespace zeus::amd
