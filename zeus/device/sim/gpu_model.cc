#include "zeus/device/sim/gpu_model.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "zeus/base/text.h"

namespace zeus::sim {

namespace {

using namespace zeus::literals;
using namespace std::chrono_literals;

constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;

constexpr SensorSpec Sensors(Seconds update, Seconds window, bool average, bool memory,
                             std::optional<Seconds> counter) {
  // NVIDIA promises ±5 %, and measured boards show it: a gain error that is stable per board.
  return {.power_update = update,
          .power_window = window,
          .has_one_second_average = average,
          .has_memory_power = memory,
          .counter_update = counter,
          .gain_spread = 0.05,
          .offset_spread = 1_W};
}

// Steady state at the default limit is 60 to 75 °C in a well-cooled server.
constexpr ThermalSpec MakeCooling(double kelvin_per_watt) {
  return {.ambient = 27_degC,
          .kelvin_per_watt = kelvin_per_watt,
          .time_constant = 30s,
          .leakage_watts_per_kelvin = 0.1,
          .slowdown = 87_degC,
          .release = 84_degC};
}

constexpr std::array kModels = {
    GpuModel{.id = "P100",
             .name = "Tesla P100-PCIE-16GB",
             .architecture = Architecture::kPascal,
             .idle_power = 27_W,
             .limit_range = {.min = 125_W, .max = 250_W},
             .default_limit = 250_W,
             .graphics_clock = {.min = 544_MHz, .max = 1328_MHz},
             .graphics_clock_step = 7_MHz,
             .memory_clock = 715_MHz,
             .memory_bytes = 16 * kGiB,
             .peak_operations = 18.7e12,
             .memory_bandwidth = 732e9,
             .sensors = Sensors(20ms, 10ms, false, false, std::nullopt),
             .thermal = MakeCooling(0.17),
             .source = "NVIDIA Tesla P100 PCIe product brief PB-08248-001"},
    GpuModel{.id = "V100",
             .name = "Tesla V100-PCIE-32GB",
             .architecture = Architecture::kVolta,
             .idle_power = 25_W,
             .limit_range = {.min = 100_W, .max = 250_W},
             .default_limit = 250_W,
             .graphics_clock = {.min = 135_MHz, .max = 1380_MHz},
             .graphics_clock_step = 15_MHz,
             .memory_clock = 877_MHz,
             .memory_bytes = 32 * kGiB,
             .peak_operations = 112e12,
             .memory_bandwidth = 900e9,
             .sensors = Sensors(20ms, 10ms, false, false, 20ms),
             .thermal = MakeCooling(0.17),
             .source = "NVIDIA Tesla V100 PCIe product brief PB-08744-001"},
    GpuModel{.id = "RTX6000",
             .name = "Quadro RTX 6000",
             .architecture = Architecture::kTuring,
             .idle_power = 22_W,
             .limit_range = {.min = 100_W, .max = 260_W},
             .default_limit = 260_W,
             .graphics_clock = {.min = 300_MHz, .max = 2100_MHz},
             .graphics_clock_step = 15_MHz,
             .memory_clock = 7001_MHz,
             .memory_bytes = 24 * kGiB,
             .peak_operations = 130.5e12,
             .memory_bandwidth = 672e9,
             .sensors = Sensors(100ms, 100ms, false, false, 100ms),
             .thermal = MakeCooling(0.19),
             .source = "NVIDIA Quadro RTX 6000 data sheet"},
    GpuModel{.id = "A40",
             .name = "NVIDIA A40",
             .architecture = Architecture::kAmpere,
             .idle_power = 29_W,
             .limit_range = {.min = 100_W, .max = 300_W},
             .default_limit = 300_W,
             .graphics_clock = {.min = 210_MHz, .max = 1740_MHz},
             .graphics_clock_step = 15_MHz,
             .memory_clock = 7251_MHz,
             .memory_bytes = 48 * kGiB,
             .peak_operations = 149.7e12,
             .memory_bandwidth = 696e9,
             .sensors = Sensors(100ms, 100ms, true, false, 100ms),
             .thermal = MakeCooling(0.15),
             .source = "NVIDIA A40 product brief PB-10242-001"},
    GpuModel{.id = "A100",
             .name = "NVIDIA A100-SXM4-40GB",
             .architecture = Architecture::kAmpere,
             .idle_power = 50_W,
             .limit_range = {.min = 100_W, .max = 400_W},
             .default_limit = 400_W,
             .graphics_clock = {.min = 210_MHz, .max = 1410_MHz},
             .graphics_clock_step = 15_MHz,
             .memory_clock = 1215_MHz,
             .memory_bytes = 40 * kGiB,
             .peak_operations = 312e12,
             .memory_bandwidth = 1555e9,
             .sensors = Sensors(100ms, 25ms, false, false, 100ms),
             .thermal = MakeCooling(0.1),
             .source = "NVIDIA A100 Tensor Core GPU data sheet"},
    GpuModel{.id = "H100",
             .name = "NVIDIA H100 80GB HBM3",
             .architecture = Architecture::kHopper,
             .idle_power = 70_W,
             .limit_range = {.min = 200_W, .max = 700_W},
             .default_limit = 700_W,
             .graphics_clock = {.min = 345_MHz, .max = 1980_MHz},
             .graphics_clock_step = 15_MHz,
             .memory_clock = 2619_MHz,
             .memory_bytes = 80 * kGiB,
             .peak_operations = 989e12,
             .memory_bandwidth = 3350e9,
             .sensors = Sensors(100ms, 25ms, true, true, 100ms),
             .thermal = MakeCooling(0.06),
             .source = "NVIDIA H100 Tensor Core GPU data sheet (SXM5)"},
    GpuModel{.id = "L40S",
             .name = "NVIDIA L40S",
             .architecture = Architecture::kAda,
             .idle_power = 35_W,
             .limit_range = {.min = 100_W, .max = 350_W},
             .default_limit = 350_W,
             .graphics_clock = {.min = 210_MHz, .max = 2520_MHz},
             .graphics_clock_step = 15_MHz,
             .memory_clock = 9001_MHz,
             .memory_bytes = 48 * kGiB,
             .peak_operations = 362e12,
             .memory_bandwidth = 864e9,
             .sensors = Sensors(100ms, 100ms, true, false, 100ms),
             .thermal = MakeCooling(0.12),
             .source = "NVIDIA L40S product brief PB-11509-001"},
};

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

bool CanLockClocks(const GpuModel& model, ClockDomain domain) {
  const bool graphics = domain == ClockDomain::kGraphics;
  return model.architecture >= (graphics ? Architecture::kVolta : Architecture::kAmpere);
}

std::span<const GpuModel> GpuModels() { return kModels; }

Result<const GpuModel*> FindGpuModel(std::string_view id) {
  for (const GpuModel& model : kModels)
    if (SameIgnoringCase(model.id, id)) return &model;
  std::string known;
  for (const GpuModel& model : kModels) known.append(known.empty() ? "" : ", ").append(model.id);
  return Error{ErrorCode::kNotFound,
               fmt::format("unknown GPU model {} (known: {})", Quote(id), known)};
}

namespace {

// Typical of data-centre GPUs: a quarter of the power above idle does not depend on the clock
// (memory, leakage of powered blocks), and voltage falls linearly with the clock down to 65 %.
constexpr double kStaticShare = 0.25;
constexpr double kLowestVoltage = 0.65;

int StepCount(const GpuModel& model) {
  const Hertz span = model.graphics_clock.max - model.graphics_clock.min;
  // The nudge keeps an exact multiple from being rounded down.
  return static_cast<int>(std::floor(span / model.graphics_clock_step + 1e-9));
}

// Counted down from the highest clock, which is always supported.
Hertz ClockAt(const GpuModel& model, int steps_below_highest) {
  return model.graphics_clock.max - model.graphics_clock_step * steps_below_highest;
}

}  // namespace

std::vector<Hertz> GraphicsClocks(const GpuModel& model) {
  std::vector<Hertz> clocks;
  for (int i = StepCount(model); i >= 0; --i) clocks.push_back(ClockAt(model, i));
  return clocks;
}

Hertz SupportedClockBelow(const GpuModel& model, Hertz clock) {
  const double below = (model.graphics_clock.max - clock) / model.graphics_clock_step;
  const int steps = static_cast<int>(std::ceil(std::max(below, 0.0) - 1e-9));
  return ClockAt(model, std::min(steps, StepCount(model)));
}

double PowerShareAt(const GpuModel& model, Hertz clock) {
  const double relative = clock / model.graphics_clock.max;
  const double voltage = kLowestVoltage + (1.0 - kLowestVoltage) * relative;
  return kStaticShare + (1.0 - kStaticShare) * relative * voltage * voltage;
}

Hertz HighestClockWithin(const GpuModel& model, double share) {
  int low = 0;
  int high = StepCount(model);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (PowerShareAt(model, ClockAt(model, middle)) <= share) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return ClockAt(model, low);
}

}  // namespace zeus::sim
