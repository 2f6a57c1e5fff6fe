#include "apps/zeus/carbon_options.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/carbon/country_intensity.h"
#include "zeus/carbon/electricity_maps.h"
#include "zeus/carbon/intensity_series.h"
#include "zeus/carbon/tariff.h"
#include "zeus/http/url.h"

namespace zeus::cli {
namespace {

constexpr std::string_view kElectricityMaps = "electricity-maps:";

// A number with its unit: "0.31 EUR" is 0.31 and "EUR". nullopt when the text does not begin with
// one.
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

// Parses "52.5,13.4".
std::optional<ElectricityMapsOptions::Coordinates> ParseCoordinates(std::string_view place) {
  const auto comma = place.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto latitude = ParseDouble(Trim(place.substr(0, comma)));
  const auto longitude = ParseDouble(Trim(place.substr(comma + 1)));
  if (!latitude.ok() || !longitude.ok()) return std::nullopt;
  return ElectricityMapsOptions::Coordinates{latitude.value(), longitude.value()};
}

// Returns the fallback that the user named, else the country with which a zone like US-CAL-CISO
// begins, else nothing.
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
  ElectricityMapsOptions maps{.token = {}, .first_answer_timeout = options.patience};
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
        "--carbon-fallback and --carbon-token-file need --carbon electricity-maps:ZONE");
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

void AddCarbonOptions(Verb app, CarbonOptions& options) {
  constexpr const char* kGroup = "Carbon and price";
  app.AddOption("--carbon", options.carbon,
                "Report emissions: 350g/kWh, a country (DE), a file.csv, or electricity-maps:ZONE")
      .TypeName("SOURCE")
      .Group(kGroup);
  app.AddOption("--price", options.price,
                "Report cost: 0.31EUR per kWh, a tariff.toml, or a file.csv")
      .TypeName("SOURCE")
      .Group(kGroup);
  app.AddOption("--carbon-token-file", options.token_file,
                "File with the token of electricity maps; else ELECTRICITY_MAPS_TOKEN")
      .TypeName("FILE")
      .Group(kGroup);
  app.AddOption("--carbon-fallback", options.fallback,
                "When electricity maps is out of reach: 350g/kWh or a country; else the zone's")
      .TypeName("SOURCE")
      .Group(kGroup);
  app.AddOption("--carbon-url", options.url, "Address of electricity maps, with its version")
      .TypeName("URL")
      .ShowDefault()
      .Group(kGroup);
}

Result<CarbonAccounting> CarbonAccounting::Open(Clock& clock, const CarbonOptions& options) {
  CarbonAccounting accounting;
  // The price is opened first, because the intensity starts a thread, which a mistake in the price
  // should not leave behind.
  auto price = OpenPrice(options.price);
  if (!price.ok()) return std::move(price).error().While("--price");
  auto intensity = OpenIntensity(clock, options);
  if (!intensity.ok()) return std::move(intensity).error().While("--carbon");
  accounting.price_ = std::move(price).value();
  accounting.intensity_ = std::move(intensity).value();
  return accounting;
}

CarbonReport CarbonAccounting::Of(const Measurement& measurement) const {
  const Measurement::Total total = measurement.Sum();
  const auto length = std::chrono::duration_cast<std::chrono::microseconds>(measurement.time);
  CarbonReport report =
      Of(EnergyUse{.pieces = {{measurement.started, measurement.started + length, total.energy}},
                   .sigma = total.sigma});
  if (wanted() && !total.missing.empty()) {
    report.notes.push_back(
        fmt::format("without {}, whose energy is not known", fmt::join(total.missing, ", ")));
  }
  return report;
}

CarbonReport CarbonAccounting::Of(const EnergyUse& use) const {
  CarbonReport report;
  if (intensity_ != nullptr) report.emissions = ComputeEmissions(use, *intensity_);
  if (price_ != nullptr) report.cost = ComputeCost(use, *price_);
  return report;
}

}  // namespace zeus::cli
