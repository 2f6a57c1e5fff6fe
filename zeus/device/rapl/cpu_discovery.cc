#include "zeus/device/rapl/cpu_discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/device/rapl/powercap.h"
#include "zeus/device/rapl/rapl_package.h"
#include "zeus/device/rapl/rapl_text.h"

namespace zeus::rapl {
namespace {

using Counter = std::unique_ptr<DomainCounter>;

template <class Specific>
Result<Counter> AsCounter(Result<std::unique_ptr<Specific>> counter) {
  if (!counter.ok()) return std::move(counter).error();
  return Counter(std::move(counter).value());
}

// One CPU of the PMU's mask per counter, by package.
std::map<int, std::vector<int>> CountersByPackage(const PowerPmu& pmu,
                                                  const CpuTopology& topology) {
  std::map<int, std::vector<int>> cpus;
  for (const int cpu : pmu.cpus) {
    const auto package = topology.package_of_cpu.find(cpu);
    if (package == topology.package_of_cpu.end()) continue;
    auto& of_package = cpus[package->second];
    if (of_package.empty() || topology.CountsPerDie()) of_package.push_back(cpu);
  }
  return cpus;
}

class CpuDiscovery {
 public:
  CpuDiscovery(const Surroundings& surroundings, const PerfApi& api)
      : surroundings_(surroundings),
        api_(api),
        topology_(ReadCpuTopology(surroundings.sysfs, surroundings.procfs)),
        powercap_(ScanPowercap(surroundings.sysfs, topology_)),
        pmu_(ReadPowerPmu(surroundings.sysfs)) {
    if (pmu_.ok()) perf_ = CountersByPackage(pmu_.value(), topology_);
  }

  Findings Run() {
    std::set<int> packages;
    for (const auto& [package, zones] : powercap_) packages.insert(package);
    for (const auto& [package, cpus] : perf_) packages.insert(package);
    if (packages.empty()) findings_.absent.push_back(WhyNoRapl());
    for (const int package : packages) AddPackage(package);
    return std::move(findings_);
  }

 private:
  void AddPackage(int package) {
    CpuIdentity identity{
        .package = package, .model = topology_.PackageModel(package), .source = "perf"};
    auto energy = OpenPerf(package, &PowerPmu::package);
    if (!energy.ok()) {
      AddAbsence("CPU energy (perf)", WhyNoPerf(energy.error()));
      identity.source = "powercap";
      energy = OpenPowercap(package, &PowercapPackage::package);
    }
    if (!energy.ok()) {
      AddAbsence("CPU energy (powercap)", WhyNoPowercap(energy.error()));
      return;
    }
    findings_.cpus.push_back(
        std::make_unique<RaplPackage>(RaplPackage::Parts{.identity = std::move(identity),
                                                         .energy = std::move(energy).value(),
                                                         .memory = OpenMemory(package),
                                                         .limit = OpenLimit(package)}));
  }

  Result<Counter> OpenPerf(int package, std::optional<PowerPmu::Event> PowerPmu::*event) {
    if (!pmu_.ok()) return pmu_.error();
    const auto cpus = perf_.find(package);
    const auto& counted = pmu_.value().*event;
    if (cpus == perf_.end() || !counted.has_value()) {
      return Error{
          ErrorCode::kNotFound,
          fmt::format("the perf power PMU does not count this domain of package {}", package)};
    }
    return AsCounter(PerfCounter::Open(api_, pmu_.value(), *counted, cpus->second));
  }

