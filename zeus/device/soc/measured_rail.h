#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/energy_meter.h"
#include "zeus/device/node.h"

namespace zeus::soc {

// Reads power from one or more sysfs attributes; may be called from several threads.
using PowerSensor = std::function<Result<Watts>()>;

// A sensor over one attribute in microwatts, as hwmon keeps power.
PowerSensor HwmonPower(std::filesystem::path attribute);

// The refusal of a meter that knows its power only.
Error NoEnergyCounter(const std::string& name);

// Something with a power sensor and no energy counter. Thread-safe.
class MeasuredRail final : public PowerRail {
 public:
  MeasuredRail(std::string name, Role role, PowerSensor sensor);

  const std::string& name() const override { return name_; }
  Role role() const override { return role_; }
  Result<EnergyReading> Energy() override { return NoEnergyCounter(name_); }
  Result<Watts> Power() override;

 private:
  const std::string name_;
  const Role role_;
  const PowerSensor sensor_;
};

// The rails that the INA3221 chips of a Jetson measure, named as the board labels them
// ("rail:VDD_CPU_GPU_CV": a combined rail stays one). Both drivers are read: hwmon (JetPack 5 and
// later) and industrial I/O (JetPack 4). Rails that cannot be read are absent with the reason.
void FindIna3221Rails(const std::filesystem::path& sysfs, Findings& findings);

}  // namespace zeus::soc
