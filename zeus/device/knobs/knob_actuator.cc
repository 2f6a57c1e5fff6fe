#include "zeus/device/knobs/knob_actuator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/log.h"
#include "zeus/device/knobs/knob_lender.h"

namespace zeus {
namespace {

// Until a change of the clock shows everywhere.
constexpr Seconds kLongestDelay{0.2};

bool Refused(const Error& error) {
  return error.code == ErrorCode::kNotSupported || error.code == ErrorCode::kPermissionDenied;
}

// Behaviour that all knobs of a GPU share.
class GpuActuator : public KnobActuator {
 public:
  GpuActuator(Gpu& gpu, Watts max_power)
      : gpu_(gpu),
        device_{.name = gpu.name(),
                .uuid = gpu.identity().uuid,
                .pci_address = gpu.identity().pci_address,
                .driver = gpu.identity().driver},
        max_power_(max_power) {}

  const KnobDevice& device() const override { return device_; }
  Watts max_power() const override { return max_power_; }

  void Prepare() override {
    if (const auto mode = gpu_.CurrentPersistence(); !mode.ok() || mode.value() == Persistence::kOn)
      return;
    if (const Status kept = gpu_.SetPersistence(Persistence::kOn); !kept.ok())
      log::Debug("{}", kept.error().message);
  }

  std::optional<Joules> EpochMark() override {
    // Other counters may wrap around within an epoch.
    const Vendor vendor = gpu_.identity().vendor;
    if (vendor != Vendor::kNvidia && vendor != Vendor::kAmd) return std::nullopt;
    const auto energy = gpu_.Energy();
    // After a reload within the life of this process the total is no longer the counter's.
    if (!energy.ok() || energy.value().epoch != 0) return std::nullopt;
    return energy.value().total;
  }

  std::uint64_t ReloadsSeen() override {
    const auto energy = gpu_.Energy();
    return energy.ok() ? energy.value().epoch : 0;
  }

 protected:
  // Only what Prepare() will change: of two knobs of a GPU, the first one puts it back.
  std::optional<Persistence> PersistenceToPutBack() {
    const auto mode = gpu_.CurrentPersistence();
    if (!mode.ok() || mode.value() == Persistence::kOn) return std::nullopt;
    return mode.value();
  }

  Status PutBackPersistence(const KnobState& state) {
    if (!state.persistence) return Ok();
    Status done = gpu_.SetPersistence(*state.persistence);
    // A process that may not change the mode has not changed it before either.
    return done.ok() || Refused(done.error()) ? Ok() : done;
  }

  Gpu& gpu_;

 private:
  const KnobDevice device_;
  const Watts max_power_;
};

class GpuPowerLimit final : public GpuActuator {
 public:
  using GpuActuator::GpuActuator;

  KnobKind kind() const override { return KnobKind::kGpuPowerLimit; }

  Result<KnobChoices> Choices() override {
    ZEUS_TRY(const PowerLimit limit, gpu_.CurrentPowerLimit());
    return KnobChoices{.lowest = limit.range.min, .highest = limit.range.max};
  }

  Result<KnobState> Read() override {
    ZEUS_TRY(const PowerLimit limit, gpu_.CurrentPowerLimit());
    return KnobState{.setting = limit.requested, .persistence = PersistenceToPutBack()};
  }

  Result<std::optional<Setting>> InForce() override {
    ZEUS_TRY(const PowerLimit limit, gpu_.CurrentPowerLimit());
    return std::optional<Setting>(std::min(limit.requested, limit.enforced));
  }

  Status Apply(const Setting& setting) override {
    ZEUS_RETURN_IF_ERROR(gpu_.SetPowerLimitWithoutJournal(std::get<Watts>(setting)));
    return Ok();
  }

  Status PutBack(const KnobState& state) override {
    if (state.setting) ZEUS_RETURN_IF_ERROR(Apply(*state.setting));
    return PutBackPersistence(state);
  }

  Result<std::string> PutToDefault() override {
    ZEUS_TRY(const PowerLimit limit, gpu_.CurrentPowerLimit());
    ZEUS_RETURN_IF_ERROR(Apply(limit.default_limit));
    return ToText(Setting(limit.default_limit));
  }
};

class LockedClock final : public GpuActuator {
 public:
  LockedClock(Gpu& gpu, Watts max_power, ClockDomain domain)
      : GpuActuator(gpu, max_power), domain_(domain) {}

