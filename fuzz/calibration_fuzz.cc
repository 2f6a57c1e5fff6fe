#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/monitor/calibration/meter_csv.h"
#include "zeus/monitor/sensor_calibration.h"

// Reads logs of meters and stored calibrations, which people and other programs write. Input that
// was accepted is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)zeus::calibration::ParseMeterCsv(text, "meter.csv");
  const auto json = zeus::ParseJson(text);
  if (!json.ok()) return 0;
  const auto calibration = zeus::ParseSensorCalibration(json.value());
  if (!calibration.ok()) return 0;
  if (!zeus::ParseSensorCalibration(ToJson(calibration.value())).ok()) __builtin_trap();
  return 0;
}
