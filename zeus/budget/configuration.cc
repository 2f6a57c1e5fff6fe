#include "zeus/budget/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/budget/messages.h"

namespace zeus::budget {
namespace {

constexpr std::size_t kMostNodes = 100'000;  // One pattern has no more.
constexpr std::size_t kLongestReason = 1000;

// Expands a pattern, or the rest of one behind a bracket.
Result<std::vector<std::string>> Expand(std::string_view pattern) {
  const auto wrong = [pattern] {
    return InvalidArgument(
        fmt::format("{} is no pattern of nodes: write n1 or n[1-8]", Quote(pattern)));
  };
  const std::size_t open = pattern.find('[');
  if (pattern.empty()) return wrong();
  if (open == std::string_view::npos) return std::vector<std::string>{std::string(pattern)};
  const std::size_t close = pattern.find(']', open);
  if (close == std::string_view::npos) return wrong();
  ZEUS_TRY(const auto tails, close + 1 == pattern.size()
                                 ? Result<std::vector<std::string>>(std::vector<std::string>{""})
                                 : Expand(pattern.substr(close + 1)));
  std::vector<std::string> names;
  for (const std::string_view part : SplitAtCommas(pattern.substr(open + 1, close - open - 1))) {
    const std::size_t dash = part.find('-');
    const std::string_view begin = part.substr(0, dash);
    const std::string_view end = dash == std::string_view::npos ? begin : part.substr(dash + 1);
    const auto first = ParseUnsigned(begin);
    const auto last = ParseUnsigned(end);
    if (!first.ok() || !last.ok() || last.value() < first.value() ||
        (last.value() - first.value() + 1) * tails.size() > kMostNodes)
      return wrong();
    for (std::uint64_t number = first.value(); number <= last.value(); ++number)
      for (const std::string& tail : tails)
        names.push_back(fmt::format("{}{:0{}}{}", pattern.substr(0, open), number,
                                    begin.starts_with('0') ? begin.size() : 1, tail));
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> ExpandNodes(std::string_view pattern) {
  ZEUS_TRY(std::vector<std::string> names, Expand(pattern));
  for (const std::string& name : names) ZEUS_RETURN_IF_ERROR(CheckNodeName(name));
  return names;
}

Json ToJson(const Target& target) {
  return {{"id", target.id},
          {"domain", target.domain.empty() ? Json() : Json(target.domain)},
          {"start", ToText(target.start)},
          {"end", ToText(target.end)},
          {"watts", target.watts ? Json(target.watts->value()) : Json()},
          {"reason", target.reason}};
}

Result<Target> ParseTarget(const Json& json) {
  Target target;
  std::string start;
  std::string end;
  std::optional<double> watts;
  FieldReader reader("a target", json);
  reader.Read("id", target.id);
  reader.ReadUnlessNull("domain", target.domain);
  reader.Require("start", start);
  reader.Require("end", end);
  reader.ReadUnlessNull("watts", watts);
  reader.ReadUnlessNull("reason", target.reason);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  if (target.reason.size() > kLongestReason)
    return FieldError("reason", fmt::format("must have at most {} bytes", kLongestReason));
  const auto from = ParseWallTime(start);
  if (!from.ok()) return FieldError("start", from.error().message);
  const auto to = ParseWallTime(end);
  if (!to.ok()) return FieldError("end", to.error().message);
  if (to.value() <= from.value()) return FieldError("end", "must be after start");
  if (watts && !(std::isfinite(*watts) && *watts >= 0))
    return FieldError("watts", "must be a power, or null for the budget without targets");
  target.start = from.value();
  target.end = to.value();
  if (watts) target.watts = Watts(*watts);
  return target;
}

Watts WattsAt(WallTime moment, Watts watts, const std::string& domain,
              const std::vector<Target>& targets) {
  for (auto target = targets.rbegin(); target != targets.rend(); ++target)
    if (target->domain == domain && moment >= target->start && moment < target->end)
      return target->watts.value_or(watts);
  return watts;
}

std::vector<Target> TargetsFollowing(const FollowSpec& follow, Watts watts,
                                     const std::vector<FollowStep>& steps, WallTime until) {
  const char* name = follow.price ? "price" : "carbon";
  std::vector<Target> targets;
  const auto add = [&](WallTime from, WallTime to, double share) {
    targets.push_back({.id = fmt::format("{}-{}", name, targets.size() + 1),
                       .start = from,
                       .end = to,
                       .watts = share * watts,
                       .reason = fmt::format("{:.0f} % of the budget: it follows {}", 100 * share,
                                             follow.price ? "the price" : "carbon")});
  };
  if (follow.highest < 1) add(WallTime::min(), WallTime::max(), follow.highest);
  const auto value = [](const FollowStep& step) { return step.value; };
  if (steps.empty()) return targets;
  const auto [least, most] = std::ranges::minmax(steps | std::views::transform(value));
  if (!(most > least)) return targets;
  double latest = -1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const WallTime end = i + 1 < steps.size() ? steps[i + 1].from : until;
    const double badness = (steps[i].value - least) / (most - least);
    const double share =
        std::round(100 * (follow.highest - (follow.highest - follow.lowest) * badness)) / 100;
    if (end <= steps[i].from) continue;
    if (share == latest && targets.back().end == steps[i].from)
      targets.back().end = end;
    else
      add(steps[i].from, end, share);
    latest = share;
  }
  return targets;
}

Watts LowestAhead(WallTime now, Watts watts, const std::string& domain,
                  const std::vector<Target>& targets, const Outlook& outlook) {
  Watts lowest = WattsAt(now, watts, domain, targets);
  const auto look = [&](WallTime moment) {
    if (moment <= now) return;
    const Seconds ahead = moment - now;
    const Watts then = WattsAt(moment, watts, domain, targets);
    if (ahead <= outlook.lead)
      lowest = std::min(lowest, then);
    else if (outlook.ramp)
      lowest =
          std::min(lowest, then + Watts(outlook.ramp->value() * (ahead - outlook.lead).count()));
  };
  for (const Target& target : targets) {
    if (target.domain != domain || target.end <= now) continue;
    look(target.start);
    look(target.end);
  }
  return lowest;
}

}  // namespace zeus::budget
