#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/monitor/sensor_calibration.h"

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

}  // namespace zeus::cli
