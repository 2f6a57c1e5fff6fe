#include "zeus/device/rapl/powercap.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/device/sysfs.h"

namespace zeus::rapl {
namespace {

// For CPUs that do not tell their rated power (AMD): above that of any socket sold.
constexpr Watts kAssumedRatedPower(1000.0);

struct Zone {
  ZoneId id;
  ZoneName name;
  std::filesystem::path directory;
};

std::vector<Zone> ListZones(const std::filesystem::path& sysfs) {
  std::vector<Zone> zones;
  for (const auto& directory : ListEntries(sysfs / "class/powercap", "intel-rapl")) {
    auto id = ParseZoneId(directory.filename().string());
    if (!id.ok() || id.value().control_type != "intel-rapl") continue;
    const auto text = ReadLine(directory / "name");
    if (!text.ok()) continue;
    const auto name = ParseZoneName(text.value());
    if (name.ok()) zones.push_back({std::move(id).value(), name.value(), directory});
  }
  std::ranges::sort(zones, {}, &Zone::id);
  return zones;
}

std::optional<std::filesystem::path> FindMemoryZone(const Zone& package,
                                                    const std::vector<Zone>& zones) {
  for (const Zone& zone : zones) {
    const auto& path = zone.id.path;
    if (zone.name.domain == Domain::kDram && path.size() == package.id.path.size() + 1 &&
        std::equal(package.id.path.begin(), package.id.path.end(), path.begin()))
      return zone.directory;
  }
  return std::nullopt;
}

std::optional<int> LongTermConstraint(const std::filesystem::path& zone) {
  constexpr int kMostConstraints = 8;
  for (int number = 0; number < kMostConstraints; ++number) {
    const auto name = ReadLine(zone / fmt::format("constraint_{}_name", number));
    if (name.ok() && name.value() == "long_term") return number;
  }
  return std::nullopt;
}

}  // namespace

std::map<int, PowercapPackage> ScanPowercap(const std::filesystem::path& sysfs,
                                            const CpuTopology& topology) {
  const auto zones = ListZones(sysfs);
  const auto known = topology.Packages();
  std::map<int, PowercapPackage> packages;
  std::set<std::pair<int, int>> seen;
  for (const Zone& zone : zones) {
    const auto [domain, package, die] = zone.name;
    if (domain != Domain::kPackage) continue;
    if (!known.empty() && !known.contains(package)) continue;
    if (!seen.emplace(package, topology.CountsPerDie() ? die : 0).second) continue;
    PowercapPackage& found = packages[package];
    found.package.push_back(zone.directory);
    if (auto memory = FindMemoryZone(zone, zones)) found.memory.push_back(std::move(*memory));
  }
  return packages;
}

std::optional<Watts> RatedPower(const std::filesystem::path& zone) {
  const auto constraint = LongTermConstraint(zone);
  if (!constraint) return std::nullopt;
  const auto rated = ReadUnsigned(zone / fmt::format("constraint_{}_max_power_uw", *constraint));
  if (!rated.ok() || rated.value() == 0) return std::nullopt;
  return Watts::FromMicro(static_cast<double>(rated.value()));
}

Result<SysfsPowerLimit> OpenLongTermLimit(const PowercapPackage& package) {
  if (package.package.size() != 1) {
    return Error{
        ErrorCode::kNotSupported,
        fmt::format("the package has {} dies with a power limit each", package.package.size())};
  }
  const auto& zone = package.package.front();
  const auto constraint = LongTermConstraint(zone);
  if (!constraint) {
    return Error{ErrorCode::kNotSupported,
                 zone.string() + ": this CPU has no long-term power limit that software can set"};
  }
  const auto attribute = [&](const char* name) {
    return zone / fmt::format("constraint_{}_{}", *constraint, name);
  };
  return SysfsPowerLimit::Open({.limit = attribute("power_limit_uw"),
                                .rated = attribute("max_power_uw"),
                                .enabled = zone / "enabled"});
}

Result<std::unique_ptr<PowercapCounter>> PowercapCounter::Open(
    const std::vector<std::filesystem::path>& zones, std::optional<Watts> rated_power) {
  std::unique_ptr<PowercapCounter> counter(new PowercapCounter());
  for (const auto& zone : zones) {
    ZEUS_TRY(const std::uint64_t largest, ReadUnsigned(zone / "max_energy_range_uj"));
    if (largest == 0 || largest == UINT64_MAX) {
      return Error{ErrorCode::kNotSupported, (zone / "max_energy_range_uj").string() +
                                                 ": the range of the counter is unknown"};
    }
    counter->zones_.push_back({zone / "energy_uj", largest, EnergyCounter(largest + 1)});
    const Seconds interval = Joules::FromMicro(static_cast<double>(largest)) /
                             (2 * rated_power.value_or(kAssumedRatedPower));
    counter->longest_interval_ = std::min(interval, counter->longest_interval_.value_or(interval));
  }
  // Starts the count, and tells at discovery whether reading works.
  ZEUS_TRY([[maybe_unused]] const EnergyReading origin, counter->Read());
  return counter;
}

Result<EnergyReading> PowercapCounter::Read() {
  const std::lock_guard lock(mutex_);
  EnergyReading sum;
  for (Zone& zone : zones_) {
    ZEUS_TRY(const std::uint64_t energy, ReadUnsigned(zone.energy));
    if (energy > zone.largest) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("{}: {} is more than max_energy_range_uj {}", zone.energy.string(),
                               energy, zone.largest)};
    }
    const auto total = zone.counter.Advance(energy);
    sum.total += Joules::FromMicro(static_cast<double>(total.ticks));
    sum.epoch += total.epoch;
  }
  return sum;
}

}  // namespace zeus::rapl