  KnobKind kind() const override {
    return domain_ == ClockDomain::kGraphics ? KnobKind::kGraphicsClock : KnobKind::kMemoryClock;
  }

  Result<KnobChoices> Choices() override {
    ZEUS_TRY(const std::vector<Hertz> clocks, gpu_.SupportedClocks(domain_));
    if (clocks.empty())
      return Error{ErrorCode::kNotSupported,
                   fmt::format("{} lists no {} clocks", gpu_.name(), ClockDomainName(domain_))};
    return KnobChoices{.lowest = clocks.front(),
                       .highest = clocks.back(),
                       .steps = {clocks.begin(), clocks.end()}};
  }

  // No driver reports whether a clock is locked. Clocks are taken to be unlocked before Zeus locks
  // them.
  Result<KnobState> Read() override {
    return KnobState{.setting = std::nullopt, .persistence = PersistenceToPutBack()};
  }

  // A busy GPU says when a lock keeps it from running faster; an idle one says nothing. It may
  // still say so of a lock that was removed a moment ago, so it is asked twice.
  Result<std::optional<Setting>> InForce() override {
    if (!SaysLocked()) return std::optional<Setting>();
    SystemClock().SleepFor(kLongestDelay);
    if (!SaysLocked()) return std::optional<Setting>();
    ZEUS_TRY(const Hertz clock, gpu_.CurrentClock(domain_));
    return std::optional<Setting>(clock);
  }

  Status Apply(const Setting& setting) override {
    const Hertz clock = std::get<Hertz>(setting);
    return gpu_.LockClockWithoutJournal(domain_, {.min = clock, .max = clock});
  }

  Status ApplyRange(const ClockRange& range) override {
    return gpu_.LockClockWithoutJournal(domain_, range);
  }

  Result<std::string> PutToDefault() override {
    ZEUS_RETURN_IF_ERROR(gpu_.ResetClock(domain_));
    return std::string("not locked");
  }

  Status PutBack(const KnobState& state) override {
    ZEUS_RETURN_IF_ERROR(state.setting ? Apply(*state.setting) : gpu_.ResetClock(domain_));
    return PutBackPersistence(state);
  }

 private:
  bool SaysLocked() {
    const auto reasons = gpu_.CurrentThrottleReasons();
    return domain_ == ClockDomain::kGraphics && reasons.ok() && reasons.value().locked_clock &&
           !reasons.value().idle;
  }

  const ClockDomain domain_;
};

class PersistenceMode final : public GpuActuator {
 public:
  using GpuActuator::GpuActuator;

  KnobKind kind() const override { return KnobKind::kPersistence; }

  Result<KnobChoices> Choices() override {
    return KnobChoices{.lowest = Watts(1), .highest = Watts(1)};
  }

  Result<KnobState> Read() override {
    ZEUS_TRY(const Persistence mode, gpu_.CurrentPersistence());
    return KnobState{.setting = std::nullopt, .persistence = mode};
  }

  Status Apply(const Setting& /*on*/) override { return gpu_.SetPersistence(Persistence::kOn); }
  Status PutBack(const KnobState& state) override { return PutBackPersistence(state); }

  Result<std::string> PutToDefault() override {
    return Error{ErrorCode::kNotSupported, "no driver tells the default of its persistence mode"};
  }
};

}  // namespace

Result<std::unique_ptr<KnobActuator>> MakeActuator(KnobKind kind, Gpu& gpu) {
  if (kind == KnobKind::kCpuPowerLimit)
    return Error{ErrorCode::kInvalidArgument, gpu.name() + " is not a CPU: choose a knob of a GPU"};
  if (KnobLender* const lender = gpu.lender()) return lender->Borrow(kind);
  if (kind == KnobKind::kPersistence)
    return std::unique_ptr<KnobActuator>(std::make_unique<PersistenceMode>(gpu, Watts()));
  ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
  if (kind == KnobKind::kGpuPowerLimit)
    return std::unique_ptr<KnobActuator>(std::make_unique<GpuPowerLimit>(gpu, limit.range.max));
  const ClockDomain domain =
      kind == KnobKind::kGraphicsClock ? ClockDomain::kGraphics : ClockDomain::kMemory;
  return std::unique_ptr<KnobActuator>(std::make_unique<LockedClock>(gpu, limit.range.max, domain));
}

namespace {

// The kernel tells no lowest limit. Below about this share of its rated power a package is at its
// lowest clock and then only stalls, so that trying it costs much and tells nothing.
constexpr double kLowestShareWorthTrying = 0.3;

class CpuPowerLimit final : public KnobActuator {
 public:
  CpuPowerLimit(CpuPackage& cpu, Watts max_power)
      : cpu_(cpu), device_{.name = cpu.name()}, max_power_(max_power) {}

