#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "zeus/device/cpu_package.h"
#include "zeus/device/node.h"
#include "zeus/device/soc/measured_rail.h"

namespace zeus::soc {

// The CPU socket of an NVIDIA Grace module: the ACPI power meters know its power, not its energy.
// Its memory has no sensor: it is what the Grace rail supplies beyond the CPU and the I/O.
// Thread-safe.
class GraceCpu final : public CpuPackage {
 public:
  GraceCpu(int socket, PowerSensor power, std::unique_ptr<MeasuredRail> memory);

  const std::string& name() const override { return name_; }
  const CpuIdentity& identity() const override { return identity_; }
  EnergyMeter* dram() override { return memory_.get(); }

  Result<EnergyReading> Energy() override { return NoEnergyCounter(name_); }
  Result<Watts> Power() override;
  Result<PowerLimit> CurrentPowerLimit() override;
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;

 private:
  Error NoLimit() const;

  const CpuIdentity identity_;
  const std::string name_;
  const PowerSensor power_;
  const std::unique_ptr<MeasuredRail> memory_;
};

// Grace CPUs, the total of their modules ("rail:module:0") and their I/O ("rail:sysio:0"). Adds the
// reason when the CPU is a Grace but its meters are missing.
void FindGrace(const Surroundings& surroundings, Findings& findings);

}  // namespace zeus::soc
