#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "zeus/device/knob.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus {

// A knob of all devices of a job, and the devices behind it as positions in the monitor.
struct JobKnob {
  std::unique_ptr<Knob> knob;
  std::vector<std::size_t> devices;
  std::string model;               // Of the first device.
  std::string driver;              // Likewise.
  std::vector<std::string> uuids;  // Of those that have one.
};

// Never fails: where there is no such knob, each use of the one returned says why. Ranks of a job
// that have nothing to turn must still take part in its decisions.
JobKnob KnobOfJob(KnobKind kind, NodeMonitor& monitor);

}  // namespace zeus
