#include "apps/zeus/shift/shift_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "apps/zeus/numbers.h"
#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::cli {
namespace {

constexpr const char* kGroup = "Cleaner or cheaper hours";

// The moment at which the clocks of the zone show this; of two the earlier one.
WallTime FromLocal(std::chrono::local_seconds local, const TimeZone& zone) {
  const WallTime as_utc(local.time_since_epoch());
  WallTime found = as_utc - zone.OffsetAt(as_utc).offset;
  // Near a change of clocks the first guess used the offset of the other side.
  found = as_utc - zone.OffsetAt(found).offset;
  return found;
}

// "08:00" or "08:00:30" of a day.
std::optional<std::chrono::seconds> TimeOfDay(std::string_view text) {
  const auto at_midnight = ParseWallTime(
      fmt::format("1970-01-01T{}{}Z", text, std::ranges::count(text, ':') == 1 ? ":00" : ""));
  if (!at_midnight.ok()) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::seconds>(at_midnight.value().time_since_epoch());
}

}  // namespace

TimeZone LocalTimeZone() {
  const char* name = std::getenv("TZ");
  if (name != nullptr && *name != '\0') {
    if (auto zone = TimeZone::Load(*name == ':' ? name + 1 : name); zone.ok())
      return std::move(zone).value();
  } else if (auto zone = TimeZone::Load("localtime", "/etc"); zone.ok()) {
    return std::move(zone).value();
  }
  return TimeZone::Load("UTC0").value();
}

Result<WallTime> ParseFinishBy(const std::string& text, WallTime now, const TimeZone& zone) {
  const auto wrong = [&text] {
    return InvalidArgument(fmt::format(
        "--finish-by takes a time as in 2026-11-18T08:00, 2026-11-18T08:00+01:00 or 08:00, not {}",
        Quote(text)));
  };
  std::optional<WallTime> found;
  if (const auto exact = ParseWallTime(text); exact.ok()) {
    found = exact.value();
  } else if (const auto time = TimeOfDay(text)) {
    const auto today = std::chrono::floor<std::chrono::days>(zone.ToLocal(now));
    found = FromLocal(today + *time, zone);
    if (*found <= now) found = FromLocal(today + std::chrono::days(1) + *time, zone);
  } else if (text.find('T') != std::string::npos) {
    const bool minutes = std::ranges::count(text, ':') == 1;
    const auto local = ParseWallTime(text + (minutes ? ":00Z" : "Z"));
    if (!local.ok()) return wrong();
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(local.value().time_since_epoch());
    found = FromLocal(std::chrono::local_seconds(seconds), zone);
  }
  if (!found) return wrong();
  if (*found <= now)
    return InvalidArgument(fmt::format("--finish-by {} is {}, which is over: it is {}", text,
                                       ToText(*found), ToText(now)));
  constexpr std::chrono::days kLongest(366);
  if (*found - now > kLongest)
    return InvalidArgument(fmt::format("--finish-by {} is more than a year away", Quote(text)));
  return *found;
}

void AddShiftFlags(Verb verb, ShiftFlags& flags) {
  verb.AddOption("--shift", flags.goal,
                 "Begin when least carbon or money is spent: carbon or price; needs --carbon or "
                 "--price, and --finish-by or --max-wait")
      .Check(OneOf({"carbon", "price"}))
      .Group(kGroup);
  verb.AddOption("--finish-by", flags.finish_by,
                 "When it must be over: 2026-11-18T08:00 (local time, or with an offset) or 08:00")
      .TypeName("TIME")
      .Group(kGroup);
  verb.AddOption("--max-wait", flags.max_wait, "Wait no longer than this for the start: 12h")
      .TypeName("DURATION")
      .Group(kGroup);
  verb.AddOption("--margin", flags.margin, "Kept free before --finish-by")
      .ShowDefault()
      .TypeName("DURATION")
      .Group(kGroup);
  verb.AddOption("--duration", flags.duration,
                 "How long a recurrence takes, instead of what the earlier ones took")
      .TypeName("DURATION")
      .Group(kGroup);
  verb.AddOption("--forecast", flags.forecast,
                 "Source of the forecast, as --carbon and --price take it; these then tell what "
                 "really came")
      .TypeName("SOURCE")
      .Group(kGroup);
  verb.AddOption("--forecast-error", flags.forecast_error,
                 "Standard error of its values in per cent (10 for carbon, 0 for prices)")
      .Check(NumberBetween(0, 1000))
      .Group(kGroup);
}

