#pragma once

#include <string>
#include <utility>

#include "zeus/base/units.h"
#include "zeus/export/sample.h"
#include "zeus/monitor/measurement.h"

// Records with round numbers for the tests of exporters.
namespace zeus::testing {

inline EnergyEstimate AnEstimate(Joules energy) {
  return {.energy = energy,
          .sigma = Joules(2),
          .attributed = energy,
          .source = EnergySource::kCounter,
          .coverage = 1.0,
          .updates = 12,
          .update_period = Seconds(0.1),
          .flags = {}};
}

inline Error LostGpu() { return {ErrorCode::kUnavailable, "GPU fell off the bus"}; }

// gpu:0 with 100 J, gpu:1 that is lost, cpu:0 with 20 J; ten seconds from the clock's second 5 on.
inline Measurement AWindow(std::string name) {
  Measurement window;
  window.id = WindowId{7};
  window.window = std::move(name);
  window.started = WallTime(std::chrono::microseconds(1'700'000'000'250'000));
  window.begin = TimePoint(Seconds(5));
  window.time = Seconds(10);
  window.devices = {{.device = "gpu:0", .energy = AnEstimate(Joules(100))},
                    {.device = "gpu:1", .energy = LostGpu()},
                    {.device = "cpu:0", .energy = AnEstimate(Joules(20))}};
  return window;
}

inline EnergyMonitor::Present APresent(Joules total) {
  const Error absent{ErrorCode::kNotSupported, "this device has none"};
  return {.total = total,
          .total_sigma = Joules(3),
          .power = Watts(250),
          .power_sigma = Watts(1.5),
          .temperature = Celsius(40),
          .utilization = Utilization{.compute = 0.9, .memory = 0.5},
          .graphics_clock = Hertz::FromMega(1410),
          .requested_limit = Watts(300),
          .enforced_limit = Watts(280),
          .instant_power = Watts(251),
          .average_power = absent,
          .memory_power = absent,
          .throttle = absent,
          .source = EnergySource::kCounter,
          .update_period = Seconds(0.1),
          .flags = {}};
}

inline EnergyMonitor::Present ALostPresent() {
  EnergyMonitor::Present present = APresent(Joules(0));
  present.total = LostGpu();
  present.power = LostGpu();
  present.instant_power = LostGpu();
  present.temperature = LostGpu();
  present.utilization = LostGpu();
  present.graphics_clock = LostGpu();
  present.requested_limit = LostGpu();
  present.enforced_limit = LostGpu();
  return present;
}

// gpu:0 at 250 W, gpu:1 that is lost, and cpu:0.
inline Sample ASample() {
  const Error absent{ErrorCode::kNotSupported, "not a GPU"};
  EnergyMonitor::Present cpu = APresent(Joules(50));
  cpu.temperature = absent;
  cpu.utilization = absent;
  cpu.graphics_clock = absent;
  cpu.requested_limit = absent;
  cpu.enforced_limit = absent;
  cpu.instant_power = absent;
  return {
      .taken = WallTime(std::chrono::microseconds(1'700'000'000'250'000)),
      .at = TimePoint(Seconds(9)),
      .recorded = Seconds(4),
      .devices = {{.identity = {.name = "gpu:0", .model = "A100", .uuid = "GPU-1"},
                   .present = APresent(Joules(1000)),
                   .limit_range = PowerRange{.min = Watts(100), .max = Watts(400)},
                   .default_limit = Watts(400)},
                  {.identity = {.name = "gpu:1", .model = "A100", .uuid = "GPU-2"},
                   .present = ALostPresent()},
                  {.identity = {.name = "cpu:0", .model = "EPYC", .uuid = ""}, .present = cpu}}};
}

}  // namespace zeus::testing
