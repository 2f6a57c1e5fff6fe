#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/calibrate/calibrate_report.h"
#include "zeus/base/clock.h"
#include "zeus/device/gpu.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {

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
