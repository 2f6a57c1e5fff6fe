#include "zeus/server/quotas.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/text.h"

namespace zeus::server {
namespace {

constexpr std::string_view kEveryOther = "*";

Error NoQuota(std::string_view text) {
  return InvalidArgument(
      fmt::format("{} is no quota: write NAMESPACE:jobs=10,trials=1000,plans=5", Quote(text)));
}

Result<std::int64_t> Number(std::string_view text) {
  ZEUS_TRY(const std::uint64_t number, ParseUnsigned(text));
  if (number > std::uint64_t{1} << 60) return InvalidArgument("too large");
  return static_cast<std::int64_t>(number);
}

}  // namespace

Status Quotas::Add(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return NoQuota(text);
  const std::string_view name = text.substr(0, colon);
  if (name != kEveryOther) ZEUS_RETURN_IF_ERROR(CheckIdentifier("--quota", name));
  Quota quota;
  for (std::string_view rest = text.substr(colon + 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const std::string_view what = part.substr(0, equals);
    const auto number = equals == std::string_view::npos ? Result<std::int64_t>(NoQuota(text))
                                                         : Number(part.substr(equals + 1));
    if (!number.ok()) return NoQuota(text);
    if (what == "jobs")
      quota.jobs = number.value();
    else if (what == "trials")
      quota.trials = number.value();
    else if (what == "plans")
      quota.plans = number.value();
    else
      return NoQuota(text);
  }
  quotas_.insert_or_assign(std::string(name), quota);
  return Ok();
}

std::set<std::string> Quotas::name_spaces() const {
  std::set<std::string> names;
  for (const auto& [name, quota] : quotas_)
    if (name != kEveryOther) names.insert(name);
  return names;
}

Result<Quotas::Guard> Quotas::Before(const std::string& name_space, Limit limit, Held held,
                                     std::string_view things) {
  auto quota = quotas_.find(name_space);
  if (quota == quotas_.end()) quota = quotas_.find(kEveryOther);
  if (quota == quotas_.end() || !(quota->second.*limit)) return Guard();
  Guard guard(mutex_);
  ZEUS_TRY(const Usage usage, count_(name_space));
  const std::int64_t most = *(quota->second.*limit);
  if (usage.*held < most) return guard;
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("quota: {} may have {} {} and has {}: delete what is not needed, or ask "
                           "who runs the server for more",
                           name_space.empty() ? std::string("the default name space")
                                              : "the name space " + Quote(name_space),
                           most, things, usage.*held)};
}

Result<Quotas::Guard> Quotas::BeforeJob(const std::string& name_space) {
  return Before(name_space, &Quota::jobs, &Usage::jobs, "jobs");
}

Result<Quotas::Guard> Quotas::BeforeTrial(const std::string& name_space) {
  return Before(name_space, &Quota::trials, &Usage::trials, "trials");
}

Status Quotas::CheckPlan(const std::string& name_space) {
  ZEUS_TRY(const Guard guard, Before(name_space, &Quota::plans, &Usage::plans, "plans"));
  return Ok();
}

}  // namespace zeus::server
