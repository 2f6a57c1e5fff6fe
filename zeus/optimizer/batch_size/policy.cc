#include "zeus/optimizer/batch_size/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/batch_size/default_policy.h"
#include "zeus/optimizer/batch_size/knowledge_gradient_policy.h"
#include "zeus/optimizer/batch_size/policy_state.h"
#include "zeus/optimizer/batch_size/zeus_policy.h"

namespace zeus {
namespace {

using PolicyPointer = std::unique_ptr<BatchSizePolicy>;

struct PolicyKind {
  std::string_view name;
  PolicyPointer (*make)(const PolicySpec& spec);
  Result<PolicyPointer> (*restore)(const PolicySpec& spec, const Json& state);
};

template <class Policy>
PolicyKind Kind(std::string_view name) {
  return {.name = name,
          .make = [](const PolicySpec& spec) -> PolicyPointer {
            return std::make_unique<Policy>(spec);
          },
          .restore = [](const PolicySpec& spec, const Json& state) -> Result<PolicyPointer> {
            ZEUS_TRY(Policy policy, Policy::Restore(spec, state));
            return PolicyPointer(std::make_unique<Policy>(std::move(policy)));
          }};
}

const std::vector<PolicyKind>& Kinds() {
  static const std::vector<PolicyKind> kinds = {
      Kind<DefaultPolicy>("default"),
      Kind<ZeusPolicy>("zeus"),
      Kind<KnowledgeGradientPolicy>("knowledge_gradient"),
  };
  return kinds;
}

Result<const PolicyKind*> FindKind(const std::string& name) {
  const auto found = std::ranges::find(Kinds(), name, &PolicyKind::name);
  if (found == Kinds().end())
    return InvalidArgument(fmt::format("policy is {}: it must be one of {}", Quote(name),
                                       fmt::join(PolicyNames(), ", ")));
  return &*found;
}

Status CheckBatchSizes(const PolicySpec& spec) {
  const std::vector<int>& sizes = spec.batch_sizes;
  if (sizes.empty()) return InvalidArgument("batch_sizes is empty: at least one is needed");
  if (sizes.front() < 1 || !std::ranges::is_sorted(sizes, std::less_equal()))
    return InvalidArgument("batch_sizes must be positive and ascending, each once");
  if (!std::ranges::binary_search(sizes, spec.default_batch_size))
    return InvalidArgument(
        fmt::format("default_batch_size is {}: it must be one of batch_sizes ({})",
                    spec.default_batch_size, fmt::join(sizes, ", ")));
  return Ok();
}

Status CheckNumbers(const PolicySpec& spec) {
  if (spec.max_epochs < 1) return InvalidArgument("max_epochs must be at least 1");
  if (spec.beta && !(std::isfinite(*spec.beta) && *spec.beta > 0))
    return InvalidArgument("beta must be a positive number, or absent to never stop early");
  if (spec.pruning_rounds < 0) return InvalidArgument("pruning_rounds must not be negative");
  if (spec.window < 0) return InvalidArgument("window must not be negative; 0 keeps everything");
  if (spec.explorations < 0) return InvalidArgument("explorations must not be negative");
  if (!std::isfinite(spec.prior_mean)) return InvalidArgument("prior_mean must be a finite number");
  if (!(std::isfinite(spec.prior_precision) && spec.prior_precision >= 0))
    return InvalidArgument("prior_precision must be a finite number and not negative");
  return Ok();
}

// Returns the kind of policy that the spec names, if the spec is valid.
Result<const PolicyKind*> Check(const PolicySpec& spec) {
  ZEUS_TRY(const PolicyKind* const kind, FindKind(spec.name));
  ZEUS_RETURN_IF_ERROR(CheckBatchSizes(spec));
  ZEUS_RETURN_IF_ERROR(CheckNumbers(spec));
  return kind;
}

}  // namespace

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyKind& kind : Kinds()) names.emplace_back(kind.name);
  return names;
}

Result<std::unique_ptr<BatchSizePolicy>> MakePolicy(const PolicySpec& spec) {
  ZEUS_TRY(const PolicyKind* const kind, Check(spec));
  return kind->make(spec);
}

Result<std::unique_ptr<BatchSizePolicy>> RestorePolicy(const PolicySpec& spec, const Json& state) {
  ZEUS_TRY(const PolicyKind* const kind, Check(spec));
  ZEUS_TRY(const std::string format, GetField<std::string>(state, "format"));
  if (format != kPolicyStateFormat)
    return Error{ErrorCode::kNotSupported,
                 fmt::format("the saved policy has the format {}, this program reads {}: use the "
                             "version of Zeus that wrote it, or a newer one",
                             Quote(format), kPolicyStateFormat)};
  ZEUS_TRY(const std::string name, GetField<std::string>(state, "policy"));
  if (name != spec.name)
    return Error{ErrorCode::kConflict,
                 fmt::format("the saved state is of policy {}, the job's policy is {}", Quote(name),
                             Quote(spec.name))};
  auto restored = kind->restore(spec, state);
  if (!restored.ok()) return std::move(restored).error().While("restore the batch size policy");
  return restored;
}

}  // namespace zeus
