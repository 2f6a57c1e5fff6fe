#include "zeus/device/amd/sysfs_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/device/privilege.h"

namespace zeus::amd {
namespace {

constexpr const char* kLevelFile = "power_dpm_force_performance_level";
constexpr const char* kOverdriveFile = "pp_od_clk_voltage";

const char* LevelTableFile(ClockDomain domain) {
  return domain == ClockDomain::kGraphics ? "pp_dpm_sclk" : "pp_dpm_mclk";
}

bool IsNotSupported(const Error& error) { return error.code == ErrorCode::kNotSupported; }

}  // namespace

SysfsBoard::SysfsBoard(Card card)
    : Board(std::move(card.identity)),
      device_(std::move(card.device)),
      hwmon_(std::move(card.hwmon)) {}

Error SysfsBoard::AsDeviceError(Error error) const {
  std::error_code ignored;
  if (error.code == ErrorCode::kNotFound) {
    error.code = std::filesystem::exists(device_ / "vendor", ignored) ? ErrorCode::kNotSupported
                                                                      : ErrorCode::kUnavailable;
  }
  if (error.code == ErrorCode::kInvalidArgument) error.code = ErrorCode::kUnavailable;
  return error;
}

Result<double> SysfsBoard::Number(const std::filesystem::path& path) const {
  auto number = ReadInteger(path);
  if (!number.ok()) return AsDeviceError(std::move(number).error());
  return static_cast<double>(number.value());
}

Result<double> SysfsBoard::HwmonNumber(const char* file) const {
  if (hwmon_.empty()) {
    return Error{ErrorCode::kNotSupported,
                 fmt::format("{}: amdgpu offers no hwmon directory here", device_.string())};
  }
  return Number(hwmon_ / file);
}

Status SysfsBoard::Write(const std::filesystem::path& path, const std::string& text) const {
  auto written = WriteAttribute(path, text);
  if (written.ok()) return Ok();
  Error error = AsDeviceError(std::move(written).error());
  if (error.code == ErrorCode::kPermissionDenied)
    error.message += fmt::format("; {}", RefusalAdvice());
  return error;
}

Result<GpuMetrics> SysfsBoard::Metrics() const {
  auto bytes = ReadSmallFile(device_ / "gpu_metrics");
  if (!bytes.ok()) return AsDeviceError(std::move(bytes).error());
  auto metrics = ParseGpuMetrics(bytes.value());
  if (!metrics.ok()) return std::move(metrics).error().While(device_.string());
  return metrics;
}

Result<CounterSample> SysfsBoard::Energy() {
  ZEUS_TRY(const GpuMetrics metrics, Metrics());
  if (!metrics.energy_accumulator) {
    return Error{
        ErrorCode::kNotSupported,
        fmt::format("{}: the firmware does not fill the energy accumulator", device_.string())};
  }
  return CounterSample{.ticks = *metrics.energy_accumulator, .tick = kEnergyTick};
}

Result<Watts> SysfsBoard::Power(PowerKind kind) {
  const bool instant = kind == PowerKind::kInstant;
  auto microwatts = HwmonNumber(instant ? "power1_input" : "power1_average");
  if (microwatts.ok()) return Watts::FromMicro(microwatts.value());
  if (!IsNotSupported(microwatts.error())) return std::move(microwatts).error();
  if (const auto metrics = Metrics(); metrics.ok()) {
    const auto& power = instant ? metrics.value().current_power : metrics.value().average_power;
    if (power) return *power;
  }
  return std::move(microwatts).error();
}

Result<Celsius> SysfsBoard::Temperature() {
  auto edge = HwmonNumber("temp1_input");
  if (edge.ok()) return Celsius::FromMilli(edge.value());
  if (!IsNotSupported(edge.error())) return std::move(edge).error();
  ZEUS_TRY(const double junction, HwmonNumber("temp2_input"));  // MI300 has no edge sensor.
  return Celsius::FromMilli(junction);
}

Result<Utilization> SysfsBoard::Busy() {
  constexpr double kPercent = 100.0;
  ZEUS_TRY(const double compute, Number(device_ / "gpu_busy_percent"));
  ZEUS_TRY(const double memory, Number(device_ / "mem_busy_percent"));
  return Utilization{.compute = std::clamp(compute / kPercent, 0.0, 1.0),
                     .memory = std::clamp(memory / kPercent, 0.0, 1.0)};
}

Result<MemoryUse> SysfsBoard::Memory() {
  auto used = ReadUnsigned(device_ / "mem_info_vram_used");
  if (!used.ok()) return AsDeviceError(std::move(used).error());
  auto total = ReadUnsigned(device_ / "mem_info_vram_total");
  if (!total.ok()) return AsDeviceError(std::move(total).error());
  return MemoryUse{.used_bytes = used.value(), .total_bytes = total.value()};
}

Result<PowerCap> SysfsBoard::Cap() {
  ZEUS_TRY(const double current, HwmonNumber("power1_cap"));
  ZEUS_TRY(const double min, HwmonNumber("power1_cap_min"));
  ZEUS_TRY(const double max, HwmonNumber("power1_cap_max"));
  // Older kernels do not tell the default. Without overdrive it is the maximum.
  auto fallback = HwmonNumber("power1_cap_default");
  if (!fallback.ok() && IsNotSupported(fallback.error())) fallback = max;
  ZEUS_TRY(const double default_limit, std::move(fallback));
  return PowerCap{.range = {.min = Watts::FromMicro(min), .max = Watts::FromMicro(max)},
                  .default_limit = Watts::FromMicro(default_limit),
                  .current = Watts::FromMicro(current)};
}

Status SysfsBoard::SetCap(Watts limit) {
  ZEUS_RETURN_IF_ERROR(HwmonNumber("power1_cap"));
  return Write(hwmon_ / "power1_cap", fmt::format("{}", std::llround(limit.ToMicro())));
}

Result<std::vector<Hertz>> SysfsBoard::SupportedClocks(ClockDomain domain) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const ClockTable table, Table(domain));
  std::vector<Hertz> clocks;
  for (const auto& level : table.levels) clocks.push_back(level.clock);
  std::sort(clocks.begin(), clocks.end());
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  return clocks;
}

