#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "zeus/device/rapl/rapl_text.h"

namespace zeus::rapl {

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
  std::string ModelOf(int package) const;
};

CpuTopology ReadCpuTopology(const std::filesystem::path& sysfs,
                            const std::filesystem::path& procfs);

}  // namespace zeus::rapl
