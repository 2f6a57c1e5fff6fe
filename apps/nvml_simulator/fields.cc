// nvmlDeviceGetFieldValues: many values of one moment in one call.
#include "apps/nvml_simulator/convert.h"
#include "apps/nvml_simulator/export.h"
#include "apps/nvml_simulator/library.h"

namespace zeus::nvml_simulator {
namespace {

Return Put(nvml::FieldValue& field, unsigned value) {
  field.value_type = nvml::kValueUnsigned;
  field.value.as_unsigned_long_long = value;
  return nvml::kSuccess;
}

Return PutPower(nvml::FieldValue& field, const Result<Watts>& power) {
  if (!power.ok()) return ToReturn(power.error());
  return Put(field, ToMilliwatts(power.value()));
}

Return PutEnergy(nvml::FieldValue& field, const sim::GpuCore& core) {
  const auto energy = core.counter_millijoules();
  if (!energy.ok()) return ToReturn(energy.error());
  field.value_type = nvml::kValueUnsignedLongLong;
  field.value.as_unsigned_long_long = energy.value();
  return nvml::kSuccess;
}

// Stores the average power of the GPU or of its memory.
Return PutAverage(nvml::FieldValue& field, const GpuCall& gpu) {
  if (field.scope_id == nvml::kScopeMemory) return PutPower(field, gpu.Power(PowerKind::kMemory));
  return PutPower(field, gpu.Power(PowerKind::kOneSecondAverage));
}

// A simulated GPU has no module around it, and for memory it has only the average.
bool HasScope(const nvml::FieldValue& field) {
  return field.scope_id == nvml::kScopeGpu ||
         (field.scope_id == nvml::kScopeMemory && field.field_id == nvml::kFieldPowerAverage);
}

Return Fill(nvml::FieldValue& field, const GpuCall& gpu) {
  if (!HasScope(field)) return nvml::kNotSupported;
  switch (field.field_id) {
    case nvml::kFieldTotalEnergy:
    case nvml::kFieldEnergy:
      return PutEnergy(field, gpu.core);
    case nvml::kFieldPowerAverage:
      return PutAverage(field, gpu);
    case nvml::kFieldPowerInstant:
      return PutPower(field, gpu.Power(PowerKind::kInstant));
    case nvml::kFieldPowerMinLimit:
      return PutPower(field, gpu.core.power_limit().range.min);
    case nvml::kFieldPowerMaxLimit:
      return PutPower(field, gpu.core.power_limit().range.max);
    case nvml::kFieldPowerDefaultLimit:
      return PutPower(field, gpu.core.power_limit().default_limit);
    case nvml::kFieldPowerCurrentLimit:
      return PutPower(field, gpu.core.power_limit().enforced);
    case nvml::kFieldPowerRequestedLimit:
      return PutPower(field, gpu.core.power_limit().requested);
    default:
      return nvml::kNotSupported;
  }
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;
using namespace zeus::nvml_simulator;

NVML_FUNCTION nvmlDeviceGetFieldValues(Device device, int count, nvml::FieldValue* fields) {
  return Library::Instance().Read(device, {fields}, [&](const GpuCall& gpu) -> Return {
    if (count <= 0) return nvml::kInvalidArgument;
    const long long now = gpu.Timestamp();
    for (int i = 0; i < count; ++i) {
      nvml::FieldValue& field = fields[i];
      field.timestamp = now;
      field.latency_usec = 0;
      field.nvml_return = Fill(field, gpu);
    }
    return nvml::kSuccess;
  });
}
