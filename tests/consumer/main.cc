// A program of another project: it uses only what is installed.
#include <fmt/format.h>

#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/device/sim/gpu_model.h"

int main() {
  using namespace zeus::literals;
  const auto model = zeus::sim::FindGpuModel("V100");
  if (!model.ok()) return 1;
  const zeus::Joules hour = model.value()->default_limit * std::chrono::hours(1);
  fmt::print("{}: at most {} J an hour\n", zeus::VendorName(zeus::Vendor::kNvidia), hour.value());
  return hour == 900000_J ? 0 : 1;
}
