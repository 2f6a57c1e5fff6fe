#pragma once

#include "zeus/device/sim/gpu_model.h"

namespace zeus::nvml_simulator {

// Properties of a board that NVML reports but that do not affect its energy.
struct Board {
  unsigned pci_device_id;  // Device in the upper half, vendor 0x10de in the lower.
  int brand;               // nvmlBrandType_t
  int compute_major;
  int compute_minor;
  unsigned pcie_generation;
  unsigned mig_instances = 0;  // The largest number of MIG instances; 0: MIG is not supported.
  bool passive = true;         // Cooled by the server, without a fan.
};

const Board& FindBoard(const sim::GpuModel& model);

// nvmlDeviceArchitecture_t
unsigned NvmlArchitecture(const sim::GpuModel& model);

}  // namespace zeus::nvml_simulator
