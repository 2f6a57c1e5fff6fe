#include "zeus/export/sample.h"

namespace zeus {

std::string_view DeviceIdentity::kind() const {
  return std::string_view(name).substr(0, name.find(':'));
}

std::string_view DeviceIdentity::index() const {
  const auto colon = name.find(':');
  return colon == std::string::npos ? std::string_view() : std::string_view(name).substr(colon + 1);
}

const Error* WhyUnreadable(const EnergyMonitor::Present& present) {
  if (!present.total.ok()) return &present.total.error();
  return present.power.ok() ? nullptr : &present.power.error();
}

}  // namespace zeus
