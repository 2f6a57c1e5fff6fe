#include "zeus/carbon/watt_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

constexpr std::chrono::minutes kFiveMinutes(5);
constexpr std::chrono::hours kPast(24);
constexpr double kGramsPerPound = 453.59237;
constexpr const char* kUnits = "lbs_co2_per_mwh";

// Pounds per megawatt-hour to grams per kilowatt-hour.
double ToGrams(double pounds) { return pounds * kGramsPerPound / 1000; }

// RFC 4648, for the header of the login.
std::string Base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = i; j < i + 3; ++j)
      bits = bits << 8U | (j < text.size() ? static_cast<unsigned char>(text[j]) : 0U);
    for (unsigned k = 0; k < 4; ++k)
      out += i + k <= text.size() ? kDigits[bits >> (18U - 6U * k) & 63U] : '=';
  }
  return out;
}

Result<StepSeries::Row> ReadPoint(const Json& json) {
  ZEUS_TRY(const std::string time, GetField<std::string>(json, "point_time"));
  StepSeries::Row row{};
  ZEUS_TRY(row.time, ParseWallTime(time));
  ZEUS_TRY(const double pounds, GetField<double>(json, "value"));
  row.value = ToGrams(pounds);
  if (!IsIntensity(row.value))
    return Error{ErrorCode::kInvalidArgument, "\"value\" is out of range"};
  return row;
}

struct Points {
  GridService::Rows rows{};
  WallTime made_at{};
};

Result<Points> ReadPoints(const std::string& body) {
  ZEUS_TRY(const Json json, ParseJson(body));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not an object"};
  ZEUS_TRY(const Json data, GetField<Json>(json, "data"));
  ZEUS_TRY(const Json meta, GetField<Json>(json, "meta"));
  ZEUS_TRY(const std::string units, GetField<std::string>(meta, "units"));
  if (units != kUnits)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("values in {} instead of {}", Quote(units), kUnits)};
  Points points;
  for (const Json& entry : data) {
    if (const auto row = ReadPoint(entry); row.ok()) points.rows.push_back(row.value());
  }
  if (points.rows.empty()) return Error{ErrorCode::kInvalidArgument, "no values"};
  ZEUS_TRY(const auto made, GetOptionalField<std::string>(meta, "generated_at"));
  if (made) {
    ZEUS_TRY(points.made_at, ParseWallTime(*made));
  }
  return points;
}

bool IsRegion(std::string_view region) {
  return !region.empty() && region.size() <= 60 && std::ranges::all_of(region, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

class WattTimeService final : public GridService {
 public:
  WattTimeService(WattTimeOptions options, std::unique_ptr<http::Client> client)
      : options_(std::move(options)), client_(std::move(client)) {}

  std::string title() const override { return "watttime"; }
  std::string place() const override { return options_.region; }
  bool marginal() const override { return true; }
  Seconds step() const override { return kFiveMinutes; }
  void Cancel() override { client_->Cancel(); }

  Answer<Rows> Past(WallTime now) override {
    Answer<Points> points =
        Ask(fmt::format("/v3/historical?region={}&signal_type=co2_moer&start={}&end={}",
                        options_.region, ToText(now - kPast), ToText(now)));
    if (const auto* failure = std::get_if<Failure>(&points)) return *failure;
    return std::move(std::get<Points>(points).rows);
  }

  Answer<ForecastRows> Future(WallTime /*now*/, double relative_error) override {
    const Answer<Points> answer = Ask(fmt::format(
        "/v3/forecast?region={}&signal_type=co2_moer&horizon_hours=72", options_.region));
    if (const auto* failure = std::get_if<Failure>(&answer)) return *failure;
    const auto& points = std::get<Points>(answer);
    ForecastRows forecast{.made_at = points.made_at};
    for (const StepSeries::Row& row : points.rows) {
      forecast.steps.push_back(
          {.from = row.time, .value = row.value, .sigma = relative_error * row.value});
      forecast.until = std::max(forecast.until, row.time + kFiveMinutes);
    }
    return forecast;
  }

 private:
  // Tokens hold for half an hour: one that was refused is replaced once.
  Answer<Points> Ask(const std::string& path) {
    for (bool fresh = token_.empty();; fresh = true) {
      if (fresh) {
        if (auto failure = LogIn()) return *failure;
      }
      const auto reply =
          client_->Send({.path = path, .headers = {{"Authorization", "Bearer " + token_}}});
      if (reply.ok() && reply.value().status == 401 && !fresh) continue;
      const auto body = BodyOf(reply, options_.region);
      if (const auto* failure = std::get_if<Failure>(&body)) return *failure;
      auto points = ReadPoints(std::get<std::string>(body));
      if (!points.ok())
        return Failure{"an answer without sense: " + points.error().message, kGridRetry};
      return std::move(points).value();
    }
  }

  std::optional<Failure> LogIn() {
    token_.clear();
    const std::string secret = Base64(options_.user.name + ":" + options_.user.password);
    const auto reply =
        client_->Send({.path = "/login", .headers = {{"Authorization", "Basic " + secret}}});
    if (reply.ok() && (reply.value().status == 401 || reply.value().status == 403))
      return Failure{fmt::format("the user or the password was refused (status {}): check them",
                                 reply.value().status),
                     kGridLongPause};
    const auto body = BodyOf(reply, "/login");
    if (const auto* failure = std::get_if<Failure>(&body)) return *failure;
    const auto json = ParseJson(std::get<std::string>(body));
    const auto token = json.ok() && json.value().is_object()
                           ? GetField<std::string>(json.value(), "token")
                           : Result<std::string>(InvalidArgument("no token"));
    if (!token.ok() || !IsOneWord(token.value()))
      return Failure{"an answer without sense: no token", kGridRetry};
    token_ = token.value();
    return std::nullopt;
  }

  const WattTimeOptions options_;
  const std::unique_ptr<http::Client> client_;
  std::string token_;
};

}  // namespace

Result<WattTimeUser> FindWattTimeUser(const std::optional<std::filesystem::path>& file) {
  if (file) {
    ZEUS_TRY(const std::string line, ReadLine(*file));
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0)
      return InvalidArgument(file->string() + " must contain NAME:PASSWORD of watttime");
    return WattTimeUser{line.substr(0, colon), line.substr(colon + 1)};
  }
  const char* name = std::getenv("WATTTIME_USER");
  const char* password = std::getenv("WATTTIME_PASSWORD");
  if (name == nullptr || password == nullptr || *name == '\0')
    return InvalidArgument(
        "watttime needs a user: set WATTTIME_USER and WATTTIME_PASSWORD or give a file with "
        "NAME:PASSWORD");
  return WattTimeUser{name, password};
}

Result<std::unique_ptr<LiveIntensity>> WattTime::Create(Clock& clock, WattTimeOptions options,
                                                        std::unique_ptr<IntensitySource> fallback) {
  if (!IsRegion(options.region))
    return InvalidArgument(Quote(options.region) + " is no region like CAISO_NORTH");
  ZEUS_TRY(auto client, CreateGridClient(options.base_url, options.timeout));
  LiveOptions live = options.live;
  return std::make_unique<LiveIntensity>(
      clock, std::make_unique<WattTimeService>(std::move(options), std::move(client)),
      std::move(live), std::move(fallback));
}

}  // namespace zeus