  Result<Counter> OpenPowercap(int package,
                               std::vector<std::filesystem::path> PowercapPackage::*domain) {
    const auto zones = powercap_.find(package);
    if (zones == powercap_.end() || (zones->second.*domain).empty()) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{} has no zone for this domain of package {}",
                               (surroundings_.sysfs / "class/powercap").string(), package)};
    }
    return AsCounter(
        PowercapCounter::Open(zones->second.*domain, RatedPower(zones->second.package.front())));
  }

  std::unique_ptr<RaplMemory> OpenMemory(int package) {
    auto counter = OpenPerf(package, &PowerPmu::memory);
    if (!counter.ok()) counter = OpenPowercap(package, &PowercapPackage::memory);
    if (counter.ok()) return std::make_unique<RaplMemory>(package, std::move(counter).value());
    const std::string what = fmt::format("DRAM energy of cpu:{}", package);
    if (counter.error().code == ErrorCode::kNotFound) {
      AddAbsence(what, {.what = {}, .reason = "this CPU does not count its memory", .fix = {}});
    } else {
      AddAbsence(what, WhyNoPowercap(counter.error()));
    }
    return nullptr;
  }

  Result<SysfsPowerLimit> OpenLimit(int package) {
    const auto zones = powercap_.find(package);
    if (zones == powercap_.end()) {
      return Error{ErrorCode::kNotSupported,
                   "the kernel shows no powercap zone for this package: sudo modprobe -a " +
                       std::string(kPowercapModules)};
    }
    return OpenLongTermLimit(zones->second);
  }

  void AddAbsence(std::string what, Absence why) {
    const auto same = [&](const Absence& absence) { return absence.what == what; };
    if (std::ranges::any_of(findings_.absent, same)) return;
    why.what = std::move(what);
    findings_.absent.push_back(std::move(why));
  }

  Absence WhyNoRapl() const {
    Absence absence{.what = "CPU energy (RAPL)", .reason = {}, .fix = {}};
    if (topology_.info.virtual_machine) {
      absence.reason = "virtual machine: the hypervisor does not expose RAPL";
    } else if (!topology_.MayHaveRapl()) {
      absence.reason = "not an Intel or AMD CPU: it has no RAPL counters";
    } else {
      absence.reason = "the kernel shows neither a perf power PMU nor powercap zones";
      absence.fix = fmt::format("sudo modprobe -a rapl {}", kPowercapModules);
    }
    return absence;
  }

  Absence WhyNoPerf(const Error& error) const {
    Absence absence{.what = {}, .reason = error.message, .fix = {}};
    if (error.code == ErrorCode::kNotFound && !pmu_.ok()) {
      absence.reason = "the kernel has no perf power PMU (" + error.message + ")";
      absence.fix = "sudo modprobe rapl";
    }
    if (error.code != ErrorCode::kPermissionDenied) return absence;
    const auto level = ReadInteger(surroundings_.procfs / "sys/kernel/perf_event_paranoid");
    if (level.ok() && level.value() <= 0) {
      absence.reason +=
          " though kernel.perf_event_paranoid allows it: a container's seccomp filter";
      absence.fix = "start the container with --cap-add PERFMON --security-opt seccomp=unconfined";
      return absence;
    }
    if (level.ok())
      absence.reason += fmt::format(" (kernel.perf_event_paranoid is {})", level.value());
    absence.fix =
        "sudo sysctl kernel.perf_event_paranoid=0, or: sudo setcap cap_perfmon+ep "
        "\"$(command -v zeus)\"";
    return absence;
  }

  Absence WhyNoPowercap(const Error& error) const {
    Absence absence{.what = {}, .reason = error.message, .fix = {}};
    if (error.code == ErrorCode::kPermissionDenied) {
      absence.reason += ": only root may read it";
      absence.fix = fmt::format("sudo chmod a+r {}",
                                (surroundings_.sysfs / "class/powercap/*/energy_uj").string());
    } else if (error.code == ErrorCode::kNotFound) {
      absence.fix = fmt::format("sudo modprobe -a {}", kPowercapModules);
    }
    return absence;
  }

  static constexpr const char* kPowercapModules = "intel_rapl_common intel_rapl_msr";

  const Surroundings& surroundings_;
  const PerfApi& api_;
  const CpuTopology topology_;
  const std::map<int, PowercapPackage> powercap_;
  const Result<PowerPmu> pmu_;
  std::map<int, std::vector<int>> perf_;  // CPUs to open events on, by package.
  Findings findings_;
};

}  // namespace

Result<Findings> DiscoverWith(const PerfApi& api, const Surroundings& surroundings) {
  return CpuDiscovery(surroundings, api).Run();
}

}  // namespace zeus::rapl

namespace zeus {

Result<Findings> DiscoverCpus(const Surroundings& surroundings) {
  return rapl::DiscoverWith(rapl::SystemPerfApi(), surroundings);
}

}  // namespace zeus
