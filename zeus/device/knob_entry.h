#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/process.h"
#include "zeus/device/knob_actuator.h"

namespace zeus {

// One line of memory about a knob that is not at its original value: docs/formats.md.
struct KnobEntry {
  KnobKind kind = KnobKind::kGpuPowerLimit;
  KnobDevice device{};
  KnobState before{};
  // Settings that the owner may have made: the last setting, and the next one while it is under
  // way. Empty in entries of earlier versions.
  std::vector<Setting> ours{};
  std::string boot_id{};               // Settings do not survive a boot.
  std::optional<Joules> epoch_mark{};  // KnobActuator::EpochMark() at that time.
  ProcessIdentity owner{};
  // Whether the owner keeps the file beside this one locked while it lives. Earlier versions did
  // not: their owners are looked up by pid.
  bool locked = false;
  WallTime since{};
};

Json ToJson(const KnobEntry& entry);
// kInvalidArgument when a field is missing or means nothing.
Result<KnobEntry> ParseKnobEntry(std::string_view text);

// The same for every process: "gpu_power_limit.GPU-0123.json".
std::string KnobFileName(KnobKind kind, const KnobDevice& device);

// "process 4711", "process 7 of another pid namespace"
std::string OwnerText(const KnobEntry& entry, const std::string& this_namespace);

}  // namespace zeus