  const KnobDevice& device() const override { return device_; }
  KnobKind kind() const override { return KnobKind::kCpuPowerLimit; }
  Watts max_power() const override { return max_power_; }

  Result<KnobChoices> Choices() override {
    ZEUS_TRY(const PowerLimit limit, cpu_.CurrentPowerLimit());
    return KnobChoices{
        .lowest = std::max(limit.range.min, limit.range.max * kLowestShareWorthTrying),
        .highest = limit.range.max};
  }

  Result<KnobState> Read() override {
    ZEUS_TRY(const PowerLimit limit, cpu_.CurrentPowerLimit());
    return KnobState{.setting = limit.requested};
  }

  Result<std::optional<Setting>> InForce() override {
    ZEUS_TRY(const PowerLimit limit, cpu_.CurrentPowerLimit());
    return std::optional<Setting>(std::min(limit.requested, limit.enforced));
  }

  Status Apply(const Setting& setting) override {
    ZEUS_RETURN_IF_ERROR(cpu_.SetPowerLimitWithoutJournal(std::get<Watts>(setting)));
    return Ok();
  }

  Result<std::string> PutToDefault() override {
    return Error{ErrorCode::kNotSupported, "the kernel does not tell the default power limit of " +
                                               cpu_.name() + ": a boot brings it back"};
  }

  Status PutBack(const KnobState& state) override {
    return state.setting ? Apply(*state.setting) : Ok();
  }

 private:
  CpuPackage& cpu_;
  const KnobDevice device_;
  const Watts max_power_;
};

}  // namespace

Result<std::unique_ptr<KnobActuator>> MakeActuator(CpuPackage& cpu) {
  if (KnobLender* const lender = cpu.lender()) return lender->Borrow(KnobKind::kCpuPowerLimit);
  ZEUS_TRY(const PowerLimit limit, cpu.CurrentPowerLimit());
  return std::unique_ptr<KnobActuator>(std::make_unique<CpuPowerLimit>(cpu, limit.range.max));
}

std::string KnobName(KnobKind kind, const std::string& device) {
  if (kind == KnobKind::kPersistence) return "persistence mode of " + device;
  if (!IsClock(kind)) return "power limit of " + device;
  const char* const domain = kind == KnobKind::kGraphicsClock ? "graphics" : "memory";
  return fmt::format("{} clock of {}", domain, device);
}

std::string ToText(const KnobState& state) {
  return state.setting ? ToText(*state.setting) : "not locked";
}

Result<KnobReturn> PutBackIfOurs(KnobActuator& actuator, const KnobState& before,
                                 const std::vector<Setting>& ours) {
  if (!actuator.borrowed() && !ours.empty() && before.setting) {
    ZEUS_TRY(const KnobState present, actuator.Read());
    const auto is_present = [&](const Setting& setting) {
      return present.setting && SameSetting(*present.setting, setting);
    };
    const bool foreign =
        present.setting && !is_present(*before.setting) && std::ranges::none_of(ours, is_present);
    if (foreign) {
      // The program that made this setting does not care for the persistence mode.
      ZEUS_RETURN_IF_ERROR(actuator.PutBack({.persistence = before.persistence}));
      return KnobReturn::kNotOurs;
    }
    if (is_present(*before.setting) && !before.persistence) return KnobReturn::kPutBack;
  }
  ZEUS_RETURN_IF_ERROR(actuator.PutBack(before));
  return KnobReturn::kPutBack;
}

}  // namespace zeus
