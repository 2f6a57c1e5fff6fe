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

// Where the energy of a device comes from, or why it is not known.
struct EnergyDiagnosis {
  enum class Source { kCounter, kIntegratedPower, kNone };
  Source source = Source::kNone;
  std::optional<UpdatePeriod> update_period;  // Measured; nullopt when too few updates were seen.
  std::string reason;                         // Why the counter is not the source.
  std::string fix;
};

struct KnobDiagnosis {
  Result<PowerLimit> limit;
  Status settable;
  std::string fix;  // Of a limit that cannot be set, or of a stricter one from outside.
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
  std::string name;    // Model.
  std::string uuid;
  std::string pci;
  EnergyDiagnosis energy;
  std::optional<KnobDiagnosis> power_limit;  // Rails have none.
  std::vector<Finding> others;
};

// What works on this machine, what does not, and why.
struct DoctorReport {
  std::vector<DeviceDiagnosis> gpus;
  std::vector<DeviceDiagnosis> cpus;
  std::vector<DeviceDiagnosis> rails;
  std::vector<Absence> absent;
  std::vector<Absence> leftovers{};  // Knobs that killed programs left changed.

  bool AnyEnergySource() const;
};

// Polls every sensor for `duration` to measure its update period. Whether knobs may be turned is
// found out by setting one to the value it has: privileges alone do not tell (hardware refuses in
// containers that have them all), and this changes nothing.
DoctorReport Diagnose(Node& node, Clock& clock, Seconds duration);

// In colours where `terminal` shows them.
std::string ToText(const DoctorReport& report, const Terminal& terminal = {});
Json ToJson(const DoctorReport& report);

}  // namespace zeus::cli
