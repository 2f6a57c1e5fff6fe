#pragma once

#include "zeus/device/sim/gpu_model.h"

namespace zeus::nvml_simulator {

// What NVML tells about a kind of board beyond what matters for its energy.
struct Board {
  unsigned pci_device_id;  // Device in the upper half, vendor 0x10de in the lower.
  int brand;               // nvmlBrandType_t
  int compute_major;
  int compute_minor;
  unsigned pcie_generation;
  unsigned mig_instances = 0;  // The most it can be split into; 0 where it cannot.
  bool passive = true;         // Cooled by the server: no fan of its own.
};

const Board& BoardOf(const sim::GpuModel& model);

// nvmlDeviceArchitecture_t
unsigned ArchitectureOf(const sim::GpuModel& model);

}  // namespace zeus::nvml_simulator
