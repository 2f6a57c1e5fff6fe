#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/amd/board.h"
#include "zeus/device/energy_counter.h"
#include "zeus/device/gpu.h"

namespace zeus {

// An AMD GPU, whatever interface its board is read through. Thread-safe; the clock must outlive
// it.
//
// On cards with two dies (MI250 class) only the first die has sensors and a limit, and they are
// those of the whole card. The second die is a Gpu too, for kernels run on it, but its energy,
// power and limit are errors that name the first, so that the card is counted once.
class AmdGpu final : public Gpu {
 public:
  // `counting_die` is the PCI address of the first die when this is the second.
  AmdGpu(std::string name, std::unique_ptr<amd::Board> board, const Clock& clock,
         std::optional<std::string> counting_die = std::nullopt);

  const std::string& name() const override { return name_; }
  const GpuIdentity& identity() const override { return board_->identity(); }

  // kUnavailable while the counter stands still under load; see StillCounter. Each such time
  // begins a new epoch.
  Result<EnergyReading> Energy() override;

  using Gpu::Power;
  Result<Watts> Power(PowerKind kind) override;
  Result<Celsius> Temperature() override;
  Result<Utilization> CurrentUtilization() override;
  Result<MemoryUse> CurrentMemoryUse() override;
  Result<ThrottleReasons> CurrentThrottleReasons() override;

  Result<PowerLimit> CurrentPowerLimit() override;
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;

  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override;
  Result<Hertz> CurrentClock(ClockDomain domain) override;
  Status LockClockWithoutJournal(ClockDomain domain, ClockRange range) override;
  Status ResetClock(ClockDomain domain) override;

  // amdgpu stays loaded without clients: always on.
  Result<Persistence> CurrentPersistence() override;
  Status SetPersistence(Persistence mode) override;

 private:
  // The driver reports only the cap in force. Our last request counts as the requested limit until
  // another program changes the cap.
  struct LastRequest {
    Watts requested;
    Watts outcome;
  };

  Status CountsItself() const;
  PowerLimit LimitFrom(const amd::PowerCap& cap);  // Needs mutex_.

  const std::string name_;
  const std::unique_ptr<amd::Board> board_;
  const Clock& clock_;
  const std::optional<std::string> counting_die_;

  std::mutex mutex_;  // For all below, and around reading what they remember.
  EnergyCounter counter_;
  amd::StillCounter still_;
  std::optional<LastRequest> last_request_;
};

}  // namespace zeus
