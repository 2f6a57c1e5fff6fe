#include "zeus/carbon/live_intensity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

using std::chrono::hours;

constexpr int kFormat = 1;
constexpr std::size_t kCacheLimit = std::size_t{4} * 1024 * 1024;
constexpr hours kStaleReach(6);  // Older values are worse than a yearly mean.
constexpr std::chrono::days kKept(10);
// A forecast from the future by more than this shows that clocks differ.
constexpr Seconds kClockTolerance = std::chrono::minutes(5);

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

Result<WallTime> ReadTime(const Json& json, const char* field) {
  ZEUS_TRY(const std::string text, GetField<std::string>(json, field));
  return ParseWallTime(text);
}

Result<GridService::ForecastRows> ReadCachedForecast(const Json& json) {
  GridService::ForecastRows forecast;
  ZEUS_TRY(forecast.made_at, ReadTime(json, "made_at"));
  ZEUS_TRY(forecast.until, ReadTime(json, "until"));
  ZEUS_TRY(const Json values, GetField<Json>(json, "values"));
  for (const Json& value : values) {
    Signal::Step step{};
    ZEUS_TRY(step.from, ReadTime(value, "time"));
    ZEUS_TRY(step.value, GetField<double>(value, "grams_per_kwh"));
    ZEUS_TRY(step.sigma, GetField<double>(value, "sigma_grams_per_kwh"));
    forecast.steps.push_back(step);
  }
  return forecast;
}

Result<IntensityCache::Contents> ReadContents(const std::string& text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not an object"};
  ZEUS_TRY(const int format, GetField<int>(json, "format"));
  if (format != kFormat) return Error{ErrorCode::kInvalidArgument, "written by another version"};
  IntensityCache::Contents contents{};
  ZEUS_TRY(contents.fetched_at, ReadTime(json, "fetched_at"));
  ZEUS_TRY(const Json values, GetField<Json>(json, "values"));
  for (const Json& value : values) {
    ZEUS_TRY(const StepSeries::Row row, ReadCachedRow(value));
    contents.rows.push_back(row);
  }
  if (const auto forecast = json.find("forecast"); forecast != json.end()) {
    ZEUS_TRY(contents.forecast, ReadCachedForecast(*forecast));
  }
  return contents;
}

// Zones and coordinates become file names: "US-CAL-CISO", "52.5_13.4".
std::string FileName(const std::string& service, const std::string& place) {
  std::string name;
  for (const char c : service + "-" + place) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.';
    name += plain ? c : (c == ' ' ? '-' : '_');
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

IntensityCache::IntensityCache(const std::filesystem::path& directory, const std::string& service,
                               const std::string& place)
    : path_(directory / FileName(service, place)) {}

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
  Json json = {
      {"format", kFormat}, {"fetched_at", ToText(contents.fetched_at)}, {"values", values}};
  if (contents.forecast) {
    Json steps = Json::array();
    for (const Signal::Step& step : contents.forecast->steps) {
      steps.push_back({{"time", ToText(step.from)},
                       {"grams_per_kwh", step.value},
                       {"sigma_grams_per_kwh", step.sigma}});
    }
    json["forecast"] = {{"made_at", ToText(contents.forecast->made_at)},
                        {"until", ToText(contents.forecast->until)},
                        {"values", std::move(steps)}};
  }
  std::error_code failure;
  if (std::filesystem::create_directories(path_.parent_path(), failure))
    std::filesystem::permissions(path_.parent_path(), std::filesystem::perms::owner_all, failure);
  if (failure) return FileError(path_.parent_path(), failure.value());
  return ReplaceFile(path_, JsonText(json) + "\n", Readers::kOwnerOnly);
}

LiveIntensity::LiveIntensity(Clock& clock, std::unique_ptr<GridService> service,
                             LiveOptions options, std::unique_ptr<IntensitySource> fallback)
    : clock_(clock),
      options_(std::move(options)),
      service_(std::move(service)),
      title_(service_->title()),
      place_(service_->place()),
      fallback_(std::move(fallback)),
      cache_(options_.cache_directory
                 ? std::optional(IntensityCache(*options_.cache_directory, title_, place_))
                 : std::nullopt),
      series_({}, {.hold = std::chrono::duration_cast<std::chrono::microseconds>(service_->step()),
                   .reach = kStaleReach}) {
  LoadCache();
}

