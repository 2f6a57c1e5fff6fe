#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/device/energy_meter.h"

// The texts in which boards describe their sensors. Pure functions: they are fuzzed
// (fuzz/sysfs_fuzz.cc), so none may trust its input.
namespace zeus::soc {

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

}  // namespace zeus::soc
