#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

// Where amdgpu keeps its files and how their text reads.
namespace zeus::amd {

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

}  // namespace zeus::amd
