#pragma once

#include <memory>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/energy_meter.h"
#include "zeus/device/sysfs.h"

namespace zeus::rapl {

// The energy of one RAPL domain (a package, the memory of a package), whatever interface of the
// kernel it is read through. Thread-safe.
class DomainCounter {
 public:
  virtual ~DomainCounter() = default;

  virtual Result<EnergyReading> Read() = 0;

  // See EnergyMeter::LongestReadInterval().
  virtual std::optional<Seconds> LongestReadInterval() const = 0;
};

// An energy counter with a name: "dram:0".
class RaplMemory final : public EnergyMeter {
 public:
  RaplMemory(int package, std::unique_ptr<DomainCounter> counter)
      : name_("dram:" + std::to_string(package)), counter_(std::move(counter)) {}

  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override { return counter_->Read(); }
  Result<Watts> Power() override;
  std::optional<Seconds> LongestReadInterval() const override {
    return counter_->LongestReadInterval();
  }

 private:
  const std::string name_;
  const std::unique_ptr<DomainCounter> counter_;
};

// A CPU socket with RAPL counters: energy through perf or powercap, the power limit through
// powercap whichever of them counts. Thread-safe.
class RaplPackage final : public CpuPackage {
 public:
  struct Parts {
    CpuIdentity identity;
    std::unique_ptr<DomainCounter> energy;
    std::unique_ptr<RaplMemory> memory;  // Null when it is not counted.
    Result<SysfsPowerLimit> limit;       // Or why there is none.
  };

  explicit RaplPackage(Parts parts);

  const std::string& name() const override { return name_; }
  const CpuIdentity& identity() const override { return parts_.identity; }
  EnergyMeter* dram() override { return parts_.memory.get(); }

  Result<EnergyReading> Energy() override { return parts_.energy->Read(); }
  Result<Watts> Power() override;
  std::optional<Seconds> LongestReadInterval() const override {
    return parts_.energy->LongestReadInterval();
  }

  Result<PowerLimit> CurrentPowerLimit() override;
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;

 private:
  const std::string name_;
  const Parts parts_;
};

}  // namespace zeus::rapl
