#pragma once

#include <span>
#include <string_view>

#include "zeus/carbon/intensity_source.h"

namespace zeus {

// The mean carbon intensity of a country's electricity over one year, life cycle of the power
// plants included. From Ember, "Yearly electricity data" (ember-energy.org, CC BY 4.0), year as
// stated, rounded to 5 g/kWh. Years differ by about a tenth, hours by far more: an answer carries ±
// 10 %, which is right for a year and too small for an hour.
struct CountryIntensity {
  std::string_view alpha2;  // ISO 3166-1; "WORLD" and "EU" stand for themselves.
  std::string_view alpha3;
  std::string_view name;
  int grams_per_kwh;
  int year;
};

std::span<const CountryIntensity> CountryIntensities();

// Finds a country by two-letter code, three-letter code or English name, in any case. The message
// of kNotFound names the alternatives.
Result<const CountryIntensity*> FindCountry(std::string_view text);

class CountryAverage final : public IntensitySource {
 public:
  explicit CountryAverage(const CountryIntensity& country) : country_(country) {}
  Result<IntensityReading> At(WallTime time) override;

 private:
  const CountryIntensity& country_;
};

}  // namespace zeus
