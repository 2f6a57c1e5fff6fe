#include "zeus/device/cpu_actuator.h"

#include <algorithm>

namespace zeus {
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
  ZEUS_TRY(const PowerLimit limit, cpu.CurrentPowerLimit());
  return std::unique_ptr<KnobActuator>(std::make_unique<CpuPowerLimit>(cpu, limit.range.max));
}

}  // namespace zeus
