// Reads files that people and servers write: time zones, tariffs, series, times. Readers must
// accept the text or return an error, and every query on accepted data must work.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeus/base/wall_time_text.h"
#include "zeus/carbon/step_series.h"
#include "zeus/carbon/tariff.h"
#include "zeus/carbon/time_zone.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const zeus::WallTime moment(std::chrono::hours(475'000));
  switch (data[0] % 5) {
    case 0:
      if (const auto zone = zeus::TimeZone::Parse(text); zone.ok()) zone.value().ToLocal(moment);
      break;
    case 1:
      if (const auto zone = zeus::TimeZone::Load(text); zone.ok()) zone.value().ToLocal(moment);
      break;
    case 2:
      if (const auto tariff = zeus::Tariff::Parse(text, "fuzz"); tariff.ok())
        static_cast<void>(tariff.value()->At(moment));
      break;
    case 3:
      if (const auto csv = zeus::ParseCsvSeries(text, "fuzz", zeus::CsvValues::kAny); csv.ok())
        static_cast<void>(csv.value().series.At(moment));
      break;
    default:
      static_cast<void>(zeus::ParseWallTime(text));
      break;
  }
  return 0;
}
