#include "zeus/device/soc/soc_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/device/sysfs.h"

namespace zeus::soc {

std::map<std::string, std::string> ParseUevent(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || !IsPrintable(line)) continue;
    values.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return values;
}

Result<GraceSensorName> ParseGraceSensorName(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, GraceSensor>, 4> kPrefixes{
      {{"Module Power Socket ", GraceSensor::kModule},
       {"Grace Power Socket ", GraceSensor::kGrace},
       {"CPU Power Socket ", GraceSensor::kCpu},
       {"SysIO Power Socket ", GraceSensor::kSysIo}}};
  for (const auto& [prefix, sensor] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    ZEUS_TRY(const std::uint64_t socket, ParseUnsigned(text.substr(prefix.size())));
    constexpr std::uint64_t kMostSockets = 1024;
    if (socket < kMostSockets)
      return GraceSensorName{.sensor = sensor, .socket = static_cast<int>(socket)};
  }
  return Error{ErrorCode::kInvalidArgument, "not the name of a Grace power sensor"};
}

std::optional<PowerRail::Role> RailRole(std::string_view label) {
  // The seventh channel of the chip, and pins that the board does not connect.
  if (label.empty() || label == "sum of shunt voltages" || label == "NC") return std::nullopt;
  // The board's input: newer modules call it VDD_IN, the first Nano POM_5V_IN.
  if (label == "VDD_IN" || label == "POM_5V_IN") return PowerRail::Role::kTotal;
  return PowerRail::Role::kPart;
}

}  // namespace zeus::soc
