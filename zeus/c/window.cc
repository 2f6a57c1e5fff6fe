#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "zeus/c/boundary.h"
#include "zeus/c/handles.h"

namespace zeus::c {
namespace {

zeus_window_options DefaultWindow(std::size_t struct_size) {
  zeus_window_options options{};
  options.struct_size = struct_size;
  options.synchronize = 1;
  options.weight = 1;
  return options;
}

Result<WindowOptions> ToOptions(const zeus_window_options& given) {
  if (!std::isfinite(given.weight) || given.weight < 0)
    return Error{ErrorCode::kInvalidArgument, "the weight of a window is negative or no number"};
  WindowOptions options;
  options.if_open = given.restart != 0 ? IfOpen::kRestart : IfOpen::kRefuse;
  options.edges = given.synchronous_edges != 0 ? EdgeReading::kSynchronous : EdgeReading::kRecorded;
  options.synchronize = given.synchronize != 0;
  if (given.has_lane != 0) options.lane = given.lane;
  options.weight = given.weight;
  return options;
}

std::uint32_t ToBits(MeasurementFlags flags) {
  constexpr std::pair<MeasurementFlag, unsigned> kBits[] = {
      {MeasurementFlag::kCounterReset, ZEUS_FLAG_COUNTER_RESET},
      {MeasurementFlag::kStaleCounter, ZEUS_FLAG_STALE_COUNTER},
      {MeasurementFlag::kShortWindow, ZEUS_FLAG_SHORT_WINDOW},
      {MeasurementFlag::kLimitChanged, ZEUS_FLAG_LIMIT_CHANGED},
      {MeasurementFlag::kThrottled, ZEUS_FLAG_THROTTLED},
      {MeasurementFlag::kSensorAliasingPossible, ZEUS_FLAG_SENSOR_ALIASING_POSSIBLE},
      {MeasurementFlag::kEstimated, ZEUS_FLAG_ESTIMATED},
      {MeasurementFlag::kPartial, ZEUS_FLAG_PARTIAL},
      {MeasurementFlag::kShared, ZEUS_FLAG_SHARED}};
  std::uint32_t bits = 0;
  for (const auto& [flag, bit] : kBits) bits |= flags.Has(flag) ? bit : 0;
  return bits;
}

zeus_energy_source ToSource(EnergySource source) {
  switch (source) {
    case EnergySource::kCounter:
      return ZEUS_SOURCE_COUNTER;
    case EnergySource::kIntegrated:
      return ZEUS_SOURCE_INTEGRATED;
    case EnergySource::kModel:
      return ZEUS_SOURCE_MODEL;
  }
  return ZEUS_SOURCE_MODEL;
}

void Describe(const EnergyEstimate& estimate, zeus_device_measurement& result) {
  result.status = ZEUS_OK;
  result.reason = "";
  result.energy_joules = estimate.energy.value();
  result.sigma_joules = estimate.sigma.value();
  result.attributed_joules = estimate.attributed.value();
  result.coverage = estimate.coverage;
  result.update_period_seconds = estimate.update_period.count();
  result.updates = estimate.updates;
  result.flags = ToBits(estimate.flags);
  result.source = ToSource(estimate.source);
}

void DescribeAbsence(const Error& error, zeus_device_measurement& result) {
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  result.status = ToStatus(error.code);
  result.reason = error.message.c_str();
  result.energy_joules = result.sigma_joules = result.attributed_joules = kNoNumber;
  result.update_period_seconds = kNoNumber;
}

}  // namespace

std::unique_ptr<zeus_measurement> MakeHandle(Measurement measurement) {
  return std::make_unique<zeus_measurement>(zeus_measurement{std::move(measurement)});
}

}  // namespace zeus::c

using namespace zeus::c;

extern "C" {

zeus_status zeus_window_options_init(zeus_window_options* options, size_t struct_size) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckGiven(options, "options"));
    ZEUS_RETURN_IF_ERROR(CheckSize<zeus_window_options>(struct_size, "zeus_window_options"));
    options->struct_size = struct_size;
    WriteStruct(DefaultWindow(struct_size), options);
    return zeus::Ok();
  });
}

