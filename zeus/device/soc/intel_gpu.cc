#include "zeus/device/soc/intel_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/device/soc/soc_discovery.h"
#include "zeus/device/sysfs.h"

namespace zeus::soc {

Result<EnergyReading> IntelHwmonGpu::Energy() {
  const std::lock_guard lock(mutex_);
  auto microjoules = ReadUnsigned(parts_.energy);
  if (!microjoules.ok()) return std::move(microjoules).error().While(parts_.name);
  const auto total = counter_.Advance(microjoules.value());
  return EnergyReading{.total = Joules::FromMicro(static_cast<double>(total.ticks)),
                       .epoch = total.epoch,
                       .taken_at = std::nullopt};
}

std::optional<Seconds> IntelHwmonGpu::LongestReadInterval() const {
  // The driver widens a 32-bit register of 2^-14 J to 64 bits, but only when the file is read
  // (linux: drivers/gpu/drm/i915/i915_hwmon.c). Half a turn at more power than any card draws.
  constexpr Joules kTurn(262'144);
  constexpr Watts kHighestPower(1000);
  return kTurn / (2 * kHighestPower);
}

Result<Watts> IntelHwmonGpu::Power(PowerKind /*kind*/) {
  return Refuse("power: it is the growth of energy over time");
}

Result<Celsius> IntelHwmonGpu::Temperature() {
  if (parts_.temperature.empty()) return Refuse("temperature");
  auto millidegrees = ReadInteger(parts_.temperature);
  if (!millidegrees.ok()) return std::move(millidegrees).error().While(parts_.name);
  return Celsius::FromMilli(static_cast<double>(millidegrees.value()));
}

Result<Utilization> IntelHwmonGpu::CurrentUtilization() { return Refuse("utilization"); }

Result<MemoryUse> IntelHwmonGpu::CurrentMemoryUse() { return Refuse("memory use"); }

Result<ThrottleReasons> IntelHwmonGpu::CurrentThrottleReasons() {
  return Refuse("throttle reasons");
}

Result<PowerLimit> IntelHwmonGpu::CurrentPowerLimit() {
  if (!parts_.limit.ok()) return parts_.limit.error();
  return parts_.limit.value().Current();
}

Result<PowerLimit> IntelHwmonGpu::SetPowerLimitWithoutJournal(Watts limit) {
  if (!parts_.limit.ok()) return parts_.limit.error();
  auto set = parts_.limit.value().Set(limit);
  if (!set.ok()) return std::move(set).error().While("set power limit of " + parts_.name);
  return set;
}

Result<std::vector<Hertz>> IntelHwmonGpu::SupportedClocks(ClockDomain domain) {
  return Refuse(fmt::format("supported {} clocks", ClockDomainName(domain)));
}

Result<Hertz> IntelHwmonGpu::CurrentClock(ClockDomain domain) {
  return Refuse(fmt::format("a {} clock", ClockDomainName(domain)));
}

Status IntelHwmonGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange /*range*/) {
  return Refuse(fmt::format("a lock of the {} clock", ClockDomainName(domain)));
}

Status IntelHwmonGpu::ResetClock(ClockDomain domain) {
  return Refuse(fmt::format("a lock of the {} clock", ClockDomainName(domain)));
}

Result<Persistence> IntelHwmonGpu::CurrentPersistence() { return Refuse("a persistence mode"); }

Status IntelHwmonGpu::SetPersistence(Persistence /*mode*/) { return Refuse("a persistence mode"); }

Error IntelHwmonGpu::Refuse(const std::string& what) const {
  return {ErrorCode::kNotSupported, fmt::format("{}: hwmon of the {} driver does not offer {}",
                                                parts_.name, parts_.driver, what)};
}

namespace {

std::filesystem::path FirstExisting(const std::filesystem::path& directory,
                                    std::initializer_list<const char*> names) {
  std::error_code ignored;
  for (const char* name : names)
    if (std::filesystem::exists(directory / name, ignored)) return directory / name;
  return {};
}

struct Card {
  std::filesystem::path device;
  GpuIdentity identity;
  std::string driver;
};

std::optional<Card> ReadCard(const std::filesystem::path& card) {
  // card0-DP-1 and the like are connectors.
  if (card.filename().string().find('-') != std::string::npos) return std::nullopt;
  const auto vendor = ReadLine(card / "device/vendor");
  if (!vendor.ok() || vendor.value() != "0x8086") return std::nullopt;
  const auto text = ReadSmallFile(card / "device/uevent");
  auto uevent = ParseUevent(text.ok() ? text.value() : std::string());
  return Card{.device = card / "device",
              .identity = {.uuid = {},
                           .pci_address = LowerCase(uevent["PCI_SLOT_NAME"]),
                           .model = "Intel GPU " + LowerCase(uevent["PCI_ID"]),
                           .driver = {},
                           .vendor = Vendor::kIntel},
              .driver = uevent["DRIVER"]};
}

// The directory of the whole card: with several tiles each has one of its own ("i915_gt0").
std::filesystem::path FindCardHwmon(const Card& card) {
  for (const auto& hwmon : ListEntries(card.device / "hwmon", "hwmon")) {
    const auto name = ReadLine(hwmon / "name");
    if (name.ok() && (name.value() == "i915" || name.value() == "xe")) return hwmon;
  }
  return {};
}

// Channel 1 is the card and channel 2 the GPU package alone, where there are two.
Result<SysfsPowerLimit> OpenLimit(const std::filesystem::path& hwmon) {
  const auto limit = FirstExisting(hwmon, {"power1_max", "power1_cap", "power2_max", "power2_cap"});
  if (limit.empty()) {
    return Error{ErrorCode::kNotSupported,
                 hwmon.string() + ": the driver offers no power limit for this GPU"};
  }
  const std::string channel = limit.filename().string().substr(0, sizeof("power1") - 1);
  return SysfsPowerLimit::Open(
      {.limit = limit, .rated = hwmon / (channel + "_rated_max"), .enabled = {}});
}

void AddCard(Card card, unsigned first_index, Findings& findings) {
  const std::string what = "Intel GPU " + card.identity.pci_address;
  const auto absent = [&](std::string reason) {
    findings.absent.push_back({.what = what, .reason = std::move(reason), .fix = {}});
  };
  if (card.identity.pci_address.empty())
    return absent(card.device.string() + "/uevent: no PCI_SLOT_NAME");
  const auto hwmon = FindCardHwmon(card);
  const auto energy = FirstExisting(hwmon, {"energy1_input", "energy2_input"});
  if (hwmon.empty() || energy.empty()) {
    return absent(
        "its driver counts no energy; an integrated GPU is measured as part of the CPU package");
  }
  auto gpu = std::make_unique<IntelHwmonGpu>(
      IntelHwmonGpu::Parts{.name = fmt::format("gpu:{}", first_index + findings.gpus.size()),
                           .identity = std::move(card.identity),
                           .driver = std::move(card.driver),
                           .energy = energy,
                           .limit = OpenLimit(hwmon),
                           .temperature = FirstExisting(hwmon, {"temp1_input", "temp2_input"})});
  if (const auto reading = gpu->Energy(); !reading.ok()) return absent(reading.error().message);
  findings.gpus.push_back(std::move(gpu));
}

}  // namespace

void FindIntelGpus(const Surroundings& surroundings, Findings& findings) {
  std::vector<Card> cards;
  for (const auto& entry : ListEntries(surroundings.sysfs / "class/drm", "card"))
    if (auto card = ReadCard(entry)) cards.push_back(std::move(*card));
  std::ranges::stable_sort(cards, {}, [](const Card& card) { return card.identity.pci_address; });
  for (Card& card : cards) AddCard(std::move(card), surroundings.first_gpu_index, findings);
}

}  // namespace zeus::soc
