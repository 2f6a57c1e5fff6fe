#include "zeus/replay/contender.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/replay/grid_policy.h"

namespace zeus::replay {
namespace {

using LimitSearchPointer = std::unique_ptr<LimitSearch>;

// A policy of the server, and what of it is different here.
struct Kind {
  std::string_view name;
  std::string_view policy;
  void (*change)(const ReplayJob& job, PolicySpec& spec);
  LimitSearchPointer (*limits)(std::size_t arms);
};

void Unchanged(const ReplayJob&, PolicySpec&) {}
LimitSearchPointer Greatest(std::size_t) { return AtGreatestLimit(); }
LimitSearchPointer Best(std::size_t) { return AtBestLimit(); }

constexpr std::string_view kGrid = "grid";

constexpr std::array kKinds = {
    Kind{"default", "default", Unchanged, Greatest},
    Kind{kGrid, "default", Unchanged, nullptr},  // Has a policy of its own.
    Kind{"zeus", "zeus", Unchanged, JustInTime},
    Kind{"knowledge_gradient", "knowledge_gradient", Unchanged, JustInTime},
    Kind{"oracle", "default",
         [](const ReplayJob& job, PolicySpec& spec) {
           spec.default_batch_size = job.oracle().batch_size;
         },
         Best},
    Kind{"zeus_no_early_stop", "zeus",
         [](const ReplayJob&, PolicySpec& spec) { spec.beta.reset(); }, JustInTime},
    Kind{"zeus_no_pruning", "zeus",
         [](const ReplayJob&, PolicySpec& spec) { spec.pruning_rounds = 0; }, JustInTime},
    Kind{"zeus_no_jit", "zeus", Unchanged, OneLimitPerRun},
};

Result<const Kind*> FindKind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &Kind::name);
  if (found == kKinds.end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("policy is {}: it must be one of {}", Quote(name),
                             fmt::join(ContenderNames(), ", "))};
  return found;
}

}  // namespace

std::vector<std::string> ContenderNames() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Status CheckContender(std::string_view name) {
  ZEUS_RETURN_IF_ERROR(FindKind(name));
  return Ok();
}

Result<Contender> MakeContender(const ReplayJob& job, const ContenderSpec& spec,
                                std::uint64_t seed) {
  ZEUS_TRY(const Kind* const kind, FindKind(spec.name));
  PolicySpec policy_spec = job.Spec(kind->policy, seed);
  policy_spec.beta = spec.beta;
  policy_spec.window = spec.window;
  kind->change(job, policy_spec);
  ZEUS_TRY(std::unique_ptr<BatchSizePolicy> policy, MakePolicy(policy_spec));
  if (kind->name != kGrid)
    return Contender{.policy = std::move(policy), .limits = kind->limits(job.arms.size())};
  auto grid = std::make_unique<GridPolicy>(job, policy_spec);
  LimitSearchPointer limits = LimitsOf(*grid);
  return Contender{.policy = std::move(grid), .limits = std::move(limits)};
}

}  // namespace zeus::replay
