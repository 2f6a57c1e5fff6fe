#include "zeus/carbon/intensity_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

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

}  // namespace zeus
