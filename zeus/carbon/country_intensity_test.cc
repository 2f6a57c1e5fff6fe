#include "zeus/carbon/country_intensity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "zeus/base/text.h"

namespace zeus {
namespace country_intensity_test {

using ::testing::HasSubstr;

TEST(CountryIntensityTest, IsFoundByCodeOrNameInAnyCase) {
  for (const char* text : {"DE", "de", "DEU", "Germany", " germany "}) {
    const auto country = FindCountry(text);
    ASSERT_TRUE(country.ok()) << text;
    EXPECT_EQ(country.value()->alpha2, "DE");
  }
  EXPECT_TRUE(FindCountry("world").ok());
}

TEST(CountryIntensityTest, SaysHowToHelpOneselfWhenUnknown) {
  const auto country = FindCountry("Atlantis");
  EXPECT_EQ(country.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(country.error().message, HasSubstr("\"Atlantis\""));
  EXPECT_THAT(country.error().message, HasSubstr("350g/kWh"));
}

TEST(CountryIntensityTest, TheTableIsPlausibleAndWithoutDoubles) {
  std::set<std::string> names;
  for (const CountryIntensity& country : CountryIntensities()) {
    EXPECT_GE(country.grams_per_kwh, 20) << country.name;
    EXPECT_LE(country.grams_per_kwh, 1000) << country.name;
    EXPECT_EQ(country.grams_per_kwh % 5, 0) << country.name;
    EXPECT_TRUE(country.year == 2023 || country.year == 2024) << country.name;
    const std::set<std::string> own = {LowerCase(country.alpha2), LowerCase(country.alpha3),
                                       LowerCase(country.name)};
    for (const std::string& name : own) EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_GE(CountryIntensities().size(), 100U);
}

TEST(CountryIntensityTest, AnAnswerStatesSourceYearAndDoubt) {
  CountryAverage france(*FindCountry("FR").value());
  const auto reading = france.At(WallTime());
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading.value().source, "mean of France in 2024 (Ember)");
  EXPECT_DOUBLE_EQ(reading.value().sigma / reading.value().intensity, 0.1);
  EXPECT_TRUE(reading.value().estimated);
}

}  // namespace country_intensity_test
}  // namespace zeus
