#include "apps/zeus/power_table.h"

#include <fmt/format.h>

#include <cstddef>

namespace zeus::cli {
namespace {

constexpr const char* kRow = "{:<10} {:<24} {:>9} {:>11} {:>7} {:>6} {:>9}";

template <class T, class Show>
std::string Cell(const Result<T>& value, Show show) {
  return value.ok() ? show(value.value()) : "-";
}

std::string EnergyCell(const Result<EnergyReading>& now, const Result<EnergyReading>& start) {
  if (!now.ok() || !start.ok()) return "-";
  // A counter that restarted meanwhile counted less than was used.
  const char* bound = now.value().epoch == start.value().epoch ? "" : ">";
  return fmt::format("{}{:.1f} J", bound, (now.value().total - start.value().total).value());
}

std::string WattsCell(const Result<Watts>& power, int digits) {
  return Cell(power, [digits](Watts w) { return fmt::format("{:.{}f} W", w.value(), digits); });
}

std::string GpuRow(Gpu& gpu, const Result<EnergyReading>& start) {
  const GpuReading now = gpu.Read();
  return fmt::format(
      kRow, gpu.name(), gpu.identity().model.substr(0, 24),
      WattsCell(now.instant_power.ok() ? now.instant_power : now.average_power, 1),
      EnergyCell(now.energy, start),
      Cell(now.temperature, [](Celsius t) { return fmt::format("{:.0f} °C", t.value()); }),
      Cell(now.utilization,
           [](const Utilization& u) { return fmt::format("{:.0f} %", 100 * u.compute); }),
      WattsCell(now.enforced_limit, 0));
}

std::string MeterRow(EnergyMeter& meter, const std::string& model, const std::string& limit,
                     const Result<EnergyReading>& start) {
  return fmt::format(kRow, meter.name(), model.substr(0, 24), WattsCell(meter.Power(), 1),
                     EnergyCell(meter.Energy(), start), "", "", limit);
}

}  // namespace

PowerTable::PowerTable(Node& node) : node_(node) {
  for (const auto& gpu : node.gpus) start_.push_back(gpu->Energy());
  for (const auto& cpu : node.cpus) start_.push_back(cpu->Energy());
  for (const auto& rail : node.rails) start_.push_back(rail->Energy());
}

std::vector<std::string> PowerTable::Rows(Seconds since_start) {
  std::vector<std::string> rows = {fmt::format(kRow, fmt::format("{:.1f} s", since_start.count()),
                                               "model", "power", "energy", "temp", "util",
                                               "limit")};
  auto start = start_.begin();
  for (const auto& gpu : node_.gpus) rows.push_back(GpuRow(*gpu, *start++));
  for (const auto& cpu : node_.cpus) {
    const auto limit = cpu->CurrentPowerLimit();
    rows.push_back(MeterRow(*cpu, cpu->identity().model,
                            limit.ok() ? WattsCell(limit.value().enforced, 0) : "-", *start++));
  }
  for (const auto& rail : node_.rails) rows.push_back(MeterRow(*rail, "", "", *start++));
  return rows;
}

}  // namespace zeus::cli
