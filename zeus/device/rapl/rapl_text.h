#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

// The texts in which the kernel describes CPUs and their energy counters. Pure functions: they are
// fuzzed (fuzz/sysfs_fuzz.cc), so none may trust its input.
namespace zeus::rapl {

// "event=0x02" -> 2, from events/energy-pkg of a perf PMU. Other terms are refused: they would
// select something else than the event alone.
Result<std::uint64_t> ParseEventConfig(std::string_view text);

// Joules per count, from events/energy-pkg.scale.
Result<double> ParseEventScale(std::string_view text);

// "0-3,8" -> 0 1 2 3 8. Ascending, without duplicates.
Result<std::vector<int>> ParseCpuList(std::string_view text);

// "intel-rapl:a:1" -> control type "intel-rapl", path {10, 1}: the kernel prints the numbers in
// hexadecimal.
struct ZoneId {
  std::string control_type;
  std::vector<std::uint64_t> path;

  friend auto operator<=>(const ZoneId&, const ZoneId&) = default;
};
Result<ZoneId> ParseZoneId(std::string_view text);

enum class Domain { kPackage, kCore, kUncore, kDram, kPsys };

// "package-1-die-0" or "dram", from the name attribute of a zone.
struct ZoneName {
  Domain domain = Domain::kPackage;
  int package = 0;  // Only for packages.
  int die = 0;      // Only for packages that have several.
};
Result<ZoneName> ParseZoneName(std::string_view text);

struct CpuInfo {
  std::string vendor;  // "GenuineIntel"; empty where the architecture does not name one.
  std::map<int, std::string> model_of_package;
  bool virtual_machine = false;
};

// /proc/cpuinfo. What it does not say stays empty.
CpuInfo ParseCpuInfo(std::string_view text);

// Which CPU belongs to which package, and what the packages are. A snapshot; plain data.
struct CpuTopology {
  std::map<int, int> package_of_cpu;
  CpuInfo info;

  // Intel's dies have a counter each; AMD's report the counter of the whole package, once per die
  // (linux: arch/x86/events/rapl.c, "energy-pkg event for AMD CPUs").
  bool CountsPerDie() const;

  // Whether the vendor makes CPUs with RAPL at all.
  bool MayHaveRapl() const;

  std::set<int> Packages() const;
  std::string PackageModel(int package) const;
};

CpuTopology ReadCpuTopology(const std::filesystem::path& sysfs,
                            const std::filesystem::path& procfs);

}  // namespace zeus::rapl