void AddNoWaitFlag(Verb verb, ShiftFlags& flags) {
  verb.AddFlag("--no-wait", flags.no_wait,
               "Begin now and follow carbon or price with the power limit instead of waiting")
      .Group(kGroup);
}

namespace {

// Without --shift its other options mean nothing.
Status CheckNoShift(const ShiftFlags& flags) {
  if (flags.no_wait) return InvalidArgument("--no-wait belongs to --shift carbon or --shift price");
  for (const auto& [given, name] :
       {std::pair(&flags.finish_by, "--finish-by"), std::pair(&flags.max_wait, "--max-wait"),
        std::pair(&flags.duration, "--duration"), std::pair(&flags.forecast, "--forecast")})
    if (!given->empty())
      return InvalidArgument(fmt::format("{} belongs to --shift carbon or --shift price", name));
  return Ok();
}

// Parses a span of hours, for which "12" would be a guess: seconds are never meant.
Result<Seconds> ParseSpan(const std::string& text, const char* option) {
  if (const auto number = ParseDouble(Trim(text)); number.ok() && number.value() != 0)
    return InvalidArgument(
        fmt::format("{0} {1} has no unit: write {1}h, {1}min or {1}s", option, Trim(text)));
  return ParseDuration(text, option);
}

// Reads when the run may begin and has to end.
Status ReadTimes(const ShiftFlags& flags, WallTime now, StartWish& wish) {
  if (flags.no_wait && !flags.max_wait.empty())
    return InvalidArgument("--no-wait and --max-wait contradict each other: give one of them");
  if (flags.finish_by.empty() && flags.max_wait.empty() && !flags.no_wait)
    return InvalidArgument("--shift needs --finish-by, or --max-wait");
  if (!flags.finish_by.empty()) {
    ZEUS_TRY(wish.finish_by, ParseFinishBy(flags.finish_by, now, LocalTimeZone()));
  }
  if (!flags.max_wait.empty()) {
    ZEUS_TRY(wish.max_wait, ParseSpan(flags.max_wait, "--max-wait"));
  }
  ZEUS_TRY(wish.margin, ParseSpan(flags.margin, "--margin"));
  if (!flags.duration.empty()) {
    ZEUS_TRY(wish.duration, ParseSpan(flags.duration, "--duration"));
  }
  return Ok();
}

}  // namespace

Result<std::optional<ShiftInvocation>> Interpret(const ShiftFlags& flags, CarbonOptions& carbon,
                                                 WallTime now) {
  if (flags.goal.empty()) {
    ZEUS_RETURN_IF_ERROR(CheckNoShift(flags));
    return std::optional<ShiftInvocation>();
  }
  ShiftInvocation shift;
  const bool of_price = flags.goal == "price";
  shift.wish.goal = of_price ? ShiftGoal::kPrice : ShiftGoal::kCarbon;
  ZEUS_RETURN_IF_ERROR(ReadTimes(flags, now, shift.wish));
  std::string& source = of_price ? carbon.price : carbon.carbon;
  if (source.empty() && flags.forecast.empty())
    return InvalidArgument(of_price ? "--shift price needs a source of prices: --price"
                                    : "--shift carbon needs a source of intensities: --carbon");
  carbon.with_forecast = !of_price && flags.forecast.empty();
  if (flags.forecast_error) carbon.forecast_error = *flags.forecast_error / 100;
  shift.forecasts = carbon;
  if (!flags.forecast.empty()) {
    shift.same_source = false;
    shift.forecasts.with_forecast = true;
    shift.forecasts.named_by = "--forecast";
    (of_price ? shift.forecasts.price : shift.forecasts.carbon) = flags.forecast;
    (of_price ? shift.forecasts.carbon : shift.forecasts.price).clear();
    if (of_price) shift.forecasts.token_file = shift.forecasts.fallback = "";
  }
  return std::optional(std::move(shift));
}

}  // namespace zeus::cli
