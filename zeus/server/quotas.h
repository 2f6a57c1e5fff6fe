#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::server {

// How much a name space holds.
struct Usage {
  std::int64_t jobs = 0;
  std::int64_t trials = 0;  // Trials of these jobs, those that have ended included.
  std::int64_t plans = 0;
};

// How much it may hold; nullopt: as much as it likes.
struct Quota {
  std::optional<std::int64_t> jobs{};
  std::optional<std::int64_t> trials{};
  std::optional<std::int64_t> plans{};
};

// The limits of name spaces. Exact within one server; several servers on one database may together
// go beyond a quota by as many as they add at the same moment. Thread-safe.
class Quotas {
 public:
  using Count = std::function<Result<Usage>(const std::string& name_space)>;

  explicit Quotas(Count count) : count_(std::move(count)) {}

  // "team:jobs=10,trials=1000,plans=5": that of a name space; "*" is for those that have none of
  // their own, and ":jobs=10" for the one without a name. Before anything is asked.
  Status Add(std::string_view text);

  // Those that have a quota of their own.
  std::set<std::string> name_spaces() const;

  // Held while something is added that a quota limits. Empty when nothing is limited there.
  using Guard = std::unique_lock<std::mutex>;
  // kPermissionDenied, in a sentence, when one more is too many.
  Result<Guard> BeforeJob(const std::string& name_space);
  Result<Guard> BeforeTrial(const std::string& name_space);
  // Nothing is held, since making a plan can take long: plans that are submitted at the same moment
  // may go beyond the quota.
  Status CheckPlan(const std::string& name_space);

 private:
  using Limit = std::optional<std::int64_t> Quota::*;
  using Held = std::int64_t Usage::*;
  Result<Guard> Before(const std::string& name_space, Limit limit, Held held,
                       std::string_view things);

  const Count count_;
  std::map<std::string, Quota, std::less<>> quotas_{};
  std::mutex mutex_;
};

}  // namespace zeus::server
