#include "zeus/carbon/gb_carbon_intensity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

constexpr std::chrono::minutes kHalfHour(30);

// Times are written without seconds there: "2018-01-20T12:00Z".
std::string MinuteText(WallTime time) { return ToText(time).substr(0, 16) + "Z"; }

Result<WallTime> ParseMinute(const std::string& text) {
  constexpr std::size_t kLength = 17;
  if (text.size() == kLength && text.back() == 'Z')
    return ParseWallTime(text.substr(0, kLength - 1) + ":00Z");
  return ParseWallTime(text);
}

// One half-hour. Either number may be null.
struct Entry {
  WallTime from;
  WallTime until;
  std::optional<double> forecast;
  std::optional<double> actual;
};

std::optional<double> Number(const Json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return IsIntensity(value) ? std::optional(value) : std::nullopt;
}

Result<Entry> ReadEntry(const Json& json) {
  ZEUS_TRY(const std::string from, GetField<std::string>(json, "from"));
  ZEUS_TRY(const std::string to, GetField<std::string>(json, "to"));
  ZEUS_TRY(const Json intensity, GetField<Json>(json, "intensity"));
  if (!intensity.is_object())
    return Error{ErrorCode::kInvalidArgument, "\"intensity\" is no object"};
  Entry entry{};
  ZEUS_TRY(entry.from, ParseMinute(from));
  ZEUS_TRY(entry.until, ParseMinute(to));
  entry.forecast = Number(intensity, "forecast");
  entry.actual = Number(intensity, "actual");
  return entry;
}

Result<std::vector<Entry>> ReadEntries(const std::string& body) {
  ZEUS_TRY(const Json json, ParseJson(body));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not an object"};
  ZEUS_TRY(const Json data, GetField<Json>(json, "data"));
  std::vector<Entry> entries;
  for (const Json& item : data) {
    if (const auto entry = ReadEntry(item); entry.ok()) entries.push_back(entry.value());
  }
  if (entries.empty()) return Error{ErrorCode::kInvalidArgument, "no values"};
  return entries;
}

class GbService final : public GridService {
 public:
  explicit GbService(std::unique_ptr<http::Client> client) : client_(std::move(client)) {}

  std::string title() const override { return "carbonintensity.org.uk"; }
  std::string place() const override { return "GB"; }
  Seconds step() const override { return kHalfHour; }
  void Cancel() override { client_->Cancel(); }

  Answer<Rows> Past(WallTime now) override {
    const auto entries = Ask(fmt::format("/intensity/{}/pt24h", MinuteText(now)));
    if (const auto* failure = std::get_if<Failure>(&entries)) return *failure;
    Rows rows;
    double squares = 0;
    int compared = 0;
    for (const Entry& entry : std::get<std::vector<Entry>>(entries)) {
      const auto value = entry.actual ? entry.actual : entry.forecast;
      if (!value) continue;
      rows.push_back({.time = entry.from, .value = *value, .estimated = !entry.actual});
      if (!entry.actual || !entry.forecast || *entry.actual <= 0) continue;
      squares += std::pow(*entry.forecast / *entry.actual - 1, 2);
      ++compared;
    }
    constexpr int kEnough = 12;  // Six hours.
    if (compared >= kEnough) relative_error_ = std::sqrt(squares / compared);
    if (rows.empty()) return Failure{"an answer without sense: no values", kGridRetry};
    return rows;
  }

  Answer<ForecastRows> Future(WallTime now, double relative_error) override {
    const auto entries = Ask(fmt::format("/intensity/{}/fw48h", MinuteText(now)));
    if (const auto* failure = std::get_if<Failure>(&entries)) return *failure;
    // The last day's forecasts were made shortly before; those of tomorrow are no better.
    const double error = std::max(relative_error_.value_or(relative_error), relative_error);
    ForecastRows forecast;
    for (const Entry& entry : std::get<std::vector<Entry>>(entries)) {
      if (!entry.forecast) continue;
      forecast.steps.push_back(
          {.from = entry.from, .value = *entry.forecast, .sigma = error * *entry.forecast});
      forecast.until = std::max(forecast.until, entry.until);
    }
    if (forecast.steps.empty()) return Failure{"an answer without sense: no values", kGridRetry};
    return forecast;
  }

 private:
  Answer<std::vector<Entry>> Ask(const std::string& path) {
    const auto body =
        BodyOf(client_->Send({.path = path, .headers = {{"Accept", "application/json"}}}), "GB");
    if (const auto* failure = std::get_if<Failure>(&body)) return *failure;
    auto entries = ReadEntries(std::get<std::string>(body));
    if (!entries.ok())
      return Failure{"an answer without sense: " + entries.error().message, kGridRetry};
    return std::move(entries).value();
  }

  const std::unique_ptr<http::Client> client_;
  std::optional<double> relative_error_;  // The error of the last day's forecasts.
};

}  // namespace

Result<std::unique_ptr<LiveIntensity>> GbCarbonIntensity::Create(
    Clock& clock, const GbCarbonIntensityOptions& options,
    std::unique_ptr<IntensitySource> fallback) {
  ZEUS_TRY(auto client, CreateGridClient(options.base_url, options.timeout));
  return std::make_unique<LiveIntensity>(clock, std::make_unique<GbService>(std::move(client)),
                                         options.live, std::move(fallback));
}

}  // namespace zeus