Result<Hertz> SysfsBoard::Clock(ClockDomain domain) {
  ZEUS_TRY(const double hertz,
           HwmonNumber(domain == ClockDomain::kGraphics ? "freq1_input" : "freq2_input"));
  return Hertz(hertz);
}

Result<SysfsBoard::ClockTable> SysfsBoard::Table(ClockDomain domain) {
  auto& known = tables_[static_cast<std::size_t>(domain)];
  if (known) return *known;
  const auto path = device_ / LevelTableFile(domain);
  auto text = ReadSmallFile(path);
  if (!text.ok()) return AsDeviceError(std::move(text).error());
  auto levels = ParseClockLevels(text.value());
  if (!levels.ok()) return std::move(levels).error().While(path.string());
  ClockTable table{.levels = std::move(levels).value(), .overdrive = std::nullopt};
  if (const auto overdrive = ReadSmallFile(device_ / kOverdriveFile); overdrive.ok()) {
    if (const auto range = ParseOverdriveRange(overdrive.value(), domain); range.ok())
      table.overdrive = range.value();
  }
  known = table;
  return table;
}

Status SysfsBoard::SetLevel(const std::string& level) {
  ZEUS_RETURN_IF_ERROR(Write(device_ / kLevelFile, level));
  auto now = ReadLine(device_ / kLevelFile);
  if (!now.ok()) return AsDeviceError(std::move(now).error());
  if (now.value() == level) return Ok();
  return Error{ErrorCode::kUnavailable,
               fmt::format("{}: asked for \"{}\", reads \"{}\"", (device_ / kLevelFile).string(),
                           level, now.value())};
}

Status SysfsBoard::Apply(ClockDomain domain, const ClockTable& table, ClockRange range) {
  if (table.overdrive) {
    const char letter = domain == ClockDomain::kGraphics ? 's' : 'm';
    const auto path = device_ / kOverdriveFile;
    const Hertz min = std::clamp(range.min, table.overdrive->min, table.overdrive->max);
    const Hertz max = std::clamp(range.max, table.overdrive->min, table.overdrive->max);
    ZEUS_RETURN_IF_ERROR(Write(path, fmt::format("{} 0 {}\n", letter, std::lround(min.ToMega()))));
    ZEUS_RETURN_IF_ERROR(Write(path, fmt::format("{} 1 {}\n", letter, std::lround(max.ToMega()))));
    return Write(path, "c\n");
  }
  std::string indices;
  for (const auto& level : table.levels) {
    if (level.clock >= range.min && level.clock <= range.max)
      indices += fmt::format("{} ", level.index);
  }
  return Write(device_ / LevelTableFile(domain), indices + "\n");
}

Status SysfsBoard::LockClock(ClockDomain domain, ClockRange range) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const ClockTable table, Table(domain));
  if (locked_.empty()) {
    auto level = ReadLine(device_ / kLevelFile);
    if (!level.ok()) return AsDeviceError(std::move(level).error());
    level_before_us_ = std::move(level).value();
    ZEUS_RETURN_IF_ERROR(SetLevel("manual"));
  }
  auto applied = Apply(domain, table, range);
  if (applied.ok()) locked_.insert(domain);
  if (locked_.empty()) (void)SetLevel(level_before_us_);  // The first failure says more.
  return applied;
}

Status SysfsBoard::ResetClock(ClockDomain domain) {
  const std::lock_guard lock(mutex_);
  // A lock that another process left behind goes too; the driver's own choice is "auto".
  if (locked_.empty()) return SetLevel("auto");
  if (!locked_.contains(domain)) return Ok();
  ZEUS_TRY(const ClockTable table, Table(domain));
  const auto [lowest, highest] =
      std::minmax_element(table.levels.begin(), table.levels.end(),
                          [](const auto& a, const auto& b) { return a.clock < b.clock; });
  const ClockRange whole{lowest->clock, highest->clock};
  ZEUS_RETURN_IF_ERROR(Apply(domain, table, table.overdrive.value_or(whole)));
  if (locked_.size() == 1) ZEUS_RETURN_IF_ERROR(SetLevel(level_before_us_));
  locked_.erase(domain);
  return Ok();
}

}  // namespace zeus::amd
