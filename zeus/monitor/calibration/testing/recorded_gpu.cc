#include "zeus/monitor/calibration/testing/recorded_gpu.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace zeus::calibration::testing {
namespace {

// As drivers tell power.
double WholeMilli(Watts power) { return std::round(power.ToMilli()) / 1e3; }

}  // namespace

RecordedGpu::RecordedGpu(std::string_view model, const Scenario& scenario, std::uint64_t seed)
    : scenario_(scenario),
      random_(seed),
      gpu_(clock_, *sim::FindGpuModel(model).value(), {.seed = seed, .index = 0}) {
  std::uint32_t attached = 0;
  int command = 0;
  for (const Seconds length : SquareWave(scenario.period, scenario.duration)) {
    const bool busy = command % 2 == 1;
    load.Add(clock_.Now(), busy ? LoadState::kBusy : LoadState::kIdle);
    Watch(scenario.command_latency);
    if (command != scenario.missed_command) {
      gpu_.DetachLoad(attached);
      if (busy) attached = gpu_.AttachLoad({.demand = scenario.demand}).value();
    }
    Watch(length - scenario.command_latency);
    ++command;
  }
  gpu_.DetachLoad(attached);
}

void RecordedGpu::Watch(Seconds duration) {
  const TimePoint end = clock_.Now() + duration;
  while (clock_.Now() < end) {
    const TimePoint now = clock_.Now();
    Poll();
    clock_.SleepUntil(
        std::min({end, now + Seconds(random_.Uniform(0.0008, 0.0014)), std::max(now, meter_due_)}));
    if (clock_.Now() >= meter_due_) LogMeter();
  }
}

void RecordedGpu::Poll() {
  const TimePoint now = clock_.Now();
  if (const auto power = gpu_.Power(PowerKind::kInstant); power.ok()) {
    if (power.value() != shown_) noise_ = scenario_.noise * random_.Normal();
    shown_ = power.value();
    instant.Add(now, WholeMilli(shown_ + noise_));
  }
  if (const auto power = gpu_.Power(PowerKind::kOneSecondAverage); power.ok())
    average.Add(now, WholeMilli(power.value()));
  if (const auto energy = gpu_.TotalEnergy(); energy.ok()) counter.Add(now, energy.value().value());
}

void RecordedGpu::LogMeter() {
  const Joules energy = gpu_.ExactEnergy();
  const Watts power = (energy - meter_energy_) / scenario_.meter_interval +
                      scenario_.other_consumers + scenario_.meter_noise * random_.Normal();
  meter_energy_ = energy;
  const auto late = std::chrono::round<std::chrono::microseconds>(scenario_.meter_delay);
  if (clock_.Now() > TimePoint()) meter.push_back({clock_.WallNow() + late, power});
  meter_due_ = clock_.Now() + scenario_.meter_interval;
}

}  // namespace zeus::calibration::testing
