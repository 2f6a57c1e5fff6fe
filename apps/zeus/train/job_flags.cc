#include "apps/zeus/train/job_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kLargestBatch = 1'000'000'000;
constexpr std::uint64_t kMostEpochs = 1'000'000'000;
constexpr double kHighestPower = 1e7;
constexpr double kLargestMetric = 1e300;

Result<std::vector<int>> ParseBatchSizes(const std::string& text) {
  std::vector<int> sizes;
  for (const std::string_view part : SplitAtCommas(text)) {
    const auto size = ParseUnsigned(part);
    if (!size.ok() || size.value() < 1 || size.value() > kLargestBatch)
      return InvalidArgument(
          fmt::format("--batch-sizes takes whole numbers as in 32,64,128, not {}", Quote(text)));
    sizes.push_back(static_cast<int>(size.value()));
  }
  std::ranges::sort(sizes);
  if (std::ranges::adjacent_find(sizes) != sizes.end())
    return InvalidArgument(fmt::format("--batch-sizes {} has a size twice", Quote(text)));
  return sizes;
}

Result<std::optional<double>> ParseBeta(const std::string& text) {
  if (text == "none") return std::optional<double>();
  const auto beta = ParseDouble(text);
  if (!beta.ok() || !(beta.value() >= 1 && beta.value() <= 1e6))
    return InvalidArgument(
        fmt::format("--beta takes a factor of at least 1, or none, not {}", Quote(text)));
  return std::optional(beta.value());
}

Result<std::map<std::string, std::string>> ParseLabels(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return InvalidArgument(
          fmt::format("--label takes a name and a value as in team=vision, not {}", Quote(text)));
    labels[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return labels;
}

void AddGoalFlags(Verb verb, JobFlags& flags) {
  verb.AddOption("--target", flags.target, "The metric at which a run has reached its aim")
      .Check(NumberBetween(-kLargestMetric, kLargestMetric))
      .Required();
  verb.AddFlag("--lower-is-better", flags.lower_is_better, "The metric is a loss or an error");
  verb.AddOption("--eta", flags.eta, "What energy is worth against time: 0 (time) to 1 (energy)")
      .Check(NumberBetween(0, 1))
      .ShowDefault();
  verb.AddOption("--beta", flags.beta,
                 "A run is stopped when it costs so many times the least that reached the "
                 "target; none: never")
      .ShowDefault();
  verb.AddOption("--max-epochs", flags.max_epochs, "A run is stopped after so many epochs")
      .Check(WholeNumberBetween(1, kMostEpochs))
      .ShowDefault();
  verb.AddOption("--deadline", flags.deadline,
                 "A recurrence, all its tries together, is stopped after this long: 90min, 3600s");
}

void AddPolicyFlags(Verb verb, JobFlags& flags) {
  verb.AddOption("--policy", flags.policy,
                 "How batch sizes are chosen: knowledge_gradient, zeus (as in the paper) or "
                 "default (always the default one)")
      .ShowDefault();
  verb.AddOption("--window", flags.window,
                 "Believe only so many of the latest runs, for data that drifts; 0: all")
      .Check(WholeNumberBetween(0, kMostEpochs))
      .ShowDefault();
  verb.AddOption("--seed", flags.seed, "Of the policy's randomness; drawn when it is not given")
      .Check(WholeNumberBetween(0, UINT64_MAX));
  verb.AddOption("--label", flags.labels, "NAME=VALUE to find the job by; may be repeated");
  verb.AddOption("--gpu-model", flags.gpu_model,
                 "Of the GPUs that the command uses; as found when it is not given")
      .Check(NotEmpty());
  verb.AddOption("--max-power", flags.max_power,
                 "Watts that these GPUs may draw together at most; as found when it is not given")
      .Check(NumberBetween(1, kHighestPower));
  verb.AddFlag("--separate-gpu-models", flags.separate_gpu_models,
               "What was learned on one GPU model does not serve the others");
}

}  // namespace

void AddJobFlags(Verb verb, JobFlags& flags) {
  verb.AddOption("--job", flags.id, "Name of the job: its runs learn from each other")
      .Check(NotEmpty())
      .Required();
  verb.AddOption("--batch-sizes", flags.batch_sizes, "What to choose from, as in 32,64,128,256")
      .Check(NotEmpty())
      .Required();
  verb.AddOption("--default", flags.default_batch_size,
                 "The batch size one would use without Zeus; the first run does")
      .Check(WholeNumberBetween(1, kLargestBatch))
      .Required();
  AddGoalFlags(verb, flags);
  AddPolicyFlags(verb, flags);
}

Result<JobSpec> Interpret(const JobFlags& flags) {
  JobSpec spec;
  spec.id = flags.id;
  ZEUS_TRY(spec.batch_sizes, ParseBatchSizes(flags.batch_sizes));
  spec.default_batch_size = flags.default_batch_size;
  if (std::ranges::find(spec.batch_sizes, spec.default_batch_size) == spec.batch_sizes.end())
    return InvalidArgument(fmt::format("--default {} is not among --batch-sizes {}",
                                       spec.default_batch_size, flags.batch_sizes));
  spec.target_metric = flags.target;
  spec.higher_is_better = !flags.lower_is_better;
  spec.eta = flags.eta;
  ZEUS_TRY(spec.beta, ParseBeta(flags.beta));
  spec.max_epochs = flags.max_epochs;
  const std::vector<std::string> policies = PolicyNames();
  if (std::ranges::find(policies, flags.policy) == policies.end())
    return InvalidArgument(
        fmt::format("--policy takes {}, not {}", fmt::join(policies, ", "), Quote(flags.policy)));
  spec.policy = flags.policy;
  spec.window = flags.window;
  spec.seed = flags.seed;
  if (!flags.deadline.empty()) {
    ZEUS_TRY(spec.deadline, ParseDuration(flags.deadline, "--deadline"));
  }
  ZEUS_TRY(spec.labels, ParseLabels(flags.labels));
  spec.gpu_model = flags.gpu_model;
  if (flags.max_power) spec.max_power = Watts(*flags.max_power);
  spec.translate_gpu_models = !flags.separate_gpu_models;
  return spec;
}

}  // namespace zeus::cli
