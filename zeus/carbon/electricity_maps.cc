#include "zeus/carbon/electricity_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

constexpr std::chrono::hours kMapsStep(1);

Result<StepSeries::Row> ReadRow(const Json& json) {
  ZEUS_TRY(const std::string time, GetField<std::string>(json, "datetime"));
  StepSeries::Row row{};
  ZEUS_TRY(row.time, ParseWallTime(time));
  ZEUS_TRY(row.value, GetField<double>(json, "carbonIntensity"));
  ZEUS_TRY(const auto estimated, GetOptionalField<bool>(json, "isEstimated"));
  row.estimated = estimated.value_or(false);
  if (!IsIntensity(row.value))
    return Error{ErrorCode::kInvalidArgument, "\"carbonIntensity\" is out of range"};
  return row;
}

// The list of values below `field`. Hours without a value are null there and left out here.
Result<GridService::Rows> ReadList(const Json& list) {
  GridService::Rows rows;
  for (const Json& entry : list) {
    if (const auto row = ReadRow(entry); row.ok()) rows.push_back(row.value());
  }
  if (rows.empty()) return Error{ErrorCode::kInvalidArgument, "no values"};
  return rows;
}

// The answers of /latest (one value), /history and /forecast (lists).
Result<GridService::Rows> ReadRows(const std::string& body) {
  ZEUS_TRY(const Json json, ParseJson(body));
  for (const char* field : {"history", "forecast"})
    if (const auto list = json.find(field); list != json.end()) return ReadList(*list);
  ZEUS_TRY(const StepSeries::Row row, ReadRow(json));
  return std::vector{row};
}

bool IsZone(std::string_view zone) {
  return !zone.empty() && zone.size() <= 40 && std::ranges::all_of(zone, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::string ZoneText(const ElectricityMapsOptions& options) {
  if (!options.coordinates) return options.zone;
  return fmt::format("{:.4f},{:.4f}", options.coordinates->latitude,
                     options.coordinates->longitude);
}

Status Check(const ElectricityMapsOptions& options) {
  if (const auto& place = options.coordinates) {
    if (!(std::abs(place->latitude) <= 90 && std::abs(place->longitude) <= 180))
      return InvalidArgument("a latitude is from -90 to 90 and a longitude from -180 to 180");
  } else if (!IsZone(options.zone)) {
    return InvalidArgument(Quote(options.zone) + " is no zone like DE or US-CAL-CISO");
  }
  if (!IsOneWord(options.token))
    return InvalidArgument("the token of electricity maps must be one word without blanks");
  return Ok();
}

class ElectricityMapsService final : public GridService {
 public:
  ElectricityMapsService(ElectricityMapsOptions options, std::unique_ptr<http::Client> client)
      : options_(std::move(options)), place_(ZoneText(options_)), client_(std::move(client)) {}

  std::string title() const override { return "electricity maps"; }
  std::string place() const override { return place_; }
  Seconds step() const override { return kMapsStep; }
  void Cancel() override { client_->Cancel(); }

  Answer<Rows> Past(WallTime /*now*/) override {
    Answer<Rows> latest = Ask("latest");
    if (std::holds_alternative<Failure>(latest)) return latest;
    // Not every plan includes the history; the present value alone is worth having.
    const Answer<Rows> history = Ask("history");
    if (const auto* failure = std::get_if<Failure>(&history)) {
      log::Debug("electricity maps: no history: {}", failure->reason);
      return latest;
    }
    Rows rows = std::get<Rows>(history);
    const Rows& present = std::get<Rows>(latest);
    rows.insert(rows.end(), present.begin(), present.end());
    return rows;
  }

  Answer<ForecastRows> Future(WallTime /*now*/, double relative_error) override {
    const Answer<Rows> answer = Ask("forecast");
    if (const auto* failure = std::get_if<Failure>(&answer)) return *failure;
    ForecastRows forecast;
    for (const StepSeries::Row& row : std::get<Rows>(answer)) {
      forecast.steps.push_back(
          {.from = row.time, .value = row.value, .sigma = relative_error * row.value});
      forecast.until = std::max(forecast.until, row.time + kMapsStep);
    }
    return forecast;
  }

 private:
  Answer<Rows> Ask(const std::string& what) {
    const std::string query =
        options_.coordinates ? fmt::format("lat={:.4f}&lon={:.4f}", options_.coordinates->latitude,
                                           options_.coordinates->longitude)
                             : "zone=" + options_.zone;
    const auto body = BodyOf(client_->Send({.path = fmt::format("/{}/carbon-intensity/{}?{}",
                                                                options_.api_version, what, query),
                                            .headers = {{"auth-token", options_.token}}}),
                             place_);
    if (const auto* failure = std::get_if<Failure>(&body)) return *failure;
    auto rows = ReadRows(std::get<std::string>(body));
    if (!rows.ok()) return Failure{"an answer without sense: " + rows.error().message, kGridRetry};
    return std::move(rows).value();
  }

  const ElectricityMapsOptions options_;
  const std::string place_;
  const std::unique_ptr<http::Client> client_;
};

}  // namespace

Result<std::string> FindElectricityMapsToken(const std::optional<std::filesystem::path>& file) {
  if (file) return ReadLine(*file);
  const char* token = std::getenv("ELECTRICITY_MAPS_TOKEN");
  if (token != nullptr && *token != '\0') return std::string(Trim(token));
  return Error{ErrorCode::kInvalidArgument,
               "electricity maps needs a token: set ELECTRICITY_MAPS_TOKEN or give a file with it"};
}

Result<std::unique_ptr<LiveIntensity>> ElectricityMaps::Create(
    Clock& clock, ElectricityMapsOptions options, std::unique_ptr<IntensitySource> fallback) {
  ZEUS_RETURN_IF_ERROR(Check(options));
  ZEUS_TRY(auto client, CreateGridClient(options.base_url, options.timeout));
  LiveOptions live = options.live;
  return std::make_unique<LiveIntensity>(
      clock, std::make_unique<ElectricityMapsService>(std::move(options), std::move(client)),
      std::move(live), std::move(fallback));
}

}  // namespace zeus
