#include "zeus/client/node/borrowed_knob.h"

#include <algorithm>
#include <utility>

namespace zeus::client {
namespace {

// Another lease may hold the same setting: then it stays.
constexpr Seconds kLongestReturn{1};
constexpr Seconds kBetweenLooks{0.005};

class BorrowedKnob final : public KnobActuator {
 public:
  BorrowedKnob(std::shared_ptr<DaemonConnection> connection, BorrowedKnobFacts facts)
      : connection_(std::move(connection)), facts_(std::move(facts)) {}

  const KnobDevice& device() const override { return facts_.device; }
  KnobKind kind() const override { return facts_.kind; }
  bool borrowed() const override { return true; }
  Result<KnobChoices> Choices() override { return facts_.choices; }
  Watts max_power() const override { return facts_.max_power; }

  Result<KnobState> Read() override {
    ZEUS_TRY(const std::optional<wire::KnobView> view, connection_->loans.Look(facts_.key));
    if (view) return KnobState{.setting = SettingIn(view->effective)};
    if (IsClock(facts_.kind)) return KnobState{};
    ZEUS_TRY(const Watts limit, facts_.limit());
    return KnobState{.setting = limit};
  }

  // The rule of all leases on the knob, and what the device makes of it.
  Result<std::optional<Setting>> InForce() override {
    ZEUS_TRY(const std::optional<wire::KnobView> view, connection_->loans.Look(facts_.key));
    if (!view) {
      ZEUS_TRY(const KnobState state, Read());
      return state.setting;
    }
    const auto effective = SettingIn(view->effective);
    const auto enforced = SettingIn(view->enforced);
    if (!effective || !enforced) return effective ? effective : enforced;
    return std::optional<Setting>(std::min(*effective, *enforced));
  }

  Status Apply(const Setting& setting) override {
    ZEUS_RETURN_IF_ERROR(connection_->loans.Ask(facts_.key, wire::Exactly{setting}));
    last_ = setting;
    return Ok();
  }

  Result<std::string> PutToDefault() override {
    return Error{ErrorCode::kNotSupported,
                 "the node daemon puts its knobs back by itself: end its leases (zeus lease end)"};
  }

  Status PutBack(const KnobState& /*state*/) override {
    ZEUS_RETURN_IF_ERROR(connection_->loans.GiveBack(facts_.key));
    AwaitReturn();
    return Ok();
  }

 private:
  // The daemon's readings are somewhat old. The next program that asks what holds must not take the
  // setting that was just given back for the one that it finds.
  void AwaitReturn() {
    const auto given_back = std::exchange(last_, std::nullopt);
    if (!given_back || facts_.kind != KnobKind::kGpuPowerLimit) return;
    Clock& clock = connection_->clock;
    for (const TimePoint end = clock.Now() + kLongestReturn; clock.Now() < end;) {
      const auto limit = facts_.limit();
      if (!limit.ok() || Setting(limit.value()) != *given_back) return;
      clock.SleepFor(kBetweenLooks);
    }
  }

  const std::shared_ptr<DaemonConnection> connection_;
  const BorrowedKnobFacts facts_;
  std::optional<Setting> last_{};  // Set by this process and not yet given back.
};

}  // namespace

wire::LeaseKnob LeaseKnobOf(KnobKind kind) {
  switch (kind) {
    case KnobKind::kGraphicsClock:
      return wire::LeaseKnob::kGraphicsClock;
    case KnobKind::kMemoryClock:
      return wire::LeaseKnob::kMemoryClock;
    case KnobKind::kCpuPowerLimit:
      return wire::LeaseKnob::kCpuPowerLimit;
    case KnobKind::kPersistence:
      return wire::LeaseKnob::kPersistence;
    case KnobKind::kGpuPowerLimit:
      break;
  }
  return wire::LeaseKnob::kGpuPowerLimit;
}

std::optional<Setting> SettingIn(const std::optional<wire::KnobValue>& value) {
  if (!value) return std::nullopt;
  if (const auto* const setting = std::get_if<Setting>(&*value)) return *setting;
  if (const auto* const range = std::get_if<ClockRange>(&*value)) return Setting(range->max);
  return std::nullopt;
}

std::unique_ptr<KnobActuator> MakeBorrowedKnob(std::shared_ptr<DaemonConnection> connection,
                                               BorrowedKnobFacts facts) {
  return std::make_unique<BorrowedKnob>(std::move(connection), std::move(facts));
}

}  // namespace zeus::client
