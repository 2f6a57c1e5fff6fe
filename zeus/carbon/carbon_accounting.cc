#include "zeus/carbon/carbon_accounting.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/carbon/country_intensity.h"
#include "zeus/carbon/electricity_maps.h"
#include "zeus/carbon/gb_carbon_intensity.h"
#include "zeus/carbon/step_series.h"
#include "zeus/carbon/tariff.h"
#include "zeus/carbon/watt_time.h"
#include "zeus/http/url.h"

namespace zeus {
namespace {

constexpr std::string_view kElectricityMaps = "electricity-maps:";
constexpr std::string_view kWattTime = "watttime:";
constexpr std::string_view kGbCarbonIntensity = "carbonintensity.org.uk";
// Published errors of day-ahead forecasts of intensities are 5 to 15 %.
constexpr double kErrorOfIntensities = 0.1;

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
  if (url.empty()) return Ok();
  ZEUS_TRY(const http::Url parsed, http::ParseUrl(url));
  maps.base_url = parsed.server();
  if (parsed.path.empty()) return Ok();
  maps.api_version = parsed.path.substr(1);
  if (maps.api_version.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") !=
      std::string::npos)
    return InvalidArgument(Quote(url) + " is no address like https://api.electricitymaps.com/v3");
  return Ok();
}

using Live = Result<std::unique_ptr<LiveIntensity>>;

LiveOptions MakeLiveOptions(const CarbonOptions& options) {
  LiveOptions live{.first_answer_timeout = options.timeout, .with_forecast = options.with_forecast};
  live.forecast_error = options.forecast_error.value_or(kErrorOfIntensities);
  return live;
}

std::optional<std::filesystem::path> TokenFile(const CarbonOptions& options) {
  if (options.token_file.empty()) return std::nullopt;
  return options.token_file;
}

Live OpenElectricityMaps(Clock& clock, const CarbonOptions& options) {
  const std::string place = options.carbon.substr(kElectricityMaps.size());
  ElectricityMapsOptions maps{.token = {}, .live = MakeLiveOptions(options)};
  ZEUS_RETURN_IF_ERROR(ReadUrl(options.url, maps));
  maps.coordinates = ParseCoordinates(place);
  if (!maps.coordinates) maps.zone = place;
  ZEUS_TRY(maps.token, FindElectricityMapsToken(TokenFile(options)));
  ZEUS_TRY(auto fallback, ParseFallback(options.fallback, place));
  return ElectricityMaps::Create(clock, std::move(maps), std::move(fallback));
}

Live OpenWattTime(Clock& clock, const CarbonOptions& options) {
  WattTimeOptions watt_time{.region = options.carbon.substr(kWattTime.size()), .user = {}};
  watt_time.live = MakeLiveOptions(options);
  if (!options.url.empty()) watt_time.base_url = options.url;
  ZEUS_TRY(watt_time.user, FindWattTimeUser(TokenFile(options)));
  // A mean of all plants would stand beside marginal numbers, so a fallback is only taken when the
  // user names one.
  std::unique_ptr<IntensitySource> fallback;
  if (!options.fallback.empty()) {
    ZEUS_TRY(fallback, ParseConstantOrCountry(options.fallback));
  }
  return WattTime::Create(clock, std::move(watt_time), std::move(fallback));
}

Live OpenGb(Clock& clock, const CarbonOptions& options) {
  if (!options.token_file.empty())
    return InvalidArgument(fmt::format("{} needs no token: leave out {}carbon-token-file",
                                       kGbCarbonIntensity, options.prefix));
  GbCarbonIntensityOptions gb{.live = MakeLiveOptions(options)};
  if (!options.url.empty()) gb.base_url = options.url;
  ZEUS_TRY(auto fallback, ParseFallback(options.fallback, "GB"));
  return GbCarbonIntensity::Create(clock, gb, std::move(fallback));
}

// Null when the words name no service.
Live OpenService(Clock& clock, const CarbonOptions& options) {
  if (options.carbon.starts_with(kElectricityMaps)) return OpenElectricityMaps(clock, options);
  if (options.carbon.starts_with(kWattTime)) return OpenWattTime(clock, options);
  if (options.carbon == kGbCarbonIntensity) return OpenGb(clock, options);
  return std::unique_ptr<LiveIntensity>();
}

Result<std::unique_ptr<IntensitySource>> OpenIntensity(const CarbonOptions& options) {
  if (!(options.fallback.empty() && options.token_file.empty()))
    return InvalidArgument(
        fmt::format("{0}carbon-fallback and {0}carbon-token-file need {0}carbon "
                    "electricity-maps:ZONE or another service",
                    options.prefix));
  if (options.carbon.empty()) return std::unique_ptr<IntensitySource>();
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

// The option to which a mistake belongs.
std::string NameOf(const CarbonOptions& options, const char* usual) {
  return options.named_by.empty() ? options.prefix + usual : options.named_by;
}

}  // namespace

Result<CarbonAccounting> CarbonAccounting::Open(Clock& clock, const CarbonOptions& options) {
  CarbonAccounting accounting;
  // The price comes first: a mistake in it is found before a thread is started.
  auto price = OpenPrice(options.price);
  if (!price.ok()) return std::move(price).error().While(NameOf(options, "price"));
  auto service = OpenService(clock, options);
  if (!service.ok()) return std::move(service).error().While(NameOf(options, "carbon"));
  accounting.forecast_error_ = options.forecast_error;
  if (service.value() != nullptr) {
    accounting.price_ = std::move(price).value();
    accounting.service_ = service.value().get();
    service.value()->Start();
    accounting.intensity_ = std::move(service).value();
    return accounting;
  }
  auto intensity = OpenIntensity(options);
  if (!intensity.ok()) return std::move(intensity).error().While(NameOf(options, "carbon"));
  accounting.price_ = std::move(price).value();
  accounting.intensity_ = std::move(intensity).value();
  return accounting;
}

Result<Forecast> CarbonAccounting::ForecastFor(ShiftGoal goal, WallTime now, WallTime until) const {
  if (!knows(goal))
    return InvalidArgument(goal == ShiftGoal::kCarbon ? "no source of carbon intensities is named"
                                                      : "no source of prices is named");
  if (goal == ShiftGoal::kPrice)
    return ForecastOf(*price_, now, until, forecast_error_.value_or(0));
  if (service_ != nullptr) return service_->Get(now, until);
  return ForecastOf(*intensity_, now, until, forecast_error_.value_or(kErrorOfIntensities));
}

void CarbonAccounting::Refresh() const {
  if (service_ != nullptr) service_->Refresh();
}

std::string CarbonAccounting::UnitOf(ShiftGoal goal) const {
  return goal == ShiftGoal::kPrice && price_ != nullptr ? price_->currency() : "g";
}

CarbonReport CarbonAccounting::Of(const EnergyUse& use) const {
  CarbonReport report;
  if (intensity_ != nullptr) report.emissions = ComputeEmissions(use, *intensity_);
  if (price_ != nullptr) report.cost = ComputeCost(use, *price_);
  return report;
}

}  // namespace zeus
