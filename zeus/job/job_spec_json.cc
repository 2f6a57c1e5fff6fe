#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/job/job_spec.h"

namespace zeus {
namespace {

std::optional<double> Count(std::optional<Seconds> time) {
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
  std::optional<double> deadline = Count(spec.deadline);
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
