#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/nvidia_smi/gpu.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::nvidia_smi {

struct MonitorOptions {
  std::string groups = "puc";  // p power, u utilisation, c clocks, m memory, e errors
  Seconds period{1.0};
  std::optional<std::uint64_t> samples;  // For ever without it.
  std::string stamp;                     // "T" time, "D" date, both or none.
};

// dmon: one line per GPU and period.
Status Monitor(const std::vector<Gpu>& gpus, const MonitorOptions& options);

}  // namespace zeus::nvidia_smi