LiveIntensity::~LiveIntensity() { service_->Cancel(); }

void LiveIntensity::LoadCache() {
  if (!cache_) return;
  auto contents = cache_->Load();
  if (!contents.ok()) {
    log::Debug("carbon cache: {}", contents.error().message);
    return;
  }
  series_.Add(contents.value().rows);
  fetched_at_ = contents.value().fetched_at;
  forecast_ = std::move(contents.value().forecast);
}

void LiveIntensity::Start() {
  {
    const std::lock_guard lock(mutex_);
    first_wait_is_over_ = false;
  }
  ticker_ = std::make_unique<Ticker>("zeus-carbon", [this] { return Step(); });
}

// The time for which the present values need no refresh; a time stamp from the future is ignored.
std::optional<Seconds> LiveIntensity::FreshFor() const {
  const std::lock_guard lock(mutex_);
  const WallTime now = clock_.WallNow();
  if (stale_ || !fetched_at_ || *fetched_at_ > now) return std::nullopt;
  const Seconds left = kGridRefresh - Seconds(now - *fetched_at_);
  return left > Seconds(0) ? std::optional(left) : std::nullopt;
}

TimePoint LiveIntensity::Step() {
  const std::optional<Seconds> fresh = FreshFor();
  Seconds pause = fresh ? *fresh : AskForPast();
  if (options_.with_forecast) {
    if (!next_forecast_ || clock_.Now() >= *next_forecast_)
      next_forecast_ = clock_.Now() + AskForFuture();
    pause = std::min(pause, Seconds(*next_forecast_ - clock_.Now()));
  }
  {
    const std::lock_guard lock(mutex_);
    first_wait_is_over_ = true;
    stale_ = false;
    ++steps_;
  }
  arrived_.notify_all();
  return clock_.Now() + pause;
}

Seconds LiveIntensity::AskForPast() {
  const auto fetched = service_->Past(clock_.WallNow());
  if (const auto* failure = std::get_if<GridService::Failure>(&fetched)) {
    const std::lock_guard lock(mutex_);
    trouble_ = failure->reason;
    return failure->pause;
  }
  Keep(std::get<GridService::Rows>(fetched));
  return kGridRefresh;
}

Seconds LiveIntensity::AskForFuture() {
  const WallTime now = clock_.WallNow();
  auto fetched = service_->Future(now, options_.forecast_error);
  if (const auto* failure = std::get_if<GridService::Failure>(&fetched)) {
    const std::lock_guard lock(mutex_);
    forecast_trouble_ = failure->reason;
    return failure->pause;
  }
  auto& rows = std::get<GridService::ForecastRows>(fetched);
  if (rows.made_at == WallTime{}) rows.made_at = now;
  {
    const std::lock_guard lock(mutex_);
    forecast_ = std::move(rows);
    forecast_trouble_.clear();
    if (!fetched_at_) return kGridRefresh;  // A cache without values would look fresh.
  }
  StoreCache();
  return kGridRefresh;
}

void LiveIntensity::Keep(const GridService::Rows& rows) {
  const WallTime now = clock_.WallNow();
  {
    const std::lock_guard lock(mutex_);
    series_.Add(rows);
    series_.DropBefore(now - kKept);
    fetched_at_ = now;
    trouble_.clear();
  }
  StoreCache();
}

void LiveIntensity::StoreCache() {
  if (!cache_) return;
  IntensityCache::Contents contents{};
  {
    const std::lock_guard lock(mutex_);
    contents = {.fetched_at = *fetched_at_, .rows = series_.rows(), .forecast = forecast_};
  }
  if (const Status stored = cache_->Store(contents); !stored.ok())
    log::Debug("carbon cache: {}", stored.error().message);
}

void LiveIntensity::Refresh() {
  if (ticker_ == nullptr) return;
  std::unique_lock lock(mutex_);
  stale_ = true;
  const int steps = steps_;
  ticker_->Wake();
  arrived_.wait_for(lock, options_.first_answer_timeout, [&] { return steps_ > steps; });
}

