#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/device/node.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::live {

// A device of the machine, by all the names that it has.
struct NodeDevice {
  std::string id{};       // As KnobKey names it: the UUID of a GPU, its PCI address, "cpu:0".
  std::string name{};     // "gpu:0"
  std::size_t index = 0;  // Position among the GPUs of the machine in PCI order, or package.
  Gpu* gpu = nullptr;     // One of the two is set.
  CpuPackage* cpu = nullptr;
  std::optional<std::size_t> recorded{};       // Number of the monitor's device.
  std::optional<std::size_t> dram_recorded{};  // That of the memory of a CPU package.
};

// The devices of a recorded node: GPUs in PCI order, as the reference's clients number them, and
// CPU packages. Immutable; the recorder must outlive it.
class NodeDevices {
 public:
  explicit NodeDevices(NodeMonitor& recorder);

  const std::vector<NodeDevice>& gpus() const { return gpus_; }
  const std::vector<NodeDevice>& cpus() const { return cpus_; }
  // Finds by id; null when there is none.
  const NodeDevice* Find(std::string_view id) const;
  // The energy of a device since recording began; nullopt when it cannot be read.
  struct Energy {
    Joules total{};
    Joules sigma{};
  };
  std::optional<Energy> EnergyOf(const NodeDevice& device) const;

 private:
  NodeMonitor& recorder_;
  std::vector<NodeDevice> gpus_{};
  std::vector<NodeDevice> cpus_{};
};

// The present readings of devices as JSON, from the recording: no driver call. It is the body that
// programs ask for most, so it is written as text without a document in between. Thread-safe.
class ReadingText {
 public:
  explicit ReadingText(NodeMonitor& recorder) : recorder_(recorder) {}

  // Appends one object for the device.
  void Append(const NodeDevice& device, TimePoint now, std::string& text) const;
  // {"at_seconds": …, "time": "…", "devices": […]} of the given devices.
  std::string Document(const std::vector<const NodeDevice*>& devices) const;

 private:
  NodeMonitor& recorder_;
};

}  // namespace zeus::live
