#pragma once

#include <memory>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/client/node/daemon_devices.h"
#include "zeus/device/knobs/knob_actuator.h"

namespace zeus::client {

// A knob that the daemon lends, and what it needs of its device.
struct BorrowedKnobFacts {
  wire::KnobKey key{};
  KnobKind kind = KnobKind::kGpuPowerLimit;
  KnobDevice device{};
  KnobChoices choices{};
  Watts max_power{0};
  // Returns the limit that holds without a lease of this process; an error where nothing tells.
  std::function<Result<Watts>()> limit{};
};

// "gpu_power_limit" of a kind of knob.
wire::LeaseKnob LeaseKnobOf(KnobKind kind);

// The setting in a value that holds on a knob; nullopt for others.
std::optional<Setting> SettingIn(const std::optional<wire::KnobValue>& value);

std::unique_ptr<KnobActuator> MakeBorrowedKnob(std::shared_ptr<DaemonConnection> connection,
                                               BorrowedKnobFacts facts);

}  // namespace zeus::client
