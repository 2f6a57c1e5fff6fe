#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/terminal.h"
#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/device/node.h"
#include "zeus/device/update_period.h"

namespace zeus::cli {

// The source of a device's energy, or the reason why there is none.
struct EnergyDiagnosis {
  enum class Source { kCounter, kIntegratedPower, kNone };
  Source source = Source::kNone;
  std::optional<UpdatePeriod> update_period;  // Measured; nullopt when too few updates were seen.
  std::string reason;                         // The reason why the counter is not the source.
  std::string fix;
};

struct KnobDiagnosis {
  Result<PowerLimit> limit;
  Status settable;
  std::string fix;  // For a limit that cannot be set, or for a stricter one from outside.
};

// One line of the report: "temperature  41 °C" or "memory power  no: …".
struct Finding {
  std::string what;
  bool works;
  std::string detail;
  std::string fix;
};

struct DeviceDiagnosis {
  std::string device;  // "gpu:0"
  std::string name;    // Name of the model.
  std::string uuid;
  std::string pci;
  EnergyDiagnosis energy;
  std::optional<KnobDiagnosis> power_limit;  // Unset for rails, which have no limit.
  std::vector<Finding> others;
};

// The working and missing capabilities of this machine, with reasons.
struct DoctorReport {
  std::vector<DeviceDiagnosis> gpus;
  std::vector<DeviceDiagnosis> cpus;
  std::vector<DeviceDiagnosis> rails;
  std::vector<Absence> absent;
  std::vector<Absence> leftovers{};  // Knobs that killed programs left changed.
  // Which way the devices were opened, and why: "directly: this process is root".
  std::string way{};

  bool AnyEnergySource() const;
};

// Polls every sensor for `duration` to measure its update period. Tests whether knobs can be set by
// setting one to its present value, which changes nothing: privileges alone do not tell, because
// hardware can refuse even containers that have all of them.
DoctorReport Diagnose(Node& node, Clock& clock, Seconds duration);

// Returns text with colours if `terminal` shows them.
std::string ToText(const DoctorReport& report, const Terminal& terminal = {});
Json ToJson(const DoctorReport& report);

}  // namespace zeus::cli
