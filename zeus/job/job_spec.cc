#include "zeus/job/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/identifier.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::size_t kMostBatchSizes = 64;  // The time of a decision grows with its cube.
constexpr int kLargestCount = 1'000'000'000;
constexpr Watts kLargestPower = Watts(1e12);
constexpr std::size_t kMostLabels = 64;
constexpr std::size_t kLongestLabel = 1000;
constexpr Seconds kLongestTime = std::chrono::hours(24 * 365 * 10);

bool HasZeroByte(std::string_view text) { return text.find('\0') != std::string_view::npos; }

Status CheckIdentity(const JobSpec& spec) {
  if (spec.id.empty() && spec.prefix.empty())
    return FieldError("id", "a job needs an id, or a prefix to make one up from");
  ZEUS_RETURN_IF_ERROR(CheckScopedIdentifier("id", spec.id));
  ZEUS_RETURN_IF_ERROR(CheckScopedIdentifier("prefix", spec.prefix));
  if (!spec.id.empty() && !spec.id.starts_with(spec.prefix))
    return FieldError("id", fmt::format("{} does not begin with the prefix {}", Quote(spec.id),
                                        Quote(spec.prefix)));
  return Ok();
}

Status CheckBatchSizes(const JobSpec& spec) {
  if (spec.batch_sizes.empty()) return FieldError("batch_sizes", "at least one is needed");
  if (spec.batch_sizes.size() > kMostBatchSizes)
    return FieldError("batch_sizes", fmt::format("at most {} can be compared", kMostBatchSizes));
  if (spec.batch_sizes.front() < 1) return FieldError("batch_sizes", "each must be 1 or more");
  if (spec.batch_sizes.back() > kLargestCount)
    return FieldError("batch_sizes", fmt::format("each must be at most {}", kLargestCount));
  if (!std::binary_search(spec.batch_sizes.begin(), spec.batch_sizes.end(),
                          spec.default_batch_size))
    return FieldError("default_batch_size",
                      fmt::format("{} is not one of batch_sizes ({})", spec.default_batch_size,
                                  fmt::join(spec.batch_sizes, ", ")));
  return Ok();
}

Status CheckObjective(const JobSpec& spec) {
  if (!(spec.eta >= 0.0 && spec.eta <= 1.0)) return FieldError("eta", "must be between 0 and 1");
  if (spec.beta && !(*spec.beta > 0.0 && std::isfinite(*spec.beta)))
    return FieldError("beta", "must be greater than 0, or null for no early stop");
  if (!std::isfinite(spec.target_metric))
    return FieldError("target_metric", "must be a finite number");
  if (spec.max_epochs < 1 || spec.max_epochs > kLargestCount)
    return FieldError("max_epochs", fmt::format("must be between 1 and {}", kLargestCount));
  if (!(spec.max_power > Watts(0.0)))
    return FieldError("max_power_watts",
                      "must be greater than 0: the power limits of all GPUs of a run");
  if (spec.max_power > kLargestPower)
    return FieldError("max_power_watts",
                      fmt::format("must be at most {:g}", kLargestPower.value()));
  return Ok();
}

Status CheckPolicy(const JobSpec& spec) {
  const auto names = PolicyNames();
  if (std::find(names.begin(), names.end(), spec.policy) == names.end())
    return FieldError(
        "policy", fmt::format("{} is not one of {}", Quote(spec.policy), fmt::join(names, ", ")));
  for (const auto& [field, count] : {std::pair{"pruning_rounds", spec.pruning_rounds},
                                     {"window", spec.window},
                                     {"explorations", spec.explorations}}) {
    if (count < 0 || count > kLargestCount)
      return FieldError(field, fmt::format("must be between 0 and {}", kLargestCount));
  }
  if (!std::isfinite(spec.prior_mean)) return FieldError("prior_mean", "must be a finite number");
  if (!(spec.prior_precision >= 0.0) || !std::isfinite(spec.prior_precision))
    return FieldError("prior_precision", "must be 0 or more");
  return Ok();
}

Status CheckLabels(const JobSpec& spec) {
  if (spec.labels.size() > kMostLabels)
    return FieldError("labels", fmt::format("at most {} are kept", kMostLabels));
  for (const auto& [key, value] : spec.labels) {
    if (key.empty()) return FieldError("labels", "a label needs a name");
    if (key.find(':') != std::string::npos)
      return FieldError(
          "labels",
          fmt::format("{} has a colon in its name, which ends it in searches", Quote(key)));
    for (const std::string& text : {key, value}) {
      if (HasZeroByte(text)) return FieldError("labels", Quote(key) + " has a zero byte in it");
      if (text.size() > kLongestLabel)
        return FieldError("labels",
                          fmt::format("{} is longer than {} bytes", Quote(key), kLongestLabel));
    }
  }
  return Ok();
}

Status CheckSurroundings(const JobSpec& spec) {
  if (spec.number_of_gpus < 1 || spec.number_of_gpus > kLargestCount)
    return FieldError("number_of_gpus", "must be 1 or more");
  if (spec.gpu_model.empty())
    return FieldError("gpu_model", "must say on which GPU model the job runs");
  if (spec.gpu_model.size() > kLongestLabel) return FieldError("gpu_model", "is too long");
  if (HasControlCharacter(spec.gpu_model))
    return FieldError("gpu_model", "must be one line of text without control characters");
  if (spec.deadline && !(*spec.deadline > Seconds(0) && *spec.deadline <= kLongestTime))
    return FieldError("deadline_seconds", "must be greater than 0 and at most ten years");
  if (!(spec.lease > Seconds(0) && spec.lease <= kLongestTime))
    return FieldError("lease_seconds", "must be greater than 0 and at most ten years");
  return CheckLabels(spec);
}

}  // namespace

