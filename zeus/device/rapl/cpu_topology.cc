#include "zeus/device/rapl/cpu_topology.h"

#include "zeus/base/file.h"
#include "zeus/device/sysfs.h"

namespace zeus::rapl {
namespace {

bool IsAmd(const std::string& vendor) {
  return vendor == "AuthenticAMD" || vendor == "HygonGenuine";
}

}  // namespace

bool CpuTopology::CountsPerDie() const { return !IsAmd(info.vendor); }

bool CpuTopology::MayHaveRapl() const {
  return info.vendor == "GenuineIntel" || IsAmd(info.vendor);
}

std::set<int> CpuTopology::Packages() const {
  std::set<int> packages;
  for (const auto& [cpu, package] : package_of_cpu) packages.insert(package);
  return packages;
}

std::string CpuTopology::ModelOf(int package) const {
  const auto model = info.model_of_package.find(package);
  return model == info.model_of_package.end() ? std::string() : model->second;
}

CpuTopology ReadCpuTopology(const std::filesystem::path& sysfs,
                            const std::filesystem::path& procfs) {
  CpuTopology topology;
  for (const auto& directory : ListEntries(sysfs / "devices/system/cpu", "cpu")) {
    const auto cpu = ParseCpuList(directory.filename().string().substr(3));
    const auto package = ReadUnsigned(directory / "topology/physical_package_id");
    if (cpu.ok() && package.ok())
      topology.package_of_cpu.emplace(cpu.value().front(), static_cast<int>(package.value()));
  }
  // About 1.5 kB per CPU.
  constexpr std::size_t kCpuInfoLimit = 4 << 20;
  if (const auto text = ReadSmallFile(procfs / "cpuinfo", kCpuInfoLimit); text.ok())
    topology.info = ParseCpuInfo(text.value());
  return topology;
}

}  // namespace zeus::rapl
