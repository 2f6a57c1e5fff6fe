#include "zeus/carbon/carbon_accounting.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/carbon/country_intensity.h"
#include "zeus/carbon/electricity_maps.h"
#include "zeus/carbon/step_series.h"
#include "zeus/carbon/tariff.h"
#include "zeus/http/url.h"

namespace zeus {
namespace {

constexpr std::string_view kElectricityMaps = "electricity-maps:";

// A number and the unit behind it: "0.31 EUR" is 0.31 and "EUR". nullopt when it begins otherwise.
struct Amount {
  double number;
  std::string_view unit;
};
std::optional<Amount> SplitAmount(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789.-"), text.size());
  const auto number = ParseDouble(text.substr(0, end));
  if (!number.ok() || !std::isfinite(number.value())) return std::nullopt;
  return Amount{.number = number.value(), .unit = Trim(text.substr(end))};
}

bool IsFile(std::string_view text, std::string_view extension) {
  return LowerCase(text).ends_with(extension);
}

Result<std::unique_ptr<IntensitySource>> ParseConstantOrCountry(const std::string& text) {
  if (const auto amount = SplitAmount(text)) {
    const std::string unit = LowerCase(amount->unit);
    const double factor = unit == "kg/kwh" ? 1000 : 1;
    if ((unit != "g/kwh" && unit != "kg/kwh") || amount->number < 0)
      return InvalidArgument(fmt::format("{} is no carbon intensity like 350g/kWh", Quote(text)));
    return std::unique_ptr<IntensitySource>(
        std::make_unique<ConstantIntensity>(CarbonIntensity(amount->number * factor)));
  }
  ZEUS_TRY(const CountryIntensity* country, FindCountry(text));
  return std::unique_ptr<IntensitySource>(std::make_unique<CountryAverage>(*country));
}

// "52.5,13.4"
std::optional<ElectricityMapsOptions::Coordinates> ParseCoordinates(std::string_view place) {
  const auto comma = place.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto latitude = ParseDouble(Trim(place.substr(0, comma)));
  const auto longitude = ParseDouble(Trim(place.substr(comma + 1)));
  if (!latitude.ok() || !longitude.ok()) return std::nullopt;
  return ElectricityMapsOptions::Coordinates{latitude.value(), longitude.value()};
}

// Returns the source that the user named, that of the country with which a zone like US-CAL-CISO
// begins, or null.
Result<std::unique_ptr<IntensitySource>> ParseFallback(const std::string& fallback,
                                                       const std::string& place) {
  if (!fallback.empty()) return ParseConstantOrCountry(fallback);
  const auto country = FindCountry(place.substr(0, place.find('-')));
  if (!country.ok()) return std::unique_ptr<IntensitySource>();
  return std::unique_ptr<IntensitySource>(std::make_unique<CountryAverage>(*country.value()));
}

// Splits "https://host/v3" into an address and a version.
Status ReadUrl(const std::string& url, ElectricityMapsOptions& maps) {
  ZEUS_TRY(const http::Url parsed, http::ParseUrl(url));
  maps.base_url = parsed.server();
  if (parsed.path.empty()) return Ok();
  maps.api_version = parsed.path.substr(1);
  if (maps.api_version.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") !=
      std::string::npos)
    return InvalidArgument(Quote(url) + " is no address like https://api.electricitymaps.com/v3");
  return Ok();
}

Result<std::unique_ptr<IntensitySource>> OpenElectricityMaps(Clock& clock,
                                                             const CarbonOptions& options) {
  const std::string place = options.carbon.substr(kElectricityMaps.size());
  ElectricityMapsOptions maps{.token = {}, .first_answer_timeout = options.timeout};
  ZEUS_RETURN_IF_ERROR(ReadUrl(options.url, maps));
  maps.coordinates = ParseCoordinates(place);
  if (!maps.coordinates) maps.zone = place;
  std::optional<std::filesystem::path> token_file;
  if (!options.token_file.empty()) token_file = options.token_file;
  ZEUS_TRY(maps.token, FindElectricityMapsToken(token_file));
  ZEUS_TRY(auto fallback, ParseFallback(options.fallback, place));
  ZEUS_TRY(auto source, ElectricityMaps::Create(clock, std::move(maps), std::move(fallback)));
  source->Start();
  return std::unique_ptr<IntensitySource>(std::move(source));
}

Result<std::unique_ptr<IntensitySource>> OpenIntensity(Clock& clock, const CarbonOptions& options) {
  const bool live = options.carbon.starts_with(kElectricityMaps);
  if (!live && !(options.fallback.empty() && options.token_file.empty()))
    return InvalidArgument(
        fmt::format("{0}carbon-fallback and {0}carbon-token-file need {0}carbon "
                    "electricity-maps:ZONE",
                    options.prefix));
  if (options.carbon.empty()) return std::unique_ptr<IntensitySource>();
  if (live) return OpenElectricityMaps(clock, options);
  if (IsFile(options.carbon, ".csv")) {
    ZEUS_TRY(auto series, IntensitySeries::Load(options.carbon));
    return std::unique_ptr<IntensitySource>(std::move(series));
  }
  return ParseConstantOrCountry(options.carbon);
}

Result<std::unique_ptr<PriceSource>> OpenPrice(const std::string& price) {
  if (price.empty()) return std::unique_ptr<PriceSource>();
  if (IsFile(price, ".toml")) {
    ZEUS_TRY(auto tariff, Tariff::Load(price));
    return std::unique_ptr<PriceSource>(std::move(tariff));
  }
  if (IsFile(price, ".csv")) {
    ZEUS_TRY(auto series, PriceSeries::Load(price));
    return std::unique_ptr<PriceSource>(std::move(series));
  }
  const auto amount = SplitAmount(price);
  if (!amount)
    return InvalidArgument(Quote(price) +
                           " is no price like 0.31EUR and no file that ends in .toml or .csv");
  std::string_view unit = amount->unit;
  if (LowerCase(unit).ends_with("/kwh")) unit.remove_suffix(4);
  ZEUS_TRY(std::string currency, ParseCurrency(unit));
  return std::unique_ptr<PriceSource>(
      std::make_unique<ConstantPrice>(UnitPrice(amount->number), std::move(currency)));
}

}  // namespace

Result<CarbonAccounting> CarbonAccounting::Open(Clock& clock, const CarbonOptions& options) {
  CarbonAccounting accounting;
  // The price comes first: a mistake in it is found before a thread is started.
  auto price = OpenPrice(options.price);
  if (!price.ok()) return std::move(price).error().While(options.prefix + "price");
  auto intensity = OpenIntensity(clock, options);
  if (!intensity.ok()) return std::move(intensity).error().While(options.prefix + "carbon");
  accounting.price_ = std::move(price).value();
  accounting.intensity_ = std::move(intensity).value();
  return accounting;
}

CarbonReport CarbonAccounting::Of(const EnergyUse& use) const {
  CarbonReport report;
  if (intensity_ != nullptr) report.emissions = ComputeEmissions(use, *intensity_);
  if (price_ != nullptr) report.cost = ComputeCost(use, *price_);
  return report;
}

}  // namespace zeus
