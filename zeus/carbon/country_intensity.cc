#include "zeus/carbon/country_intensity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr auto kCountries = std::to_array<CountryIntensity>({
    {"AL", "ALB", "Albania", 25, 2023},
    {"DZ", "DZA", "Algeria", 635, 2023},
    {"AR", "ARG", "Argentina", 360, 2024},
    {"AM", "ARM", "Armenia", 245, 2024},
    {"AU", "AUS", "Australia", 550, 2024},
    {"AT", "AUT", "Austria", 105, 2024},
    {"AZ", "AZE", "Azerbaijan", 635, 2024},
    {"BH", "BHR", "Bahrain", 900, 2023},
    {"BD", "BGD", "Bangladesh", 695, 2024},
    {"BY", "BLR", "Belarus", 315, 2024},
    {"BE", "BEL", "Belgium", 120, 2024},
    {"BO", "BOL", "Bolivia", 470, 2024},
    {"BA", "BIH", "Bosnia and Herzegovina", 640, 2024},
    {"BW", "BWA", "Botswana", 850, 2023},
    {"BR", "BRA", "Brazil", 105, 2024},
    {"BG", "BGR", "Bulgaria", 265, 2024},
    {"KH", "KHM", "Cambodia", 495, 2024},
    {"CM", "CMR", "Cameroon", 285, 2023},
    {"CA", "CAN", "Canada", 175, 2024},
    {"CL", "CHL", "Chile", 265, 2024},
    {"CN", "CHN", "China", 560, 2024},
    {"CO", "COL", "Colombia", 285, 2024},
    {"CR", "CRI", "Costa Rica", 65, 2024},
    {"HR", "HRV", "Croatia", 175, 2024},
    {"CY", "CYP", "Cyprus", 510, 2024},
    {"CZ", "CZE", "Czechia", 415, 2024},
    {"DK", "DNK", "Denmark", 145, 2024},
    {"DO", "DOM", "Dominican Republic", 565, 2024},
    {"EC", "ECU", "Ecuador", 210, 2024},
    {"EG", "EGY", "Egypt", 570, 2024},
    {"SV", "SLV", "El Salvador", 105, 2024},
    {"EE", "EST", "Estonia", 340, 2024},
    {"ET", "ETH", "Ethiopia", 25, 2023},
    {"FI", "FIN", "Finland", 70, 2024},
    {"FR", "FRA", "France", 45, 2024},
    {"GE", "GEO", "Georgia", 145, 2024},
    {"DE", "DEU", "Germany", 345, 2024},
    {"GH", "GHA", "Ghana", 455, 2023},
    {"GR", "GRC", "Greece", 320, 2024},
    {"GT", "GTM", "Guatemala", 275, 2023},
    {"HN", "HND", "Honduras", 290, 2023},
    {"HK", "HKG", "Hong Kong", 680, 2023},
    {"HU", "HUN", "Hungary", 185, 2024},
    {"IS", "ISL", "Iceland", 30, 2023},
    {"IN", "IND", "India", 710, 2024},
    {"ID", "IDN", "Indonesia", 680, 2023},
    {"IR", "IRN", "Iran", 640, 2024},
    {"IQ", "IRQ", "Iraq", 690, 2023},
    {"IE", "IRL", "Ireland", 280, 2024},
    {"IL", "ISR", "Israel", 565, 2023},
    {"IT", "ITA", "Italy", 290, 2024},
    {"CI", "CIV", "Ivory Coast", 395, 2023},
    {"JP", "JPN", "Japan", 480, 2024},
    {"KZ", "KAZ", "Kazakhstan", 800, 2024},
    {"KE", "KEN", "Kenya", 90, 2024},
    {"KW", "KWT", "Kuwait", 635, 2024},
    {"KG", "KGZ", "Kyrgyzstan", 165, 2024},
    {"LA", "LAO", "Laos", 230, 2023},
    {"LV", "LVA", "Latvia", 135, 2024},
    {"LT", "LTU", "Lithuania", 140, 2024},
    {"LU", "LUX", "Luxembourg", 135, 2024},
    {"MY", "MYS", "Malaysia", 610, 2024},
    {"MT", "MLT", "Malta", 485, 2024},
    {"MX", "MEX", "Mexico", 485, 2024},
    {"MD", "MDA", "Moldova", 630, 2024},
    {"MN", "MNG", "Mongolia", 785, 2024},
    {"ME", "MNE", "Montenegro", 415, 2024},
    {"MA", "MAR", "Morocco", 580, 2024},
    {"MM", "MMR", "Myanmar", 580, 2024},
    {"NL", "NLD", "Netherlands", 255, 2024},
    {"NZ", "NZL", "New Zealand", 120, 2024},
    {"NG", "NGA", "Nigeria", 510, 2024},
    {"MK", "MKD", "North Macedonia", 570, 2024},
    {"NO", "NOR", "Norway", 30, 2024},
    {"OM", "OMN", "Oman", 545, 2024},
    {"PK", "PAK", "Pakistan", 400, 2024},
    {"PA", "PAN", "Panama", 260, 2023},
    {"PY", "PRY", "Paraguay", 25, 2023},
    {"PE", "PER", "Peru", 265, 2024},
    {"PH", "PHL", "Philippines", 615, 2024},
    {"PL", "POL", "Poland", 615, 2024},
    {"PT", "PRT", "Portugal", 110, 2024},
    {"PR", "PRI", "Puerto Rico", 665, 2024},
    {"QA", "QAT", "Qatar", 605, 2024},
    {"RO", "ROU", "Romania", 245, 2024},
    {"RU", "RUS", "Russia", 450, 2024},
    {"SA", "SAU", "Saudi Arabia", 695, 2023},
    {"SN", "SEN", "Senegal", 535, 2023},
    {"RS", "SRB", "Serbia", 675, 2024},
    {"SG", "SGP", "Singapore", 500, 2024},
    {"SK", "SVK", "Slovakia", 95, 2024},
    {"SI", "SVN", "Slovenia", 230, 2024},
    {"ZA", "ZAF", "South Africa", 710, 2024},
    {"KR", "KOR", "South Korea", 415, 2024},
    {"ES", "ESP", "Spain", 145, 2024},
    {"SE", "SWE", "Sweden", 35, 2024},
    {"CH", "CHE", "Switzerland", 35, 2024},
    {"TW", "TWN", "Taiwan", 635, 2024},
    {"TJ", "TJK", "Tajikistan", 115, 2024},
    {"TH", "THA", "Thailand", 555, 2024},
    {"TN", "TUN", "Tunisia", 560, 2024},
    {"TR", "TUR", "Turkey", 470, 2024},
    {"AE", "ARE", "United Arab Emirates", 495, 2023},
    {"GB", "GBR", "United Kingdom", 210, 2024},
    {"US", "USA", "United States", 385, 2024},
    {"UY", "URY", "Uruguay", 95, 2024},
    {"VE", "VEN", "Venezuela", 180, 2023},
    {"VN", "VNM", "Vietnam", 470, 2024},
    {"ZM", "ZMB", "Zambia", 110, 2023},
    {"ZW", "ZWE", "Zimbabwe", 300, 2023},
    {"EU", "EU", "European Union", 215, 2024},
    {"WORLD", "WORLD", "World", 475, 2024},
});

constexpr double kRelativeSigma = 0.1;

}  // namespace

std::span<const CountryIntensity> CountryIntensities() { return kCountries; }

Result<const CountryIntensity*> FindCountry(std::string_view text) {
  const std::string wanted = LowerCase(Trim(text));
  const auto found = std::ranges::find_if(kCountries, [&](const CountryIntensity& country) {
    return wanted == LowerCase(country.alpha2) || wanted == LowerCase(country.alpha3) ||
           wanted == LowerCase(country.name);
  });
  if (found == kCountries.end()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("the table has no country {}: use a code like DE, a number like "
                             "350g/kWh, or WORLD",
                             Quote(text))};
  }
  return &*found;
}

Result<IntensityReading> CountryAverage::At(WallTime) {
  const CarbonIntensity intensity(country_.grams_per_kwh);
  return IntensityReading{
      .intensity = intensity,
      .sigma = intensity * kRelativeSigma,
      .source = fmt::format("mean of {} in {} (Ember)", country_.name, country_.year),
      .estimated = true};
}

}  // namespace zeus
