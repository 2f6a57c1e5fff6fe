#pragma once

#include <optional>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/calibration/gain_fit.h"
#include "zeus/monitor/calibration/response.h"
#include "zeus/monitor/sensor_profile.h"

namespace zeus {

// The result of `zeus calibrate` for the sensors of one GPU under one version of its driver.
struct SensorCalibration {
  GpuIdentity gpu;
  WallTime taken_at;

  // Absent where the GPU lacks the sensor or it could not be measured.
  std::optional<calibration::Response> instant_power;
  std::optional<calibration::Response> average_power;
  std::optional<calibration::Response> counter;

  // Comparison with an external meter.
  struct MeterComparison {
    calibration::GainFit fit;
    double accuracy = 0;  // Relative standard deviation of the meter itself.
    // The meter saw this GPU and nothing else, so the offset is the sensor's.
    bool alone = true;
  };
  std::optional<MeterComparison> meter;
};

// Returns the prior with every value that was measured replaced.
SensorProfile ApplyCalibration(SensorProfile prior, const SensorCalibration& calibration);

// The stored form, docs/formats.md. Reading checks every figure: kInvalidArgument names the field,
// kNotSupported says that the file is of a newer Zeus.
Json ToJson(const SensorCalibration& calibration);
Result<SensorCalibration> ParseSensorCalibration(const Json& json);

}  // namespace zeus
