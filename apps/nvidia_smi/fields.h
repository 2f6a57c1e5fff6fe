#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/nvidia_smi/gpu.h"
#include "zeus/base/result.h"

namespace zeus::nvidia_smi {

// A process that computes on a GPU.
struct ComputeProcess {
  Gpu gpu;
  nvml::ProcessInfo info;
};

std::vector<ComputeProcess> ComputeProcesses(const Gpu& gpu);

// A value that a query can ask for. `read` gives nothing where the GPU does not have it.
template <class Subject>
struct Field {
  std::string_view name;
  std::string_view alias;  // Another name for the same, or empty.
  std::string_view unit;   // "W", "MiB", "%", "MHz", or empty.
  std::optional<std::string> (*read)(const Subject&);
};

using GpuField = Field<Gpu>;
using ProcessField = Field<ComputeProcess>;

std::span<const GpuField> GpuFields();
std::span<const ProcessField> ProcessFields();

// The fields of a list such as "index,power.draw".
Result<std::vector<const GpuField*>> ChooseGpuFields(std::string_view names);
Result<std::vector<const ProcessField*>> ChooseProcessFields(std::string_view names);

// The value of a GPU's field with its unit, or `missing`.
std::string ReadField(const Gpu& gpu, std::string_view name, std::string_view missing);

// The present time in the local zone, as strftime() formats it.
std::string LocalTime(const char* format);

}  // namespace zeus::nvidia_smi
