#include "apps/nvml_simulator/board.h"

#include <string_view>

#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::nvml_simulator {
namespace {

constexpr int kBrandUnknown = 0;
constexpr int kBrandQuadro = 1;
constexpr int kBrandTesla = 2;
constexpr int kBrandNvidia = 14;

struct NamedBoard {
  std::string_view model;
  Board board;
};

constexpr NamedBoard kBoards[] = {
    {"P100",
     {.pci_device_id = 0x15f810de,
      .brand = kBrandTesla,
      .compute_major = 6,
      .compute_minor = 0,
      .pcie_generation = 3,
      .cores = 3584,
      .multiprocessors = 56,
      .memory_bus_bits = 4096,
      .vbios = "86.00.4D.00.01"}},
    {"V100",
     {.pci_device_id = 0x1db610de,
      .brand = kBrandTesla,
      .compute_major = 7,
      .compute_minor = 0,
      .pcie_generation = 3,
      .cores = 5120,
      .multiprocessors = 80,
      .memory_bus_bits = 4096,
      .vbios = "88.00.4F.00.09"}},
    {"RTX6000",
     {.pci_device_id = 0x1e3010de,
      .brand = kBrandQuadro,
      .compute_major = 7,
      .compute_minor = 5,
      .pcie_generation = 3,
      .passive = false,
      .cores = 4608,
      .multiprocessors = 72,
      .memory_bus_bits = 384,
      .ecc = false,
      .vbios = "90.02.2E.00.0C"}},
    {"A40",
     {.pci_device_id = 0x223510de,
      .brand = kBrandNvidia,
      .compute_major = 8,
      .compute_minor = 6,
      .pcie_generation = 4,
      .cores = 10752,
      .multiprocessors = 84,
      .memory_bus_bits = 384,
      .vbios = "94.02.5C.00.03"}},
    {"A100",
     {.pci_device_id = 0x20b010de,
      .brand = kBrandNvidia,
      .compute_major = 8,
      .compute_minor = 0,
      .pcie_generation = 4,
      .mig_instances = 7,
      .cores = 6912,
      .multiprocessors = 108,
      .memory_bus_bits = 5120,
      .nvlinks = 12,
      .vbios = "92.00.36.00.01"}},
    {"H100",
     {.pci_device_id = 0x233010de,
      .brand = kBrandNvidia,
      .compute_major = 9,
      .compute_minor = 0,
      .pcie_generation = 5,
      .mig_instances = 7,
      .cores = 16896,
      .multiprocessors = 132,
      .memory_bus_bits = 5120,
      .nvlinks = 18,
      .vbios = "96.00.30.00.01"}},
    {"L40S",
     {.pci_device_id = 0x26b910de,
      .brand = kBrandNvidia,
      .compute_major = 8,
      .compute_minor = 9,
      .pcie_generation = 4,
      .cores = 18176,
      .multiprocessors = 142,
      .memory_bus_bits = 384,
      .vbios = "95.02.66.00.02"}},
};

// Used for a model that is in the catalogue but not in this table.
constexpr Board kUnknown = {.pci_device_id = 0x000010de,
                            .brand = kBrandUnknown,
                            .compute_major = 0,
                            .compute_minor = 0,
                            .pcie_generation = 4};

}  // namespace

const Board& FindBoard(const sim::GpuModel& model) {
  for (const NamedBoard& entry : kBoards) {
    if (entry.model == model.id) return entry.board;
  }
  return kUnknown;
}

unsigned NvmlArchitecture(const sim::GpuModel& model) {
  switch (model.architecture) {
    case sim::Architecture::kPascal:
      return nvml::kArchitecturePascal;
    case sim::Architecture::kVolta:
      return nvml::kArchitectureVolta;
    case sim::Architecture::kTuring:
      return nvml::kArchitectureTuring;
    case sim::Architecture::kAmpere:
      return nvml::kArchitectureAmpere;
    case sim::Architecture::kAda:
      return nvml::kArchitectureAda;
    case sim::Architecture::kHopper:
      return nvml::kArchitectureHopper;
  }
  return nvml::kArchitectureUnknown;
}

}  // namespace zeus::nvml_simulator
