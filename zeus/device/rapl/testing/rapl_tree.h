#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/node.h"

namespace zeus::rapl::testing {

// sysfs and procfs of a machine with RAPL, as files. Empty until parts are added.
class RaplTree {
 public:
  // The range of a 32-bit register in units of 2^-14 J, in microjoules.
  static constexpr std::uint64_t kLargest = 262143328850;

  Surroundings surroundings() {
    return {.clock = clock_,
            .sysfs = sysfs(),
            .procfs = directory_.path() / "proc",
            .dev = directory_.path() / "dev",
            .environment = [](const std::string&) { return std::nullopt; }};
  }
  std::filesystem::path sysfs() const { return directory_.path() / "sys"; }
  const std::filesystem::path& root() const { return directory_.path(); }

  void AddCpu(int cpu, int package) {
    Add(fmt::format("sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu),
        std::to_string(package));
    cpuinfo_ += fmt::format(
        "processor\t: {}\nvendor_id\t: {}\nmodel name\t: {} of package {}\nphysical id\t: {}\n"
        "flags\t\t: fpu {}\n\n",
        cpu, vendor_, model_, package, package, flags_);
    Add("proc/cpuinfo", cpuinfo_);
  }

  // For the CPUs added after it.
  void SetVendor(std::string vendor, std::string model, std::string flags = "sse2") {
    vendor_ = std::move(vendor);
    model_ = std::move(model);
    flags_ = std::move(flags);
  }

  void AddZone(const std::string& id, const std::string& name, std::uint64_t energy = 0,
               std::uint64_t largest = kLargest) {
    AddAttribute(id, "name", name);
    AddAttribute(id, "max_energy_range_uj", std::to_string(largest));
    AddAttribute(id, "enabled", "1");
    SetEnergy(id, energy);
  }
  void SetEnergy(const std::string& id, std::uint64_t microjoules) {
    AddAttribute(id, "energy_uj", std::to_string(microjoules));
  }
  void AddConstraints(const std::string& id, std::uint64_t limit, std::uint64_t rated) {
    AddAttribute(id, "constraint_0_name", "long_term");
    AddAttribute(id, "constraint_0_power_limit_uw", std::to_string(limit));
    AddAttribute(id, "constraint_0_max_power_uw", std::to_string(rated));
    AddAttribute(id, "constraint_1_name", "short_term");
    AddAttribute(id, "constraint_1_power_limit_uw", std::to_string(limit * 2));
  }
  std::filesystem::path AddAttribute(const std::string& id, const std::string& attribute,
                                     const std::string& content) {
    return Add("sys/class/powercap/" + id + "/" + attribute, content + "\n");
  }

  static constexpr std::uint32_t kPmuType = 21;
  void AddPmu(const std::string& cpumask) {
    AddPmuFile("type", std::to_string(kPmuType));
    AddPmuFile("cpumask", cpumask);
    AddEvent("energy-pkg", "event=0x02");
  }
  void AddEvent(const std::string& name, const std::string& config) {
    AddPmuFile("events/" + name, config);
    AddPmuFile("events/" + name + ".scale", "2.3283064365386962890625e-10");
    AddPmuFile("events/" + name + ".unit", "Joules");
  }
  void AddPmuFile(const std::string& file, const std::string& content) {
    Add("sys/bus/event_source/devices/power/" + file, content + "\n");
  }

  void SetParanoid(int level) {
    Add("proc/sys/kernel/perf_event_paranoid", std::to_string(level) + "\n");
  }

  std::filesystem::path Add(const std::string& file, const std::string& content) {
    return directory_.AddFile(file, content);
  }
  void Remove(const std::string& file) { std::filesystem::remove_all(directory_.path() / file); }

 private:
  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;
  std::string cpuinfo_;
  std::string vendor_ = "GenuineIntel";
  std::string model_ = "Intel(R) Xeon(R) Gold 6126";
  std::string flags_ = "sse2";
};

}  // namespace zeus::rapl::testing
