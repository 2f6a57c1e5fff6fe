#include "zeus/carbon/electricity_maps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/http/url.h"

namespace zeus {
namespace {

constexpr int kFormat = 1;
constexpr std::size_t kCacheLimit = std::size_t{1024} * 1024;

Result<StepSeries::Row> ReadCachedRow(const Json& json) {
  ZEUS_TRY(const std::string time, GetField<std::string>(json, "time"));
  StepSeries::Row row{};
  ZEUS_TRY(row.time, ParseWallTime(time));
  ZEUS_TRY(row.value, GetField<double>(json, "grams_per_kwh"));
  ZEUS_TRY(row.estimated, GetField<bool>(json, "estimated"));
  if (!std::isfinite(row.value) || row.value < 0)
    return Error{ErrorCode::kInvalidArgument, "grams_per_kwh is out of range"};
  return row;
}

Result<IntensityCache::Contents> ReadContents(const std::string& text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not an object"};
  ZEUS_TRY(const int format, GetField<int>(json, "format"));
  if (format != kFormat) return Error{ErrorCode::kInvalidArgument, "written by another version"};
  IntensityCache::Contents contents{};
  ZEUS_TRY(const std::string fetched, GetField<std::string>(json, "fetched_at"));
  ZEUS_TRY(contents.fetched_at, ParseWallTime(fetched));
  ZEUS_TRY(const Json values, GetField<Json>(json, "values"));
  for (const Json& value : values) {
    ZEUS_TRY(const StepSeries::Row row, ReadCachedRow(value));
    contents.rows.push_back(row);
  }
  return contents;
}

// Zones and coordinates become file names: "US-CAL-CISO", "52.5_13.4".
std::string FileName(const std::string& place) {
  std::string name = "electricity-maps-";
  for (const char c : place) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.';
    name += plain ? c : '_';
  }
  return name + ".json";
}

}  // namespace

std::optional<std::filesystem::path> DefaultCarbonCacheDirectory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  // The specification says to ignore a path that is not absolute.
  if (const auto cache = variable("XDG_CACHE_HOME"); cache.is_absolute())
    return cache / "zeus" / "carbon";
  if (const auto home = variable("HOME"); home.is_absolute())
    return home / ".cache" / "zeus" / "carbon";
  return std::nullopt;
}

IntensityCache::IntensityCache(const std::filesystem::path& directory, const std::string& place)
    : path_(directory / FileName(place)) {}

Result<IntensityCache::Contents> IntensityCache::Load() const {
  ZEUS_TRY(const std::string text, ReadSmallFile(path_, kCacheLimit));
  auto contents = ReadContents(text);
  if (!contents.ok()) return std::move(contents).error().While(path_.string());
  return contents;
}

Status IntensityCache::Store(const Contents& contents) const {
  Json values = Json::array();
  for (const StepSeries::Row& row : contents.rows) {
    values.push_back(
        {{"time", ToText(row.time)}, {"grams_per_kwh", row.value}, {"estimated", row.estimated}});
  }
  const Json json = {
      {"format", kFormat}, {"fetched_at", ToText(contents.fetched_at)}, {"values", values}};
  std::error_code failure;
  if (std::filesystem::create_directories(path_.parent_path(), failure))
    std::filesystem::permissions(path_.parent_path(), std::filesystem::perms::owner_all, failure);
  if (failure) return FileError(path_.parent_path(), failure.value());
  return ReplaceFile(path_, JsonText(json) + "\n", Readers::kOwnerOnly);
}

namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr Seconds kRefresh = minutes(15);  // Values change every hour, estimates more often.
constexpr Seconds kRetry = minutes(1);     // After a failure that may pass.
constexpr Seconds kLongPause = hours(1);   // After a failure that only a person can fix.
constexpr hours kHold(1);                  // Values are hourly.
constexpr hours kStaleReach(6);            // Older values are worse than a yearly mean.
constexpr std::chrono::days kKept(10);
constexpr double kMaxIntensity = 10'000;
constexpr std::size_t kLargestAnswer = std::size_t{1} << 20;

Result<StepSeries::Row> ReadRow(const Json& json) {
  ZEUS_TRY(const std::string time, GetField<std::string>(json, "datetime"));
  StepSeries::Row row{};
  ZEUS_TRY(row.time, ParseWallTime(time));
  ZEUS_TRY(row.value, GetField<double>(json, "carbonIntensity"));
  ZEUS_TRY(const auto estimated, GetOptionalField<bool>(json, "isEstimated"));
  row.estimated = estimated.value_or(false);
  if (!(row.value >= 0 && row.value <= kMaxIntensity))
    return Error{ErrorCode::kInvalidArgument, "\"carbonIntensity\" is out of range"};
  return row;
}

