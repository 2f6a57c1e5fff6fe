#include <cmath>
#include <limits>
#include <utility>

#include "zeus/c/boundary.h"
#include "zeus/c/handles.h"

namespace zeus::c {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

template <class T>
double ValueOr(const Result<T>& result) {
  return result.ok() ? result.value().value() : kUnknown;
}

zeus_device_reading ToReading(const EnergyMonitor::Present& present) {
  zeus_device_reading reading{};
  reading.energy_joules = ValueOr(present.total);
  reading.energy_sigma_joules = present.total.ok() ? present.total_sigma.value() : kUnknown;
  reading.power_watts = ValueOr(present.power);
  reading.power_sigma_watts = present.power.ok() ? present.power_sigma.value() : kUnknown;
  reading.temperature_celsius = ValueOr(present.temperature);
  reading.utilization = present.utilization.ok() ? present.utilization.value().compute : kUnknown;
  reading.graphics_clock_hertz = ValueOr(present.graphics_clock);
  reading.requested_limit_watts = ValueOr(present.requested_limit);
  reading.enforced_limit_watts = ValueOr(present.enforced_limit);
  const std::pair<bool, unsigned> known[] = {
      {present.total.ok(), ZEUS_READING_ENERGY},
      {present.power.ok(), ZEUS_READING_POWER},
      {present.temperature.ok(), ZEUS_READING_TEMPERATURE},
      {present.utilization.ok(), ZEUS_READING_UTILIZATION},
      {present.graphics_clock.ok(), ZEUS_READING_GRAPHICS_CLOCK},
      {present.requested_limit.ok() && present.enforced_limit.ok(), ZEUS_READING_POWER_LIMIT}};
  for (const auto& [ok, bit] : known) reading.known |= ok ? bit : 0;
  return reading;
}

zeus_power_limits ToLimits(const PowerLimit& limit) {
  zeus_power_limits limits{};
  limits.min_watts = limit.range.min.value();
  limits.max_watts = limit.range.max.value();
  limits.default_watts = limit.default_limit.value();
  limits.requested_watts = limit.requested.value();
  limits.enforced_watts = limit.enforced.value();
  return limits;
}

Status SetLimit(zeus_monitor* monitor, size_t device, double watts, Ceiling ceiling,
                zeus_power_limit** limit) {
  ZEUS_RETURN_IF_ERROR(CheckGiven(limit, "limit"));
  *limit = nullptr;
  ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
  if (!std::isfinite(watts))
    return Error{ErrorCode::kInvalidArgument, "the power limit is not a number"};
  ZEUS_TRY(Gpu * gpu, FindGpu(*monitor, device));
  ZEUS_TRY(auto scope, ScopedPowerLimit::Set(*gpu, Watts(watts), ceiling));
  auto handle = std::make_unique<zeus_power_limit>(
      zeus_power_limit{std::make_shared<HeldLimit>(std::move(scope))});
  const std::lock_guard lock(monitor->limits_mutex);
  std::erase_if(monitor->limits, [](const auto& held) { return held.expired(); });
  monitor->limits.push_back(handle->held);
  *limit = handle.release();
  return Ok();
}

}  // namespace

Status HeldLimit::Restore() {
  const std::lock_guard lock(mutex_);
  if (!scope_) return Ok();
  Status restored = scope_->Restore();
  scope_.reset();
  return restored;
}

}  // namespace zeus::c

using namespace zeus::c;

extern "C" {

zeus_status zeus_device_count(zeus_monitor* monitor, size_t* count) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    ZEUS_RETURN_IF_ERROR(CheckGiven(count, "count"));
    *count = monitor->devices.size();
    return zeus::Ok();
  });
}

zeus_status zeus_device_info_get(zeus_monitor* monitor, size_t device, zeus_device_info* info) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    ZEUS_RETURN_IF_ERROR(CheckStruct(info, "zeus_device_info"));
    ZEUS_RETURN_IF_ERROR(CheckDevice(*monitor, device));
    const DeviceText& text = monitor->devices[device];
    zeus_device_info result{};
    result.name = text.name.c_str();
    result.model = text.model.c_str();
    result.uuid = text.uuid.c_str();
    result.pci_address = text.pci_address.c_str();
    result.kind = text.kind;
    WriteStruct(result, info);
    return zeus::Ok();
  });
}

zeus_status zeus_device_read(zeus_monitor* monitor, size_t device, zeus_device_reading* reading) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    ZEUS_RETURN_IF_ERROR(CheckStruct(reading, "zeus_device_reading"));
    ZEUS_RETURN_IF_ERROR(CheckDevice(*monitor, device));
    WriteStruct(ToReading(monitor->node->monitor().Now(device)), reading);
    return zeus::Ok();
  });
}

zeus_status zeus_power_limits_read(zeus_monitor* monitor, size_t device,
                                   zeus_power_limits* limits) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    ZEUS_RETURN_IF_ERROR(CheckStruct(limits, "zeus_power_limits"));
    ZEUS_TRY(zeus::Gpu * gpu, FindGpu(*monitor, device));
    ZEUS_TRY(const zeus::PowerLimit limit, gpu->CurrentPowerLimit());
    WriteStruct(ToLimits(limit), limits);
    return zeus::Ok();
  });
}

zeus_status zeus_power_limit_set(zeus_monitor* monitor, size_t device, double watts,
                                 zeus_power_limit** limit) {
  return Guard([&] { return SetLimit(monitor, device, watts, zeus::Ceiling::kAsFound, limit); });
}

zeus_status zeus_power_limit_raise(zeus_monitor* monitor, size_t device, double watts,
                                   zeus_power_limit** limit) {
  return Guard([&] { return SetLimit(monitor, device, watts, zeus::Ceiling::kOfDevice, limit); });
}

zeus_status zeus_power_limit_restore(zeus_power_limit* limit) {
  return Guard([&]() -> zeus::Status {
    if (limit == nullptr) return zeus::Ok();
    const std::unique_ptr<zeus_power_limit> freed(limit);
    return freed->held->Restore();
  });
}

}  // extern "C"
