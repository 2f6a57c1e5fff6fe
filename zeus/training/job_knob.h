#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus {

// One knob for all devices of a job. The monitor must outlive it.
struct JobKnob {
  std::unique_ptr<KnobJournal> journal{};  // Null for simulated devices that end with the process.
  std::unique_ptr<Knob> knob{};

  // Positions in the monitor of the devices whose energy counts.
  std::vector<std::size_t> devices{};

  struct Device {
    std::string name;  // "gpu:0"
    std::string model;
    std::string uuid;  // Empty if it has none.
  };
  std::vector<Device> turned{};  // The devices that the knob sets.
  std::string driver{};
};

// Makes a knob for the GPUs of the monitor, or for its CPU packages, in which case the energy of
// memory counts, too. First it restores settings that killed programs left behind, and logs a
// warning for power limits below their default that have no explanation. The knob does not go above
// `ceiling`, or above what the policy of the machine allows. Returns kNotFound when there is no
// such device; other errors name the device that does not support the knob.
Result<JobKnob> FindJobKnob(KnobKind kind, NodeMonitor& monitor,
                            Ceiling ceiling = Ceiling::kAsFound);

// Makes a knob that always fails with `reason`. A rank without a knob must still take part in the
// collective decisions of its job.
std::unique_ptr<Knob> AbsentKnob(KnobKind kind, Error reason);

}  // namespace zeus
