#include "zeus/device/amd/sysfs_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/device/privilege.h"
#include "zeus/device/sysfs.h"

namespace zeus::amd {

namespace {

namespace fs = std::filesystem;

constexpr const char* kVendorId = "0x1002";

std::string LineOr(const fs::path& path, std::string fallback) {
  auto line = ReadLine(path);
  return line.ok() ? std::move(line).value() : std::move(fallback);
}

// Calls visit(line) for each line that is not blank.
template <class Visit>
void ForEachLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto line = Trim(text.substr(0, end)); !line.empty()) visit(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// "500Mhz", in whatever case the driver version writes it.
std::optional<Hertz> ParseMegahertz(std::string_view word) {
  constexpr std::size_t kSuffix = 3;
  if (word.size() <= kSuffix) return std::nullopt;
  auto number = ParseUnsigned(word.substr(0, word.size() - kSuffix));
  if (!number.ok() || LowerCase(word.substr(word.size() - kSuffix)) != "mhz") return std::nullopt;
  return Hertz::FromMega(static_cast<double>(number.value()));
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = Trim(line); !line.empty(); line = Trim(line)) {
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

bool IsCardName(std::string_view name) {
  constexpr std::string_view kPrefix = "card";
  return name.starts_with(kPrefix) && ParseUnsigned(name.substr(kPrefix.size())).ok();
}

// The kernel's name for the device; the target of the link says the same where uevent is absent.
std::string ReadPciAddress(const fs::path& device) {
  constexpr std::string_view kKey = "PCI_SLOT_NAME=";
  std::string address;
  if (const auto uevent = ReadSmallFile(device / "uevent"); uevent.ok()) {
    ForEachLine(uevent.value(), [&](std::string_view line) {
      if (line.starts_with(kKey)) address = line.substr(kKey.size());
    });
  }
  std::error_code ignored;
  if (address.empty()) address = fs::canonical(device, ignored).filename().string();
  return LowerCase(address);
}

std::string ReadDriver(const fs::path& device) {
  std::error_code missing;
  return fs::read_symlink(device / "driver", missing).filename().string();
}

GpuIdentity ReadIdentity(const fs::path& device, const fs::path& sysfs) {
  const std::string chip = LineOr(device / "device", "of unknown type");
  return {.uuid = LineOr(device / "unique_id", ""),
          .pci_address = ReadPciAddress(device),
          .model = LineOr(device / "product_name", "AMD GPU " + chip),
          .driver = LineOr(sysfs / "module/amdgpu/version", ""),
          .vendor = Vendor::kAmd};
}

fs::path FindHwmon(const fs::path& device) {
  const auto directories = ListEntries(device / "hwmon", "hwmon");
  return directories.empty() ? fs::path() : directories.front();
}

// Display controllers, and the "processing accelerators" that recent Instinct boards call
// themselves.
bool IsGpuClass(std::string_view pci_class) {
  return pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
}

std::optional<std::string> AddressOfNode(const fs::path& properties) {
  const auto text = ReadSmallFile(properties);
  if (!text.ok()) return std::nullopt;
  std::map<std::string_view, std::uint64_t> values;
  ForEachLine(text.value(), [&](std::string_view line) {
    const auto words = Words(line);
    if (words.size() != 2) return;
    if (const auto number = ParseUnsigned(words[1]); number.ok()) values[words[0]] = number.value();
  });
  if (values["simd_count"] == 0) return std::nullopt;  // The compute driver lists CPUs too.
  return PciAddress(values["domain"], values["location_id"]);
}

}  // namespace

CardList FindCards(const fs::path& sysfs) {
  CardList list;
  std::vector<std::string> bound;
  for (const auto& directory : ListEntries(sysfs / "class/drm", "card")) {
    if (!IsCardName(directory.filename().string())) continue;
    const fs::path device = directory / "device";
    if (LineOr(device / "vendor", "") != kVendorId) continue;
    if (const std::string driver = ReadDriver(device); !driver.empty() && driver != "amdgpu")
      continue;
    list.cards.push_back({device, FindHwmon(device), ReadIdentity(device, sysfs)});
    bound.push_back(list.cards.back().identity.pci_address);
  }
  std::sort(list.cards.begin(), list.cards.end(), [](const Card& a, const Card& b) {
    return a.identity.pci_address < b.identity.pci_address;
  });
  for (const auto& device : ListEntries(sysfs / "bus/pci/devices")) {
    const std::string address = device.filename().string();
    if (LineOr(device / "vendor", "") == kVendorId && IsGpuClass(LineOr(device / "class", "")) &&
        std::find(bound.begin(), bound.end(), address) == bound.end())
      list.unbound.push_back({address, ReadDriver(device)});
  }
  return list;
}

std::vector<std::string> RuntimeOrder(const fs::path& sysfs) {
  std::vector<std::string> order;
  for (const auto& node : ListEntries(sysfs / "class/kfd/kfd/topology/nodes")) {
    if (!ParseUnsigned(node.filename().string()).ok()) continue;
    if (auto address = AddressOfNode(node / "properties")) order.push_back(std::move(*address));
  }
  return order;
}

Result<std::vector<ClockLevel>> ParseClockLevels(std::string_view text) {
  std::vector<ClockLevel> levels;
  bool readable = true;
  ForEachLine(text, [&](std::string_view line) {
    const auto words = Words(line);
    const auto clock = words.size() >= 2 ? ParseMegahertz(words[1]) : std::nullopt;
    if (!clock || !words[0].ends_with(':')) {
      readable = false;
      return;
    }
    const auto index = ParseUnsigned(words[0].substr(0, words[0].size() - 1));
    constexpr std::uint64_t kMostLevels = 32;  // The driver keeps the choice in 32 bits.
    if (index.ok() && index.value() < kMostLevels)
      levels.push_back({static_cast<unsigned>(index.value()), *clock});
  });
  if (!readable || levels.empty())
    return Error{ErrorCode::kUnavailable, "not a table of clock levels"};
  return levels;
}

Result<ClockRange> ParseOverdriveRange(std::string_view text, ClockDomain domain) {
  const std::string_view key = domain == ClockDomain::kGraphics ? "SCLK:" : "MCLK:";
  bool inside = false;
  std::optional<ClockRange> range;
  ForEachLine(text, [&](std::string_view line) {
    if (line.starts_with("OD_")) inside = line == "OD_RANGE:";
    const auto words = Words(line);
    if (!inside || words.size() != 3 || words[0] != key) return;
    const auto min = ParseMegahertz(words[1]);
    const auto max = ParseMegahertz(words[2]);
    if (min && max && *min <= *max) range = ClockRange{*min, *max};
  });
  if (range) return *range;
  return Error{
      ErrorCode::kNotSupported,
      fmt::format("pp_od_clk_voltage has no range for the {} clock", ClockDomainName(domain))};
}

std::string PciAddress(std::uint64_t domain, std::uint64_t bus_device_function) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain & 0xffffffffU,
                     (bus_device_function >> 8U) & 0xffU, (bus_device_function >> 3U) & 0x1fU,
                     bus_device_function & 0x7U);
}

