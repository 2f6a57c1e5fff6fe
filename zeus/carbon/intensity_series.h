#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/step_series.h"

namespace zeus {

// Intensities from a CSV file with the header time,grams_per_kwh.
class IntensitySeries final : public IntensitySource {
 public:
  static Result<std::unique_ptr<IntensitySeries>> Load(const std::filesystem::path& path);

  IntensitySeries(std::string name, StepSeries series)
      : name_(std::move(name)), series_(std::move(series)) {}
  Result<IntensityReading> At(WallTime time) override;

 private:
  const std::string name_;
  const StepSeries series_;
};

}  // namespace zeus
