#include "zeus/device/soc/measured_rail.h"

#include <utility>

#include "zeus/base/file.h"

namespace zeus::soc {

PowerSensor HwmonPower(std::filesystem::path attribute) {
  return [attribute = std::move(attribute)]() -> Result<Watts> {
    ZEUS_TRY(const std::int64_t microwatts, ReadInteger(attribute));
    return Watts::FromMicro(static_cast<double>(microwatts));
  };
}

Error NoEnergyCounter(const std::string& name) {
  return {ErrorCode::kNotSupported,
          name + ": the sensor has no energy counter: power must be integrated"};
}

MeasuredRail::MeasuredRail(std::string name, Role role, PowerSensor sensor)
    : name_(std::move(name)), role_(role), sensor_(std::move(sensor)) {}

Result<Watts> MeasuredRail::Power() {
  auto power = sensor_();
  if (!power.ok()) return std::move(power).error().While(name_);
  return power;
}

}  // namespace zeus::soc
