#include "apps/nvidia_smi/monitor.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/nvidia_smi/fields.h"
#include "zeus/base/clock.h"

namespace zeus::nvidia_smi {
namespace {

struct Column {
  std::string_view name;
  std::string_view unit;
  std::string_view field;  // Its whole part is shown.
  int width;
  char group;  // Under which -s selects it.
};

constexpr Column kColumns[] = {
    {"pwr", "W", "power.draw", 5, 'p'},
    {"gtemp", "C", "temperature.gpu", 6, 'p'},
    {"mtemp", "C", "temperature.memory", 6, 'p'},
    {"sm", "%", "utilization.gpu", 5, 'u'},
    {"mem", "%", "utilization.memory", 5, 'u'},
    {"enc", "%", "utilization.encoder", 5, 'u'},
    {"dec", "%", "utilization.decoder", 5, 'u'},
    {"mclk", "MHz", "clocks.current.memory", 6, 'c'},
    {"pclk", "MHz", "clocks.current.graphics", 6, 'c'},
    {"fb", "MB", "memory.used", 7, 'm'},
    {"sbecc", "errs", "ecc.errors.corrected.volatile.total", 6, 'e'},
    {"dbecc", "errs", "ecc.errors.uncorrected.volatile.total", 6, 'e'},
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
