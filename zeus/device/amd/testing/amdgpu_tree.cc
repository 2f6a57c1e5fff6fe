#include "zeus/device/amd/testing/amdgpu_tree.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/device/amd/board.h"
#include "zeus/device/amd/sysfs_board.h"

namespace zeus::testing {
namespace {

void Put(std::string& bytes, std::size_t offset, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i, value >>= 8U)
    bytes[offset + i] = static_cast<char>(value & 0xffU);
}

std::filesystem::path DeviceLink(int card) { return fmt::format("class/drm/card{}/device", card); }

}  // namespace

std::string GpuMetricsFile::Bytes() const {
  std::string bytes(264, '\0');
  Put(bytes, 0, bytes.size(), 2);
  Put(bytes, 2, format, 1);
  Put(bytes, 3, content, 1);
  Put(bytes, content >= 4 ? 10 : 22, watts, 2);
  Put(bytes, content >= 5 ? 88 : 24, energy, 8);
  return bytes;
}

void AmdgpuTree::AddCard(int number, const std::string& pci_address) {
  const std::filesystem::path device = std::filesystem::path("devices") / pci_address;
  directory_.AddFile(device / "vendor", "0x1002\n");
  directory_.AddLink(device / "driver", "../../bus/pci/drivers/amdgpu");
  directory_.AddLink(DeviceLink(number), std::filesystem::path("../../../devices") / pci_address);
  directory_.AddFile(device / "hwmon/hwmon3/name", "amdgpu\n");
  directory_.AddLink(std::filesystem::path("bus/pci/devices") / pci_address,
                     std::filesystem::path("../../../devices") / pci_address);
  const std::vector<std::pair<std::string, std::string>> files = {
      {"class", "0x038000\n"},
      {"device", "0x740f\n"},
      {"uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=" + pci_address + "\n"},
      {"unique_id", fmt::format("{:016x}\n", 0x18f68e602b8a0000U + static_cast<unsigned>(number))},
      {"product_name", "AMD INSTINCT MI210\n"},
      {"gpu_busy_percent", "97\n"},
      {"mem_busy_percent", "31\n"},
      {"mem_info_vram_used", "10737418240\n"},
      {"mem_info_vram_total", "68702699520\n"},
      {"pp_dpm_sclk", "0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n"},
      {"pp_dpm_mclk", "0: 400Mhz\n1: 1600Mhz *\n"},
      {"power_dpm_force_performance_level", "auto\n"},
      {"hwmon/power1_average", "100000000\n"},
      {"hwmon/power1_cap", "300000000\n"},
      {"hwmon/power1_cap_min", "100000000\n"},
      {"hwmon/power1_cap_max", "300000000\n"},
      {"hwmon/power1_cap_default", "300000000\n"},
      {"hwmon/temp1_input", "41000\n"},
      {"hwmon/freq1_input", "800000000\n"},
      {"hwmon/freq2_input", "1600000000\n"},
  };
  for (const auto& [file, content] : files) Set(number, file, content);
  SetEnergy(number, 65536000);
}

void AmdgpuTree::AddBareDevice(const std::string& pci_address, const std::string& driver) {
  const auto device = std::filesystem::path("bus/pci/devices") / pci_address;
  directory_.AddFile(device / "vendor", "0x1002\n");
  directory_.AddFile(device / "class", "0x030000\n");
  if (!driver.empty()) directory_.AddLink(device / "driver", "../../drivers/" + driver);
}

void AmdgpuTree::AddNode(int number, NodeKind kind, int bus) {
  const auto node = fmt::format("class/kfd/kfd/topology/nodes/{}/properties", number);
  directory_.AddFile(node, fmt::format("cpu_cores_count 0\nsimd_count {}\nlocation_id {}\n"
                                       "domain 0\n",
                                       kind == NodeKind::kGpu ? 416 : 0, bus * 256));
}

std::filesystem::path AmdgpuTree::File(int card, const std::string& file) const {
  constexpr std::string_view kHwmon = "hwmon/";
  const auto device = directory_.path() / DeviceLink(card);
  if (file.starts_with(kHwmon)) return device / "hwmon/hwmon3" / file.substr(kHwmon.size());
  return device / file;
}

void AmdgpuTree::Set(int card, const std::string& file, std::string_view content) {
  directory_.AddFile(std::filesystem::relative(File(card, file), directory_.path()), content);
}

void AmdgpuTree::Remove(int card, const std::string& file) {
  std::filesystem::remove_all(File(card, file));
}

std::string AmdgpuTree::Get(int card, const std::string& file) const {
  return ReadSmallFile(File(card, file)).value();
}

void AmdgpuTree::SetEnergy(int card, std::uint64_t ticks) {
  Set(card, "gpu_metrics", GpuMetricsFile{.energy = ticks}.Bytes());
}

void AmdgpuTree::MakeSecondDie(int card) {
  for (const char* file :
       {"power1_average", "power1_cap", "power1_cap_min", "power1_cap_max", "power1_cap_default"})
    Set(card, std::string("hwmon/") + file, "0\n");
  Set(card, "gpu_metrics", GpuMetricsFile{.energy = 0, .watts = 0}.Bytes());
}

void AmdgpuTree::Advance(int card, Seconds by) {
  const auto before = amd::ParseGpuMetrics(Get(card, "gpu_metrics")).value();
  const auto power = ReadUnsigned(File(card, "hwmon/power1_average")).value();
  const Joules used = Watts::FromMicro(static_cast<double>(power)) * by;
  SetEnergy(card, *before.energy_accumulator +
                      static_cast<std::uint64_t>(std::llround(used / amd::kEnergyTick)));
  if (Trim(Get(card, "pp_dpm_sclk")) == "0") Set(card, "hwmon/freq1_input", "500000000\n");
  if (Trim(Get(card, "pp_dpm_mclk")) == "0") Set(card, "hwmon/freq2_input", "400000000\n");
}

}  // namespace zeus::testing
