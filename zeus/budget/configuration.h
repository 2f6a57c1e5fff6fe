#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/budget/grant_book.h"
#include "zeus/optimizer/budget/problem.h"

namespace zeus::budget {

// The name of the domain around all others.
inline constexpr const char* kRootDomain = "site";

// A change of a domain's budget for some time, such as a grid service asks for. Of those that cover
// a moment the latest one in the list holds.
struct Target {
  std::string id{};
  std::string domain{};  // Empty: the root.
  WallTime start{};
  WallTime end{};
  std::optional<Watts> watts{};  // nullopt: the budget as if there were no targets.
  std::string reason{};

  friend bool operator==(const Target&, const Target&) = default;
};

// A part of the power distribution, as the file describes it.
struct DomainSpec {
  std::string name{};
  std::string parent{};  // Empty: the root.
  Watts watts{};
  std::vector<std::string> nodes{};
  Watts node_watts{};  // Committed for a node that has not reported yet.
};

// A budget that is lower while power is dirty or dear.
struct FollowSpec {
  bool price = false;  // Otherwise carbon.
  double lowest = 1;   // Share of the budget at the worst hour of the next day,
  double highest = 1;  // and at the best one.
};

// Carbon intensity or price from a moment on, until the next step.
struct FollowStep {
  WallTime from{};
  double value = 0;
};

// Jobs whose time is worth more or less than that of others.
struct JobClass {
  std::string name{};
  std::string partition{};  // Empty: any.
  std::string job{};        // Beginning of the job's name; empty: any.
  double weight = 1;
  std::optional<double> max_slowdown{};
};

// The content of budget.toml. Immutable.
struct BudgetConfiguration {
  Watts watts{};
  double reserve = 0.02;               // Share of every budget that is never granted.
  Seconds period{5};                   // Between two decisions without a reason.
  Seconds valid{20};                   // Validity of a grant.
  Seconds next_report{2};              // Between two reports of a node.
  std::optional<Watts> ramp{};         // Largest change in a second; nullopt: any.
  std::optional<Watts> fallback{};     // A device falls back to it; nullopt: to its lowest limit.
  Watts start{50};                     // Room for an idle device, so that a job can begin.
  std::optional<FollowSpec> follow{};  // For the root alone.
  // kDrawn: watts that jobs leave unused under their caps are another's, so the sum of the caps may
  // be more than the budget.
  water_filling::Resource mode = water_filling::Resource::kLimits;
  water_filling::Objective objective = water_filling::Objective::kMean;
  double eta = 0.5;
  std::vector<DomainSpec> domains{};  // Parents before children.
  std::vector<JobClass> classes{};    // The first one that matches counts.
  std::vector<Target> schedule{};
};

// kInvalidArgument names the file, the line and the fix; unknown keys are refused.
Result<BudgetConfiguration> ParseBudgetConfiguration(std::string_view toml,
                                                     const std::string& source);
Result<BudgetConfiguration> ReadBudgetConfiguration(const std::filesystem::path& file);

// The names that a pattern such as "n[1-8]" or "rack3-n[01-16]" stands for.
Result<std::vector<std::string>> ExpandNodes(std::string_view pattern);

Json ToJson(const Target& target);
// A body of POST /v1/budget/targets. kInvalidArgument begins with the name of the field.
Result<Target> ParseTarget(const Json& json);

// The budget of a domain at a moment: `watts` unless a target changes it.
Watts WattsAt(WallTime moment, Watts watts, const std::string& domain,
              const std::vector<Target>& targets);

// The budget of each step, in whole per cent of `watts` between the two shares, for steps in the
// order of their time that end at `until`. Beyond them, and where all values are the same, the
// highest share holds.
std::vector<Target> TargetsFollowing(const FollowSpec& follow, Watts watts,
                                     const std::vector<FollowStep>& steps, WallTime until);

// The watts that grants may make up from now on, so that the budget holds at every later moment:
// grants last for `lead`, and with a ramp a lower budget is approached in time.
struct Outlook {
  Seconds lead{};
  std::optional<Watts> ramp{};
};
Watts LowestAhead(WallTime now, Watts watts, const std::string& domain,
                  const std::vector<Target>& targets, const Outlook& outlook);

}  // namespace zeus::budget
