#include "apps/nvml_simulator/board.h"

#include <string_view>

#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::nvml_simulator {
namespace {

constexpr int kBrandQuadro = 1;
constexpr int kBrandTesla = 2;
constexpr int kBrandNvidia = 14;

struct NamedBoard {
  std::string_view model;
  Board board;
};

constexpr NamedBoard kBoards[] = {
    {"P100", {0x15f810de, nvml::kArchitecturePascal, kBrandTesla, 6, 0, 3, 0, true}},
    {"V100", {0x1db610de, nvml::kArchitectureVolta, kBrandTesla, 7, 0, 3, 0, true}},
    {"RTX6000", {0x1e3010de, nvml::kArchitectureTuring, kBrandQuadro, 7, 5, 3, 0, false}},
    {"A40", {0x223510de, nvml::kArchitectureAmpere, kBrandNvidia, 8, 6, 4, 0, true}},
    {"A100", {0x20b010de, nvml::kArchitectureAmpere, kBrandNvidia, 8, 0, 4, 7, true}},
    {"H100", {0x233010de, nvml::kArchitectureHopper, kBrandNvidia, 9, 0, 5, 7, true}},
    {"L40S", {0x26b910de, nvml::kArchitectureAda, kBrandNvidia, 8, 9, 4, 0, true}},
};

// A model that was added to the catalogue and not here still has an architecture.
constexpr Board kUnknown = {0x000010de, 0xffffffff, 0, 0, 0, 4, 0, true};

}  // namespace

const Board& BoardOf(const sim::GpuModel& model) {
  for (const NamedBoard& entry : kBoards) {
    if (entry.model == model.id) return entry.board;
  }
  return kUnknown;
}

}  // namespace zeus::nvml_simulator
