#include "zeus/device/amd/gpu_metrics.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <limits>

namespace zeus::amd {
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

}  // namespace zeus::amd
