#include "apps/nvidia_smi/monitor.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/nvidia_smi/fields.h"
#include "zeus/base/clock.h"

namespace zeus::nvidia_smi {
namespace {

struct Column {
  char group;
  std::string_view name;
  std::string_view unit;
  int width;
  std::string_view field;  // Its whole part is shown; empty where no GPU has the value.
};

constexpr Column kColumns[] = {
    {'p', "pwr", "W", 5, "power.draw"},
    {'p', "gtemp", "C", 6, "temperature.gpu"},
    {'p', "mtemp", "C", 6, "temperature.memory"},
    {'u', "sm", "%", 5, "utilization.gpu"},
    {'u', "mem", "%", 5, "utilization.memory"},
    {'u', "enc", "%", 5, "utilization.encoder"},
    {'u', "dec", "%", 5, "utilization.decoder"},
    {'c', "mclk", "MHz", 6, "clocks.current.memory"},
    {'c', "pclk", "MHz", 6, "clocks.current.graphics"},
    {'m', "fb", "MB", 7, "memory.used"},
    {'e', "sbecc", "errs", 6, "ecc.errors.corrected.volatile.total"},
    {'e', "dbecc", "errs", 6, "ecc.errors.uncorrected.volatile.total"},
};

std::string WholePart(const Gpu& gpu, std::string_view field) {
  const auto value = ChooseGpuFields(field).value().front()->read(gpu);
  return value ? value->substr(0, value->find('.')) : "-";
}

std::string Stamp(std::string_view kinds, const char* date, const char* time) {
  std::string text;
  if (kinds.find('D') != std::string_view::npos) text += fmt::format("{:>9} ", date);
  if (kinds.find('T') != std::string_view::npos) text += fmt::format("{:>9} ", time);
  return text;
}

void PrintHeader(const std::vector<Column>& columns, std::string_view stamp) {
  std::string names = "#" + Stamp(stamp, "Date", "Time") + " gpu";
  std::string units = "#" + Stamp(stamp, "YYYYMMDD", "HH:MM:SS") + " Idx";
  for (const Column& column : columns) {
    names += fmt::format(" {:>{}}", column.name, column.width);
    units += fmt::format(" {:>{}}", column.unit, column.width);
  }
  fmt::print("{}\n{}\n", names, units);
}

}  // namespace

Status Monitor(const std::vector<Gpu>& gpus, const MonitorOptions& options) {
  constexpr std::uint64_t kLinesPerHeader = 20;
  std::vector<Column> columns;
  for (const char group : options.groups) {
    const std::size_t before = columns.size();
    for (const Column& column : kColumns)
      if (column.group == group) columns.push_back(column);
    if (columns.size() == before)
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("dmon -s does not know the metric '{}'; it knows p, u, c, m and e", group)};
  }
  SystemClock clock;
  TimePoint next = clock.Now();
  std::uint64_t lines = 0;
  for (std::uint64_t sample = 0; !options.samples || sample < *options.samples; ++sample) {
    clock.SleepUntil(next);
    next += options.period;
    for (const Gpu& gpu : gpus) {
      if (lines++ % kLinesPerHeader == 0) PrintHeader(columns, options.stamp);
      std::string line =
          " " + Stamp(options.stamp, LocalTime("%Y%m%d").c_str(), LocalTime("%H:%M:%S").c_str());
      line += fmt::format("{:>4}", gpu.index);
      for (const Column& column : columns)
        line += fmt::format(" {:>{}}", WholePart(gpu, column.field), column.width);
      fmt::print("{}\n", line);
    }
    std::fflush(stdout);
  }
  return Ok();
}

}  // namespace zeus::nvidia_smi