// A caller that timed out once does not wait again.
void LiveIntensity::WaitForFirstAnswer(std::unique_lock<std::mutex>& lock) {
  if (arrived_.wait_for(lock, options_.first_answer_timeout,
                        [this] { return first_wait_is_over_; }))
    return;
  first_wait_is_over_ = true;
  trouble_ = "no answer yet";
  if (options_.with_forecast) forecast_trouble_ = trouble_;
}

Result<IntensityReading> LiveIntensity::At(WallTime time) {
  std::unique_lock lock(mutex_);
  WaitForFirstAnswer(lock);
  const auto step = series_.At(time);
  const std::string trouble = trouble_;
  lock.unlock();
  if (!step.ok()) return FromFallback(time, trouble.empty() ? step.error().message : trouble);
  IntensityReading reading{.intensity = CarbonIntensity(step.value().value),
                           .valid = step.value().valid,
                           .source = title_ + " " + place_,
                           .estimated = step.value().estimated,
                           .note = {}};
  if (!step.value().note.empty()) reading.note = title_ + ": " + step.value().note;
  if (!trouble.empty())
    reading.note += fmt::format("{}values are from the cache: {}",
                                reading.note.empty() ? title_ + ": " : "; ", trouble);
  return reading;
}

Result<IntensityReading> LiveIntensity::FromFallback(WallTime time, const std::string& reason) {
  if (fallback_ == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: {}; there is no fallback for {}", title_, reason, place_)};
  }
  ZEUS_TRY(IntensityReading reading, fallback_->At(time));
  reading.estimated = true;
  reading.note = fmt::format("{}: {}; {} is used instead", title_, reason, reading.source);
  // The server may be back soon, so this answer holds for this hour at most.
  reading.valid.until = std::min(reading.valid.until, time + hours(1));
  return reading;
}

Result<Forecast> LiveIntensity::Get(WallTime now, WallTime until) {
  std::unique_lock lock(mutex_);
  WaitForFirstAnswer(lock);
  const auto rows = forecast_;
  const std::string trouble = forecast_trouble_;
  lock.unlock();
  if (!rows || rows->until <= now) {
    std::string reason = trouble;
    if (reason.empty())
      reason = rows ? "its forecast ended at " + ToText(rows->until) : "it has no forecast";
    return FromLastDays(now, until, reason);
  }
  ZEUS_TRY(Signal signal, Signal::Create(rows->steps, std::min(rows->until, until)));
  Forecast forecast{.signal = std::move(signal),
                    .made_at = rows->made_at,
                    .source = title_ + " " + place_,
                    .marginal = service_->marginal()};
  if (forecast.signal.left_out() > 0)
    forecast.notes.push_back(fmt::format("{} values of the forecast of {} are no numbers",
                                         forecast.signal.left_out(), title_));
  if (!trouble.empty())
    forecast.notes.push_back(
        fmt::format("{}: {}; its forecast is from {}", title_, trouble, ToText(rows->made_at)));
  if (Seconds(rows->made_at - now) > kClockTolerance)
    forecast.notes.push_back(
        fmt::format("{} made its forecast at {}, and here it is {}: one of the clocks is wrong",
                    title_, ToText(rows->made_at), ToText(now)));
  if (rows->until < until)
    forecast.notes.push_back(
        fmt::format("the forecast of {} ends at {}", title_, ToText(rows->until)));
  return forecast;
}

Result<Forecast> LiveIntensity::FromLastDays(WallTime now, WallTime until,
                                             const std::string& reason) {
  const std::lock_guard lock(mutex_);
  auto mean = MeanOfLastDays(
      [this](WallTime time) -> std::optional<double> {
        const auto step = series_.At(time);
        if (!step.ok() || !step.value().note.empty()) return std::nullopt;
        return step.value().value;
      },
      now, until);
  if (!mean.ok())
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: {}; {}", title_, reason, mean.error().message)};
  Forecast forecast{.signal = std::move(mean).value(),
                    .made_at = now,
                    .source = title_ + " " + place_,
                    .marginal = service_->marginal(),
                    .assumed = true};
  forecast.notes.push_back(fmt::format(
      "{}: {}; the mean of the last days at each hour is assumed instead", title_, reason));
  return forecast;
}

}  // namespace zeus
