#include "zeus/device/rapl/rapl_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/device/sysfs.h"

namespace zeus::rapl {

namespace {

// More than any kernel supports; keeps a wrong list from filling the memory.
constexpr std::uint64_t kMostCpus = 1 << 16;

// Cuts `text` at the first separator: returns what stands before it and leaves the rest.
std::string_view TakeUntil(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

Result<int> ParseSmall(std::string_view text) {
  ZEUS_TRY(const std::uint64_t number, ParseUnsigned(text));
  if (number >= kMostCpus) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not the number of a CPU or package", number)};
  }
  return static_cast<int>(number);
}

bool HasWord(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    if (TakeUntil(text, ' ') == word) return true;
  }
  return false;
}

}  // namespace

Result<std::uint64_t> ParseEventConfig(std::string_view text) {
  constexpr std::string_view kPrefix = "event=0x";
  if (!text.starts_with(kPrefix)) {
    return Error{ErrorCode::kInvalidArgument, "an event description must read event=0x…"};
  }
  return ParseUnsigned(text.substr(kPrefix.size()), 16);
}

Result<double> ParseEventScale(std::string_view text) {
  ZEUS_TRY(const double scale, ParseDouble(text));
  if (!std::isfinite(scale) || scale <= 0.0 || scale > 1.0)
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is not a scale in joules", scale)};
  return scale;
}

Result<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  if (text.empty()) return Error{ErrorCode::kInvalidArgument, "empty list of CPUs"};
  while (!text.empty()) {
    std::string_view last = TakeUntil(text, ',');
    const std::string_view first = TakeUntil(last, '-');
    ZEUS_TRY(const int from, ParseSmall(first));
    int to = from;
    if (!last.empty()) {
      ZEUS_TRY(to, ParseSmall(last));
    }
    if (to < from || cpus.size() + static_cast<std::size_t>(to - from) >= kMostCpus)
      return Error{ErrorCode::kInvalidArgument, fmt::format("bad range of CPUs {}-{}", from, to)};
    for (int cpu = from; cpu <= to; ++cpu) cpus.push_back(cpu);
  }
  std::ranges::sort(cpus);
  cpus.erase(std::ranges::unique(cpus).begin(), cpus.end());
  return cpus;
}

Result<ZoneId> ParseZoneId(std::string_view text) {
  ZoneId id{.control_type = std::string(TakeUntil(text, ':')), .path = {}};
  while (!text.empty()) {
    ZEUS_TRY(const std::uint64_t number, ParseUnsigned(TakeUntil(text, ':'), 16));
    id.path.push_back(number);
  }
  if (id.path.empty()) return Error{ErrorCode::kInvalidArgument, "a control type, not a zone"};
  return id;
}

Result<ZoneName> ParseZoneName(std::string_view text) {
  if (text == "core") return ZoneName{.domain = Domain::kCore};
  if (text == "uncore") return ZoneName{.domain = Domain::kUncore};
  if (text == "dram") return ZoneName{.domain = Domain::kDram};
  if (text == "psys") return ZoneName{.domain = Domain::kPsys};
  constexpr std::string_view kPackage = "package-";
  constexpr std::string_view kDie = "-die-";
  if (!text.starts_with(kPackage))
    return Error{ErrorCode::kInvalidArgument, "not the name of a RAPL domain"};
  text.remove_prefix(kPackage.size());
  ZoneName name;
  if (const auto die = text.find(kDie); die != std::string_view::npos) {
    ZEUS_TRY(name.die, ParseSmall(text.substr(die + kDie.size())));
    text = text.substr(0, die);
  }
  ZEUS_TRY(name.package, ParseSmall(text));
  return name;
}

CpuInfo ParseCpuInfo(std::string_view text) {
  CpuInfo info;
  std::string_view model;
  while (!text.empty()) {
    std::string_view value = TakeUntil(text, '\n');
    const std::string_view key = Trim(TakeUntil(value, ':'));
    value = Trim(value);
    if (!IsPrintable(value)) continue;
    if (key == "vendor_id" && info.vendor.empty()) info.vendor = value;
    if (key == "model name") model = value;
    if (key == "flags" && !info.virtual_machine)
      info.virtual_machine = HasWord(value, "hypervisor");
    if (key == "physical id") {
      if (const auto package = ParseSmall(value); package.ok())
        info.model_of_package.try_emplace(package.value(), model);
    }
  }
  if (info.model_of_package.empty() && !model.empty()) info.model_of_package.emplace(0, model);
  return info;
}

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

std::string CpuTopology::PackageModel(int package) const {
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