Result<JobSpec> Checked(JobSpec spec) {
  std::sort(spec.batch_sizes.begin(), spec.batch_sizes.end());
  spec.batch_sizes.erase(std::unique(spec.batch_sizes.begin(), spec.batch_sizes.end()),
                         spec.batch_sizes.end());
  ZEUS_RETURN_IF_ERROR(CheckIdentity(spec));
  ZEUS_RETURN_IF_ERROR(CheckBatchSizes(spec));
  ZEUS_RETURN_IF_ERROR(CheckObjective(spec));
  ZEUS_RETURN_IF_ERROR(CheckPolicy(spec));
  ZEUS_RETURN_IF_ERROR(CheckSurroundings(spec));
  return spec;
}

bool HasControlCharacter(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F'; });
}

bool ReachesTarget(const JobSpec& spec, double metric) {
  return spec.higher_is_better ? metric >= spec.target_metric : metric <= spec.target_metric;
}

Joules ComputeZeusCost(double eta, Watts max_power, Joules energy, Seconds time) {
  return eta * energy + (1.0 - eta) * (max_power * time);
}

PolicySpec MakePolicySpec(const JobSpec& spec, std::uint64_t seed) {
  return {
      .name = spec.policy,
      .batch_sizes = spec.batch_sizes,
      .default_batch_size = spec.default_batch_size,
      .max_epochs = spec.max_epochs,
      .beta = spec.beta,
      .pruning_rounds = spec.pruning_rounds,
      .window = spec.window,
      .prior_mean = spec.prior_mean,
      .prior_precision = spec.prior_precision,
      .explorations = spec.explorations,
      .seed = seed,
  };
}

// --- JSON ---

namespace {

std::optional<double> CountSeconds(std::optional<Seconds> time) {
  if (!time) return std::nullopt;
  return time->count();
}

}  // namespace

Json ToJson(const JobSpec& spec) {
  Json json = {
      {"id", spec.id},
      {"prefix", spec.prefix},
      {"batch_sizes", spec.batch_sizes},
      {"default_batch_size", spec.default_batch_size},
      {"eta", spec.eta},
      {"beta", nullptr},
      {"target_metric", spec.target_metric},
      {"higher_is_better", spec.higher_is_better},
      {"max_epochs", spec.max_epochs},
      {"policy", spec.policy},
      {"pruning_rounds", spec.pruning_rounds},
      {"window", spec.window},
      {"prior_mean", spec.prior_mean},
      {"prior_precision", spec.prior_precision},
      {"explorations", spec.explorations},
      {"seed", nullptr},
      {"max_power_watts", spec.max_power.value()},
      {"number_of_gpus", spec.number_of_gpus},
      {"gpu_model", spec.gpu_model},
      {"translate_gpu_models", spec.translate_gpu_models},
      {"deadline_seconds", nullptr},
      {"lease_seconds", spec.lease.count()},
      {"labels", Json::object()},
  };
  if (spec.beta) json["beta"] = *spec.beta;
  if (spec.seed) json["seed"] = *spec.seed;
  if (spec.deadline) json["deadline_seconds"] = spec.deadline->count();
  for (const auto& [key, value] : spec.labels) json["labels"][key] = value;
  return json;
}

Result<JobSpec> JobSpecFromJson(const Json& json) {
  JobSpec spec;
  double max_power = spec.max_power.value();
  double lease = spec.lease.count();
  std::optional<double> deadline = CountSeconds(spec.deadline);
  FieldReader reader("a job", json);
  reader.Read("id", spec.id);
  reader.Read("prefix", spec.prefix);
  reader.Read("batch_sizes", spec.batch_sizes);
  reader.Read("default_batch_size", spec.default_batch_size);
  reader.Read("eta", spec.eta);
  reader.Read("beta", spec.beta);
  reader.Read("target_metric", spec.target_metric);
  reader.Read("higher_is_better", spec.higher_is_better);
  reader.Read("max_epochs", spec.max_epochs);
  reader.Read("policy", spec.policy);
  reader.Read("pruning_rounds", spec.pruning_rounds);
  reader.Read("window", spec.window);
  reader.Read("prior_mean", spec.prior_mean);
  reader.Read("prior_precision", spec.prior_precision);
  reader.Read("explorations", spec.explorations);
  reader.Read("seed", spec.seed);
  reader.Read("max_power_watts", max_power);
  reader.Read("number_of_gpus", spec.number_of_gpus);
  reader.Read("gpu_model", spec.gpu_model);
  reader.Read("translate_gpu_models", spec.translate_gpu_models);
  reader.Read("deadline_seconds", deadline);
  reader.Read("lease_seconds", lease);
  reader.Read("labels", spec.labels);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  spec.max_power = Watts(max_power);
  spec.lease = Seconds(lease);
  if (deadline) spec.deadline = Seconds(*deadline);
  return Checked(std::move(spec));
}

}  // namespace zeus
