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
  unsigned cores = 0;          // CUDA cores; 0: not known.
  unsigned multiprocessors = 0;
  unsigned memory_bus_bits = 0;
  unsigned nvlinks = 0;  // Links of the board that a baseboard connects to a switch.
  bool ecc = true;       // Errors of the memory are corrected, as delivered.
  const char* vbios = "00.00.00.00.00";
};

const Board& FindBoard(const sim::GpuModel& model);

// nvmlDeviceArchitecture_t
unsigned NvmlArchitecture(const sim::GpuModel& model);

}  // namespace zeus::nvml_simulator