// The answers of /latest (one value) and /history (a list). Hours without a value are null there
// and left out here.
Result<std::vector<StepSeries::Row>> ReadRows(const std::string& body) {
  ZEUS_TRY(const Json json, ParseJson(body));
  const auto history = json.find("history");
  if (history == json.end()) {
    ZEUS_TRY(const StepSeries::Row row, ReadRow(json));
    return std::vector{row};
  }
  std::vector<StepSeries::Row> rows;
  for (const Json& entry : *history) {
    if (const auto row = ReadRow(entry); row.ok()) rows.push_back(row.value());
  }
  if (rows.empty()) return Error{ErrorCode::kInvalidArgument, "no values"};
  return rows;
}

bool IsZone(std::string_view zone) {
  return !zone.empty() && zone.size() <= 40 && std::ranges::all_of(zone, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

bool IsToken(std::string_view token) {
  return !token.empty() && std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
}

std::string ZoneText(const ElectricityMapsOptions& options) {
  if (!options.coordinates) return options.zone;
  return fmt::format("{:.4f},{:.4f}", options.coordinates->latitude,
                     options.coordinates->longitude);
}

Status Check(const ElectricityMapsOptions& options) {
  const auto wrong = [](std::string message) -> Status {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  if (const auto& place = options.coordinates) {
    if (!(std::abs(place->latitude) <= 90 && std::abs(place->longitude) <= 180))
      return wrong("a latitude is from -90 to 90 and a longitude from -180 to 180");
  } else if (!IsZone(options.zone)) {
    return wrong(Quote(options.zone) + " is no zone like DE or US-CAL-CISO");
  }
  if (!IsToken(options.token))
    return wrong("the token of electricity maps must be one word without blanks");
  return Ok();
}

}  // namespace

Result<std::string> FindElectricityMapsToken(const std::optional<std::filesystem::path>& file) {
  if (file) return ReadLine(*file);
  const char* token = std::getenv("ELECTRICITY_MAPS_TOKEN");
  if (token != nullptr && *token != '\0') return std::string(Trim(token));
  return Error{ErrorCode::kInvalidArgument,
               "electricity maps needs a token: set ELECTRICITY_MAPS_TOKEN or give a file with it"};
}

Result<std::unique_ptr<http::Client>> CreateGridClient(const std::string& base_url,
                                                       Seconds timeout) {
  ZEUS_TRY(const http::Url url, http::ParseUrl(base_url));
  if (url.scheme == http::Url::Scheme::kUnix || !url.path.empty())
    return InvalidArgument(Quote(base_url) + " is no address like https://api.example.org");
  if (url.scheme == http::Url::Scheme::kHttp && !http::IsLoopback(url.host))
    return InvalidArgument(Quote(base_url) + " would send the token in the clear: use https");
  return http::Client::Create({.url = base_url,
                               .connect_timeout = timeout,
                               .answer_timeout = timeout,
                               .largest_body = kLargestAnswer});
}

Result<std::unique_ptr<ElectricityMaps>> ElectricityMaps::Create(
    Clock& clock, ElectricityMapsOptions options, std::unique_ptr<IntensitySource> fallback) {
  ZEUS_RETURN_IF_ERROR(Check(options));
  ZEUS_TRY(auto client, CreateGridClient(options.base_url, options.timeout));
  std::unique_ptr<ElectricityMaps> maps(
      new ElectricityMaps(clock, std::move(options), std::move(fallback), std::move(client)));
  maps->LoadCache();
  return maps;
}

ElectricityMaps::ElectricityMaps(Clock& clock, ElectricityMapsOptions options,
                                 std::unique_ptr<IntensitySource> fallback,
                                 std::unique_ptr<http::Client> client)
    : clock_(clock),
      options_(std::move(options)),
      place_(ZoneText(options_)),
      fallback_(std::move(fallback)),
      client_(std::move(client)),
      cache_(options_.cache_directory
                 ? std::optional(IntensityCache(*options_.cache_directory, place_))
                 : std::nullopt),
      series_({}, {.hold = kHold, .reach = kStaleReach}) {}

ElectricityMaps::~ElectricityMaps() { client_->Cancel(); }

void ElectricityMaps::LoadCache() {
  if (!cache_) return;
  const auto contents = cache_->Load();
  if (!contents.ok()) {
    log::Debug("carbon cache: {}", contents.error().message);
    return;
  }
  series_.Add(contents.value().rows);
  fetched_at_ = contents.value().fetched_at;
}

void ElectricityMaps::Start() {
  {
    const std::lock_guard lock(mutex_);
    first_wait_is_over_ = false;
  }
  ticker_ = std::make_unique<Ticker>("zeus-carbon", [this] { return Step(); });
}

// The time for which the present values need no refresh; a time stamp from the future is ignored.
std::optional<Seconds> ElectricityMaps::FreshFor() const {
  const std::lock_guard lock(mutex_);
  const WallTime now = clock_.WallNow();
  if (!fetched_at_ || *fetched_at_ > now) return std::nullopt;
  const Seconds left = kRefresh - Seconds(now - *fetched_at_);
  return left > Seconds(0) ? std::optional(left) : std::nullopt;
}

TimePoint ElectricityMaps::Step() {
  Seconds pause = kRefresh;
  if (const std::optional<Seconds> fresh = FreshFor()) {
    pause = *fresh;
  } else {
    const Fetched fetched = Fetch();
    if (const auto* failure = std::get_if<Failure>(&fetched)) {
      pause = failure->pause;
      const std::lock_guard lock(mutex_);
      trouble_ = failure->reason;
    } else {
      Keep(std::get<Rows>(fetched));
    }
  }
  {
    const std::lock_guard lock(mutex_);
    first_wait_is_over_ = true;
  }
  arrived_.notify_all();
  return clock_.Now() + pause;
}

ElectricityMaps::Fetched ElectricityMaps::Fetch() {
  Fetched latest = Ask("latest");
  if (std::holds_alternative<Failure>(latest)) return latest;
  // Not every plan includes the history; the present value alone is worth having.
  const Fetched history = Ask("history");
  if (const auto* failure = std::get_if<Failure>(&history)) {
    log::Debug("electricity maps: no history: {}", failure->reason);
    return latest;
  }
  Rows rows = std::get<Rows>(history);
  const Rows& present = std::get<Rows>(latest);
  rows.insert(rows.end(), present.begin(), present.end());
  return rows;
}

ElectricityMaps::Fetched ElectricityMaps::Ask(const std::string& what) {
  const std::string query =
      options_.coordinates ? fmt::format("lat={:.4f}&lon={:.4f}", options_.coordinates->latitude,
                                         options_.coordinates->longitude)
                           : "zone=" + options_.zone;
  const auto response = client_->Send(
      {.path = fmt::format("/{}/carbon-intensity/{}?{}", options_.api_version, what, query),
       .headers = {{"auth-token", options_.token}}});
  if (!response.ok()) return Failure{response.error().message, kRetry};
  const int status = response.value().status;
  switch (status) {
    case 200:
      break;
    case 401:
    case 403:
      return Failure{fmt::format("the token was refused (status {}): check it", status),
                     kLongPause};
    case 404:
      return Failure{fmt::format("{} is not known there (status 404)", place_), kLongPause};
    case 429:
      return Failure{
          "too many requests (status 429)",
          std::clamp(response.value().retry_after.value_or(kRefresh), kRetry, kLongPause)};
    default:
      return Failure{fmt::format("the server failed (status {})", status), kRetry};
  }
  const auto rows = ReadRows(response.value().body);
  if (!rows.ok()) return Failure{"an answer without sense: " + rows.error().message, kRetry};
  return rows.value();
}

void ElectricityMaps::Keep(const Rows& rows) {
  const WallTime now = clock_.WallNow();
  IntensityCache::Contents contents{};
  {
    const std::lock_guard lock(mutex_);
    series_.Add(rows);
    series_.DropBefore(now - kKept);
    fetched_at_ = now;
    trouble_.clear();
    contents = {.fetched_at = now, .rows = series_.rows()};
  }
  if (!cache_) return;
  if (const Status stored = cache_->Store(contents); !stored.ok())
    log::Debug("carbon cache: {}", stored.error().message);
}

Result<IntensityReading> ElectricityMaps::At(WallTime time) {
  std::unique_lock lock(mutex_);
  // A caller that timed out once does not wait again.
  if (!arrived_.wait_for(lock, options_.first_answer_timeout,
                         [this] { return first_wait_is_over_; })) {
    first_wait_is_over_ = true;
    trouble_ = "no answer yet";
  }
  const auto step = series_.At(time);
  const std::string trouble = trouble_;
  lock.unlock();
  if (!step.ok()) return FromFallback(time, trouble.empty() ? step.error().message : trouble);
  IntensityReading reading{.intensity = CarbonIntensity(step.value().value),
                           .valid = step.value().valid,
                           .source = "electricity maps " + place_,
                           .estimated = step.value().estimated,
                           .note = {}};
  if (!step.value().note.empty()) reading.note = "electricity maps: " + step.value().note;
  if (!trouble.empty())
    reading.note += fmt::format("{}values are from the cache: {}",
                                reading.note.empty() ? "electricity maps: " : "; ", trouble);
  return reading;
}

Result<IntensityReading> ElectricityMaps::FromFallback(WallTime time, const std::string& reason) {
  if (fallback_ == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("electricity maps: {}; there is no fallback for {}", reason, place_)};
  }
  ZEUS_TRY(IntensityReading reading, fallback_->At(time));
  reading.estimated = true;
  reading.note = fmt::format("electricity maps: {}; {} is used instead", reason, reading.source);
  // The server may be back soon, so this answer holds for this hour at most.
  reading.valid.until = std::min(reading.valid.until, time + hours(1));
  return reading;
}

}  // namespace zeus
