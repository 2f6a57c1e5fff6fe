#include "apps/zeus/run/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace zeus::cli {
namespace {

// The mean of what the runs say about one device.
DeviceMeasurement MeanOfDevice(const std::vector<Run>& runs, std::size_t index) {
  const DeviceMeasurement& first = runs.front().measurement.devices[index];
  DeviceMeasurement mean = first;
  EnergyEstimate sum{};
  double coverage = 0;
  int known = 0;
  for (const Run& run : runs) {
    const DeviceMeasurement& device = run.measurement.devices[index];
    if (!device.energy.ok()) continue;
    const EnergyEstimate& one = device.energy.value();
    sum.energy += one.energy;
    sum.sigma += one.sigma;
    sum.shared_sigma += one.shared_sigma;
    sum.attributed += one.attributed;
    sum.updates += one.updates;
    coverage += one.coverage;
    sum.flags = sum.flags | one.flags;
    sum.source = one.source;
    sum.update_period = one.update_period;
    ++known;
  }
  if (known == 0) return mean;
  sum.energy = sum.energy / known;
  sum.sigma = sum.sigma / known;
  sum.shared_sigma = sum.shared_sigma / known;
  sum.attributed = sum.attributed / known;
  sum.updates /= known;
  sum.coverage = coverage / known;
  mean.energy = sum;
  return mean;
}

}  // namespace

std::optional<NetEnergy> ComputeNetEnergy(const DeviceMeasurement& device, Seconds time,
                                          const std::vector<IdlePower>& idle) {
  const auto found = std::ranges::find(idle, device.device, &IdlePower::device);
  if (found == idle.end() || !device.energy.ok()) return std::nullopt;
  const EnergyEstimate& gross = device.energy.value();
  return NetEnergy{.energy = gross.energy - found->power * time,
                   .sigma = Joules(std::hypot(gross.sigma.value(), (found->sigma * time).value()))};
}

NetTotal ComputeNetTotal(const Measurement& measurement, const std::vector<IdlePower>& idle) {
  NetTotal total;
  for (const DeviceMeasurement& device : measurement.devices) {
    if (!device.in_total) continue;
    const auto net = ComputeNetEnergy(device, measurement.time, idle);
    if (!net) continue;
    total.net.energy += net->energy;
    total.net.sigma = Joules(std::hypot(total.net.sigma.value(), net->sigma.value()));
    total.contains.push_back(device.device);
  }
  return total;
}

Run MeanOf(const std::vector<Run>& runs) {
  Run mean = runs.front();
  mean.exit_code = runs.back().exit_code;
  mean.measurement.time = Seconds(0);
  for (const Run& run : runs)
    mean.measurement.time += run.measurement.time / static_cast<double>(runs.size());
  for (std::size_t i = 0; i < mean.measurement.devices.size(); ++i)
    mean.measurement.devices[i] = MeanOfDevice(runs, i);
  return mean;
}

}  // namespace zeus::cli
