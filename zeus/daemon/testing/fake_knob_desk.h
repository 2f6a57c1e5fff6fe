#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeus/daemon/knob_desk.h"
#include "zeus/daemon/resolver.h"

namespace zeus::daemon::testing {

// Devices that a test settles when it wants to: two GPUs, "GPU-1" and "GPU-2", and "cpu:0". One
// owner.
class FakeKnobDesk final : public KnobDesk {
 public:
  FakeKnobDesk() {
    const KnobChoices power{.lowest = Watts(100), .highest = Watts(300)};
    const KnobChoices clock{.lowest = Hertz::FromMega(600),
                            .highest = Hertz::FromMega(1000),
                            .steps = {Setting(Hertz::FromMega(600)), Setting(Hertz::FromMega(800)),
                                      Setting(Hertz::FromMega(1000))}};
    for (const char* device : {"GPU-1", "GPU-2"}) {
      AddKnob({device, wire::LeaseKnob::kGpuPowerLimit}, power, Setting(Watts(300)));
      AddKnob({device, wire::LeaseKnob::kGraphicsClock}, clock, std::nullopt);
      AddKnob({device, wire::LeaseKnob::kPersistence}, std::nullopt, Persistence::kOff);
    }
    AddKnob({"cpu:0", wire::LeaseKnob::kCpuPowerLimit}, power, Setting(Watts(300)));
  }

  std::optional<KnobFacts> Find(const wire::KnobKey& knob) const override {
    const auto found = knobs_.find(knob);
    if (found == knobs_.end()) return std::nullopt;
    return KnobFacts{.key = knob, .device_name = knob.device, .choices = found->second.choices};
  }
  void Wake(const wire::KnobKey& knob) override { woken.insert(knob); }
  Status Ready(const std::string& device) const override {
    if (!not_ready.contains(device)) return Ok();
    return Error{ErrorCode::kUnavailable, device + " is stuck"};
  }

  // Does what a worker does: asks for the claims, turns the knob and reports.
  void Settle(ClaimSource& book, const wire::KnobKey& knob) {
    woken.erase(knob);
    const Claims claims = book.ClaimsOn(knob);
    const KnobRow& row = knobs_.at(knob);
    KnobReport report{.version = claims.version, .baseline = row.baseline};
    report.suspended = suspended.contains(knob.device);
    report.foreign = foreign.contains(knob);
    if (refusing.contains(knob)) {
      report.trouble = Error{ErrorCode::kUnavailable, "the driver refuses"};
    } else if (!report.suspended) {
      report.resolution = Resolve(row.baseline, row.choices, claims.claims);
      present[knob] = report.resolution.effective ? report.resolution.effective : report.baseline;
      report.released = claims.claims.empty();
    }
    report.enforced = present[knob];
    book.Settled(knob, report);
  }
  // Until nothing is left to do.
  void SettleAll(ClaimSource& book) {
    while (!woken.empty()) Settle(book, wire::KnobKey(*woken.begin()));
  }

  std::vector<wire::KnobKey> Keys() const {
    std::vector<wire::KnobKey> keys;
    for (const auto& [key, row] : knobs_) keys.push_back(key);
    return keys;
  }
  std::optional<wire::KnobValue> BaselineOf(const wire::KnobKey& knob) const {
    return knobs_.at(knob).baseline;
  }

  std::set<wire::KnobKey> woken{};
  std::set<std::string> not_ready{};   // Devices that nothing can be set on.
  std::set<std::string> suspended{};   // Devices in maintenance.
  std::set<wire::KnobKey> refusing{};  // Knobs that cannot be written.
  std::set<wire::KnobKey> foreign{};   // Knobs that another program turned.
  std::map<wire::KnobKey, std::optional<wire::KnobValue>> present{};

 private:
  struct KnobRow {
    std::optional<KnobChoices> choices{};
    std::optional<wire::KnobValue> baseline{};
  };
  void AddKnob(const wire::KnobKey& key, std::optional<KnobChoices> choices,
               std::optional<wire::KnobValue> baseline) {
    knobs_[key] = {.choices = std::move(choices), .baseline = baseline};
    present[key] = baseline;
  }

  std::map<wire::KnobKey, KnobRow> knobs_{};
};

}  // namespace zeus::daemon::testing
