#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/energy_counter.h"
#include "zeus/device/rapl/rapl_package.h"
#include "zeus/device/rapl/rapl_text.h"
#include "zeus/device/sysfs.h"

namespace zeus::rapl {

// The zones of one package in <sysfs>/class/powercap: one of each per die.
struct PowercapPackage {
  std::vector<std::filesystem::path> package;
  std::vector<std::filesystem::path> memory;
};

// By package number. Only the control type "intel-rapl" is counted (AMD uses it too):
// "intel-rapl-mmio" shows the same counters again. psys contains the packages, core and uncore are
// contained in them. Zones of one name, of the further dies of an AMD package, and of packages that
// the machine does not have are duplicates.
std::map<int, PowercapPackage> ScanPowercap(const std::filesystem::path& sysfs,
                                            const CpuTopology& topology);

// The rated (thermal design) power of a zone, where the kernel knows it.
std::optional<Watts> RatedPower(const std::filesystem::path& zone);

// The long-term power limit of a package.
Result<SysfsPowerLimit> OpenLongTermLimit(const PowercapPackage& package);

// The energy_uj files of the dies of one domain, summed. The hardware counts in 32 bits and turns
// over within minutes; nothing is lost as long as Read() is called at least every
// LongestReadInterval().
class PowercapCounter final : public DomainCounter {
 public:
  // `rated_power` of the package tells how fast the counter can run.
  static Result<std::unique_ptr<PowercapCounter>> Open(
      const std::vector<std::filesystem::path>& zones, std::optional<Watts> rated_power);

  Result<EnergyReading> Read() override;

  // max_energy_range / (2 * rated power): short bursts exceed the rated power, though not twice.
  std::optional<Seconds> LongestReadInterval() const override { return longest_interval_; }

 private:
  struct Zone {
    std::filesystem::path energy;
    std::uint64_t largest;  // max_energy_range_uj
    EnergyCounter counter;
  };

  PowercapCounter() = default;

  std::mutex mutex_;
  std::vector<Zone> zones_;  // Guarded by mutex_: see EnergyCounter.
  std::optional<Seconds> longest_interval_;
};

}  // namespace zeus::rapl