zeus_status zeus_window_begin(zeus_monitor* monitor, const char* name,
                              const zeus_window_options* options, uint64_t* id) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    ZEUS_RETURN_IF_ERROR(CheckGiven(name, "name"));
    zeus_window_options chosen = DefaultWindow(sizeof(zeus_window_options));
    if (options != nullptr) {
      ZEUS_TRY(chosen, ReadStruct(options, "zeus_window_options"));
    }
    ZEUS_TRY(const zeus::WindowOptions wanted, ToOptions(chosen));
    ZEUS_TRY(const zeus::WindowId begun, monitor->node->monitor().BeginWindow(name, wanted));
    if (id != nullptr) *id = static_cast<uint64_t>(begun);
    return zeus::Ok();
  });
}

zeus_status zeus_window_end(zeus_monitor* monitor, const char* name,
                            zeus_measurement** measurement) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckGiven(measurement, "measurement"));
    *measurement = nullptr;
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    ZEUS_RETURN_IF_ERROR(CheckGiven(name, "name"));
    ZEUS_TRY(auto result, monitor->node->monitor().EndWindow(name));
    *measurement = MakeHandle(std::move(result)).release();
    return zeus::Ok();
  });
}

zeus_status zeus_window_cancel(zeus_monitor* monitor, const char* name) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    ZEUS_RETURN_IF_ERROR(CheckGiven(name, "name"));
    return monitor->node->monitor().CancelWindow(name);
  });
}

zeus_status zeus_window_cancel_all(zeus_monitor* monitor) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    monitor->node->monitor().CancelAllWindows();
    return zeus::Ok();
  });
}

zeus_status zeus_window_refine(zeus_monitor* monitor, uint64_t id, double timeout_seconds,
                               zeus_measurement** measurement) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckGiven(measurement, "measurement"));
    *measurement = nullptr;
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    if (!std::isfinite(timeout_seconds) || timeout_seconds < 0)
      return zeus::Error{zeus::ErrorCode::kInvalidArgument,
                         "timeout_seconds is negative or no number"};
    ZEUS_TRY(auto result,
             monitor->node->monitor().Refine(zeus::WindowId(id), zeus::Seconds(timeout_seconds)));
    *measurement = MakeHandle(std::move(result)).release();
    return zeus::Ok();
  });
}

zeus_status zeus_measurement_total_get(const zeus_measurement* measurement,
                                       zeus_measurement_total* total) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckGiven(measurement, "measurement"));
    ZEUS_RETURN_IF_ERROR(CheckStruct(total, "zeus_measurement_total"));
    const zeus::Measurement& result = measurement->measurement;
    const zeus::Measurement::Total sum = result.Sum();
    zeus_measurement_total filled{};
    filled.id = static_cast<uint64_t>(result.id);
    filled.window = result.window.c_str();
    filled.started_unix_seconds = zeus::Seconds(result.started.time_since_epoch()).count();
    filled.time_seconds = result.time.count();
    filled.refined = result.stage == zeus::Measurement::Stage::kRefined ? 1 : 0;
    filled.device_count = result.devices.size();
    filled.energy_joules = sum.energy.value();
    filled.sigma_joules = sum.sigma.value();
    filled.attributed_joules = sum.attributed.value();
    filled.contained = sum.contains.size();
    filled.missing = sum.missing.size();
    WriteStruct(filled, total);
    return zeus::Ok();
  });
}

zeus_status zeus_measurement_device_get(const zeus_measurement* measurement, size_t device,
                                        zeus_device_measurement* result) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckGiven(measurement, "measurement"));
    ZEUS_RETURN_IF_ERROR(CheckStruct(result, "zeus_device_measurement"));
    const auto& devices = measurement->measurement.devices;
    if (device >= devices.size())
      return zeus::Error{
          zeus::ErrorCode::kNotFound,
          fmt::format("there is no device {}: the measurement has {}", device, devices.size())};
    const zeus::DeviceMeasurement& measured = devices[device];
    zeus_device_measurement filled{};
    filled.device = measured.device.c_str();
    filled.in_total = measured.in_total ? 1 : 0;
    if (measured.energy.ok()) {
      Describe(measured.energy.value(), filled);
    } else {
      DescribeAbsence(measured.energy.error(), filled);
    }
    WriteStruct(filled, result);
    return zeus::Ok();
  });
}

void zeus_measurement_free(zeus_measurement* measurement) { delete measurement; }

}  // extern "C"
