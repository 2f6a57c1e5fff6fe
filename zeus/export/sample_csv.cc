#include "zeus/export/sample_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "zeus/base/csv.h"
#include "zeus/export/unix_time.h"

namespace zeus {
namespace {

template <class Unit>
std::string Cell(const Result<Quantity<Unit>>& value) {
  return value.ok() ? fmt::format("{}", value.value().value()) : "";
}

// The reason why a row has no energy, or "".
std::string Reason(const EnergyMonitor::Present& present) {
  return present.total.ok() ? "" : present.total.error().message;
}

}  // namespace

std::string SampleCsvHeader() {
  return "time_seconds,elapsed_seconds,device,model,uuid,power_watts,power_sigma_watts,"
         "energy_joules,energy_sigma_joules,source,temperature_celsius,utilization_ratio,"
         "graphics_clock_hertz,requested_limit_watts,enforced_limit_watts,flags,reason";
}

std::vector<std::string> SampleCsvRows(const Sample& sample) {
  std::vector<std::string> rows;
  for (const DeviceSample& device : sample.devices) {
    const DeviceIdentity& identity = device.identity;
    const EnergyMonitor::Present& present = device.present;
    const bool known = present.total.ok();
    const std::vector<std::string> fields = {
        fmt::format("{:.6f}", UnixTime(sample.taken).count()),
        fmt::format("{:.6f}", sample.recorded.count()),
        identity.name,
        identity.model,
        identity.uuid,
        Cell(present.power),
        present.power.ok() ? fmt::format("{}", present.power_sigma.value()) : "",
        Cell(present.total),
        known ? fmt::format("{}", present.total_sigma.value()) : "",
        known ? EnergySourceName(present.source) : "",
        Cell(present.temperature),
        present.utilization.ok() ? fmt::format("{}", present.utilization.value().compute) : "",
        Cell(present.graphics_clock),
        Cell(present.requested_limit),
        Cell(present.enforced_limit),
        fmt::format("{}", fmt::join(present.flags.Names(), " ")),
        Reason(present)};
    rows.push_back(CsvRow(fields));
  }
  return rows;
}

}  // namespace zeus
