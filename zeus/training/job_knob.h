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
  std::unique_ptr<KnobJournal> journal{};  // Null for devices that end with the process.
  std::unique_ptr<Knob> knob{};

  // The devices whose energy counts, as positions in the monitor.
  std::vector<std::size_t> devices{};

  struct Device {
    std::string name;  // "gpu:0"
    std::string model;
    std::string uuid;  // Empty if it has none.
  };
  std::vector<Device> turned{};  // Those that the knob turns.
  std::string driver{};
};

// Puts back first what programs that were killed left, and warns of power limits below their
// default that nothing explains. The knob is not turned above its ceiling, unless the policy of the
// machine says otherwise. Of the GPUs of the monitor, or of its CPU packages, whose memory counts,
// too. kNotFound when there is none; other errors say which device cannot do it.
Result<JobKnob> FindJobKnob(KnobKind kind, NodeMonitor& monitor,
                            Ceiling ceiling = Ceiling::kAsFound);

// A knob that fails with `reason` however it is used. Ranks of a job that have nothing to turn must
// still take part in its decisions.
std::unique_ptr<Knob> AbsentKnob(KnobKind kind, Error reason);

}  // namespace zeus
