#include "zeus/device/soc/soc_discovery.h"

#include <string>

#include "zeus/base/file.h"
#include "zeus/device/soc/grace.h"
#include "zeus/device/soc/intel_gpu.h"
#include "zeus/device/soc/measured_rail.h"

namespace zeus {
namespace {

bool IsJetson(const Surroundings& surroundings) {
  // The device tree ends its strings with a zero byte, which ReadLine() would refuse.
  const auto model = ReadSmallFile(surroundings.sysfs / "firmware/devicetree/base/model");
  return model.ok() && model.value().find("Jetson") != std::string::npos;
}

}  // namespace

Result<Findings> DiscoverSoc(const Surroundings& surroundings) {
  Findings findings;
  soc::FindIna3221Rails(surroundings.sysfs, findings);
  if (findings.rails.empty() && findings.absent.empty() && IsJetson(surroundings)) {
    findings.absent.push_back(
        {.what = "board rails (INA3221)",
         .reason = (surroundings.sysfs / "bus/i2c/drivers").string() + " has no INA3221 monitor",
         .fix = "sudo modprobe ina3221"});
  }
  soc::FindGrace(surroundings, findings);
  soc::FindIntelGpus(surroundings, findings);
  return findings;
}

}  // namespace zeus
