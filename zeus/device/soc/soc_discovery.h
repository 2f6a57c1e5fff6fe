#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/energy_meter.h"
#include "zeus/device/node.h"

namespace zeus::soc {

// The texts in which boards describe their sensors. Pure functions: they are fuzzed
// (fuzz/sysfs_fuzz.cc), so none may trust its input.

// "DRIVER=i915\nPCI_SLOT_NAME=0000:03:00.0\n" by key. Lines that are not text are left out.
std::map<std::string, std::string> ParseUevent(std::string_view text);

enum class GraceSensor { kModule, kGrace, kCpu, kSysIo };

// "CPU Power Socket 0", from power1_oem_info.
struct GraceSensorName {
  GraceSensor sensor;
  int socket;

  friend auto operator<=>(const GraceSensorName&, const GraceSensorName&) = default;
};
Result<GraceSensorName> ParseGraceSensorName(std::string_view text);

// Returns the name of the rail that the label of an INA3221 channel stands for; nothing for
// channels that are no rail.
std::optional<PowerRail::Role> RailRole(std::string_view label);

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

namespace zeus {

// Finds the sensors of boards and system-on-chip modules: the rails of a Jetson, the sockets of a
// Grace, and Intel's discrete GPUs. On other machines it finds nothing and reports nothing as
// absent.
Result<Findings> DiscoverSoc(const Surroundings& surroundings);

}  // namespace zeus
