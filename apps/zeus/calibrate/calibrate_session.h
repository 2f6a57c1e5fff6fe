#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/sensor_calibration.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {

// The reason why a sensor of a GPU has no figures.
struct SensorFailure {
  std::string sensor;  // "instant power", "average power" or "counter", as in the table.
  Error error;
};

// The result of `zeus calibrate` for one GPU.
struct GpuReport {
  std::string device;  // "gpu:0"
  SensorCalibration calibration;
  std::vector<SensorFailure> failures;
  std::optional<std::filesystem::path> file;  // The file of the stored calibration.

  bool AnySensor() const {
    return calibration.instant_power || calibration.average_power || calibration.counter;
  }
};

std::string ToText(const GpuReport& report);
Json ToJson(const GpuReport& report);

struct ExternalMeterOptions {
  std::filesystem::path file;
  std::optional<Seconds> delay;  // Found by correlation where it is not given.
  double accuracy = 0;           // Relative standard deviation.
  bool alone = true;             // It measures the GPU and nothing else.
};

struct CalibrateOptions {
  Seconds duration{};
  Seconds period{};
  std::string load_command;  // Empty for the load of simulated GPUs.
  std::optional<ExternalMeterOptions> meter;
};

// Loads the GPUs, records their sensors and works out how they behave: one report per GPU, in which
// a sensor that could not be measured says why. Keeps nothing.
Result<std::vector<GpuReport>> Calibrate(Clock& clock, const std::vector<Gpu*>& gpus,
                                         const CalibrateOptions& options, SignalWatch& signals);

}  // namespace zeus::cli
