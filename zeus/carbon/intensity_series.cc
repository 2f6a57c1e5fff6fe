#include "zeus/carbon/intensity_series.h"

#include <fmt/format.h>

#include "zeus/base/text.h"

namespace zeus {

Result<std::unique_ptr<IntensitySeries>> IntensitySeries::Load(const std::filesystem::path& path) {
  ZEUS_TRY(CsvSeries csv, LoadCsvSeries(path, CsvValues::kNotNegative));
  const std::string name = Printable(path.filename().string());
  if (csv.column != "grams_per_kwh") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the second column is {} and must be \"grams_per_kwh\"", name,
                             Quote(csv.column))};
  }
  return std::make_unique<IntensitySeries>(name, std::move(csv.series));
}

Result<IntensityReading> IntensitySeries::At(WallTime time) {
  auto step = series_.At(time);
  if (!step.ok()) return std::move(step).error().While(name_);
  return IntensityReading{.intensity = CarbonIntensity(step.value().value),
                          .valid = step.value().valid,
                          .source = name_,
                          .estimated = step.value().estimated,
                          .note = step.value().note};
}

}  // namespace zeus
