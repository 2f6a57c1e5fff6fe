#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/amd/board.h"
#include "zeus/device/gpu.h"

namespace zeus::amd {

// Where amdgpu keeps its files and how their text reads.

// One card of the amdgpu driver.
struct Card {
  std::filesystem::path device;  // <sysfs>/class/drm/card0/device
  std::filesystem::path hwmon;   // Its only hwmon directory; empty if it has none.
  GpuIdentity identity;
};

// An AMD display device that has no card because another driver, or none, is bound to it.
struct UnboundDevice {
  std::string pci_address;
  std::string driver;  // Empty where no driver is bound.
};

struct CardList {
  std::vector<Card> cards;  // Sorted by PCI address.
  std::vector<UnboundDevice> unbound;
};

CardList FindCards(const std::filesystem::path& sysfs);

// PCI addresses of the GPUs in the order in which ROCm's runtime counts them, from the topology of
// the compute driver. A partitioned board appears once per partition. Empty without that driver.
std::vector<std::string> RuntimeOrder(const std::filesystem::path& sysfs);

// One line of pp_dpm_sclk or pp_dpm_mclk.
struct ClockLevel {
  unsigned index;  // The driver takes this number when levels are chosen.
  Hertz clock;
};

// "0: 500Mhz\n1: 1700Mhz *\n". Deep-sleep entries ("S: 19Mhz") cannot be chosen and are left out.
Result<std::vector<ClockLevel>> ParseClockLevels(std::string_view text);

// Returns the range that pp_od_clk_voltage allows for a domain: the line "SCLK: 500Mhz 1700Mhz"
// below "OD_RANGE:". kNotSupported when the file does not offer the domain.
Result<ClockRange> ParseOverdriveRange(std::string_view text, ClockDomain domain);

// Domain, bus, device and function packed as ROCm SMI, AMD SMI and the compute driver do.
std::string PciAddress(std::uint64_t domain, std::uint64_t bus_device_function);

// The fields that Zeus uses of amdgpu's binary `gpu_metrics` file. A field that the firmware marks
// as not available (all ones) is empty.
struct GpuMetrics {
  // In units of kEnergyTick, since the driver was loaded.
  std::optional<std::uint64_t> energy_accumulator;
  std::optional<Watts> current_power;  // v1.4 and later.
  std::optional<Watts> average_power;  // v1.1 to v1.3.
};

// Decodes the content of the file by the version in its header. kNotSupported for a layout that
// is known to have no energy accumulator (v1.0, v2.x of APUs) or that is not known at all;
// kUnavailable when the bytes contradict their own header.
Result<GpuMetrics> ParseGpuMetrics(std::string_view bytes);

// A board read through amdgpu's sysfs and hwmon files: needs no library and, for reading, no
// privileges. Thread-safe.
class SysfsBoard final : public Board {
 public:
  explicit SysfsBoard(Card card);

  Result<CounterSample> Energy() override;
  Result<Watts> Power(PowerKind kind) override;
  Result<Celsius> Temperature() override;
  Result<Utilization> Busy() override;
  Result<MemoryUse> Memory() override;
  Result<PowerCap> Cap() override;
  Status SetCap(Watts limit) override;
  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override;
  Result<Hertz> Clock(ClockDomain domain) override;
  Status LockClock(ClockDomain domain, ClockRange range) override;
  Status ResetClock(ClockDomain domain) override;

 private:
  struct ClockTable {
    std::vector<ClockLevel> levels;
    std::optional<ClockRange> overdrive;  // Where the driver takes any clock of a range.
  };

  // Says what a failed file means for the device: a missing one is not supported, a board that
  // is gone or a file that makes no sense is unavailable.
  Error AsDeviceError(Error error) const;
  Result<double> Number(const std::filesystem::path& path) const;
  Result<double> HwmonNumber(const char* file) const;
  Status Write(const std::filesystem::path& path, const std::string& text) const;
  Result<GpuMetrics> Metrics() const;

  Result<ClockTable> Table(ClockDomain domain);  // The three below need mutex_.
  Status Apply(ClockDomain domain, const ClockTable& table, ClockRange range);
  Status SetLevel(const std::string& level);

  const std::filesystem::path device_;
  const std::filesystem::path hwmon_;

  std::mutex mutex_;
  std::optional<ClockTable> tables_[2];  // By domain; fixed while the driver is loaded.
  std::set<ClockDomain> locked_;
  std::string level_before_us_;  // The value that power_dpm_force_performance_level had before the
                                 // first lock.
};

}  // namespace zeus::amd
