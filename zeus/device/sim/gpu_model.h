#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

namespace zeus::sim {

enum class Architecture {
  kPascal,
  kVolta,
  kTuring,
  kAmpere,
  kAda,
  kHopper
};  // Sorted, oldest first.

// How the board's sensors turn exact power into what a program can read. Update periods and
// averaging windows per architecture: Yang et al., "Accurate and Convenient Energy Measurements
// for GPUs", SC'24.
struct SensorSpec {
  Seconds power_update;
  Seconds power_window;
  bool has_one_second_average;
  bool has_memory_power;
  std::optional<Seconds> counter_update;  // Parts before Volta have no energy counter.

  // The gain of a board is drawn once from 1 ± gain_spread, its offset from ± offset_spread.
  double gain_spread;
  Watts offset_spread;
};

struct ThermalSpec {
  Celsius ambient;
  double kelvin_per_watt;
  Seconds time_constant;
  double leakage_watts_per_kelvin;  // Extra power per kelvin above `ambient`.
  Celsius slowdown;                 // Clocks drop above it …
  Celsius release;                  // … until it is below this again.
};

// A kind of GPU: everything that is the same for all boards of that kind.
struct GpuModel {
  std::string_view id;    // "V100", as in `zeus sim start --gpus 4xV100`
  std::string_view name;  // The name that NVML reports: "Tesla V100-PCIE-32GB"
  Architecture architecture;
  Watts idle_power;
  PowerRange limit_range;
  Watts default_limit;
  ClockRange graphics_clock;
  Hertz graphics_clock_step;
  Hertz memory_clock;
  std::uint64_t memory_bytes;
  double peak_operations;   // Per second: dense half precision, on tensor cores where it has them.
  double memory_bandwidth;  // Bytes per second.
  SensorSpec sensors;
  ThermalSpec thermal;
  std::string_view source;  // Where the figures were published.
};

// Whether the part lets anybody lock clocks of that domain, as NVML documents it: graphics clocks
// from Volta on, memory clocks from Ampere on.
bool CanLockClocks(const GpuModel& model, ClockDomain domain);

std::span<const GpuModel> GpuModels();

// By id, in any case. kNotFound lists the known ids.
Result<const GpuModel*> FindGpuModel(std::string_view id);

// The graphics clocks a model supports, ascending.
std::vector<Hertz> GraphicsClocks(const GpuModel& model);

// The highest supported clock at or below `clock`; the lowest of all if there is none.
Hertz SupportedClockBelow(const GpuModel& model, Hertz clock);

// How much of its power above idle a computation keeps when it runs at `clock` instead of the
// highest one: (static + dynamic * (f/fmax) * (V(f)/Vmax)^2) / (static + dynamic), 0 to 1.
double PowerShareAt(const GpuModel& model, Hertz clock);

// The highest supported clock at which that share is at most `share`; the lowest if there is none.
Hertz HighestClockWithin(const GpuModel& model, double share);

}  // namespace zeus::sim