namespace {

// structure_size (2 bytes), format_revision, content_revision.
constexpr std::size_t kHeaderSize = 4;

enum class PowerField { kAverage, kCurrent };

// Where the fields stand in one family of revisions (kgd_pp_interface.h of the kernel).
struct Layout {
  unsigned format;
  unsigned first_content;
  unsigned last_content;
  std::size_t power_offset;  // 16 bits, watts.
  PowerField power_field;
  std::size_t energy_offset;  // 64 bits, 2^-16 J; the clock counter follows it.

  constexpr std::size_t smallest_size() const { return energy_offset + 2 * sizeof(std::uint64_t); }
};

constexpr std::array kLayouts = {
    Layout{1, 1, 3, 22, PowerField::kAverage, 24},
    Layout{1, 4, 4, 10, PowerField::kCurrent, 24},
    Layout{1, 5, 6, 10, PowerField::kCurrent, 88},
};

// The file is little-endian like the machines that the driver runs on; all ones mean "none".
template <class Number>
std::optional<Number> FieldAt(std::string_view bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;)
    value = (value << 8U) | static_cast<unsigned char>(bytes[offset + i]);
  const auto number = static_cast<Number>(value);
  if (number == std::numeric_limits<Number>::max()) return std::nullopt;
  return number;
}

Result<Layout> FindLayout(unsigned format, unsigned content) {
  for (const Layout& layout : kLayouts) {
    if (layout.format == format && layout.first_content <= content &&
        content <= layout.last_content)
      return layout;
  }
  const bool without_energy = format == 2 || (format == 1 && content == 0);
  return Error{
      ErrorCode::kNotSupported,
      fmt::format("gpu_metrics v{}.{} {}", format, content,
                  without_energy ? "has no energy accumulator" : "is not known to this version")};
}

}  // namespace

Result<GpuMetrics> ParseGpuMetrics(std::string_view bytes) {
  if (bytes.size() < kHeaderSize) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("gpu_metrics has {} bytes, too few for its header", bytes.size())};
  }
  const std::size_t declared =
      static_cast<unsigned char>(bytes[0]) + 256U * static_cast<unsigned char>(bytes[1]);
  const unsigned format = static_cast<unsigned char>(bytes[2]);
  const unsigned content = static_cast<unsigned char>(bytes[3]);
  ZEUS_TRY(const Layout layout, FindLayout(format, content));
  if (declared != bytes.size() || declared < layout.smallest_size()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("gpu_metrics v{}.{} has {} bytes, its header says {}, at least {} are "
                             "needed",
                             format, content, bytes.size(), declared, layout.smallest_size())};
  }
  GpuMetrics metrics;
  metrics.energy_accumulator = FieldAt<std::uint64_t>(bytes, layout.energy_offset);
  if (const auto watts = FieldAt<std::uint16_t>(bytes, layout.power_offset)) {
    auto& power =
        layout.power_field == PowerField::kAverage ? metrics.average_power : metrics.current_power;
    power = Watts(*watts);
  }
  return metrics;
}

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
