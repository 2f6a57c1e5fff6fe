#include "zeus/wire/reference.h"

#include <array>
#include <string_view>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/wire/error.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire::reference {
namespace {

// The id is checked against the prefix only here: our own clients give the one or the other.
void ReadIdentity(FieldReader& fields, JobSpec& spec) {
  fields.Require("job_id_prefix", spec.prefix);
  if (spec.prefix.empty()) fields.Fail("job_id_prefix", "must not be empty");
  fields.ReadUnlessNull("job_id", spec.id);
  if (!spec.id.empty() && !spec.id.starts_with(spec.prefix))
    fields.Fail("job_id", "must start with job_id_prefix");
}

void ReadObjective(FieldReader& fields, JobSpec& spec) {
  fields.Read("eta_knob", spec.eta);
  if (!(spec.eta >= 0 && spec.eta <= 1)) fields.Fail("eta_knob", "must be between 0 and 1");
  fields.Read("beta_knob", spec.beta);
  if (spec.beta && !(*spec.beta > 0))
    fields.Fail("beta_knob", "must be greater than 0, or null for no early stop");
  fields.Read("target_metric", spec.target_metric);
  fields.Read("higher_is_better_metric", spec.higher_is_better);
  fields.Read("max_epochs", spec.max_epochs);
  if (spec.max_epochs < 1) fields.Fail("max_epochs", "must be 1 or more");
}

// Errors that our own checks find name our fields.
Error InTheirNames(Error error) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNames = {
      {{"id", "job_id"}, {"prefix", "job_id_prefix"}, {"max_power_watts", "max_power"}}};
  const std::string field = FieldOf(error);
  for (const auto& [ours, theirs] : kNames)
    if (field == ours) error.message.replace(0, ours.size(), theirs);
  return error;
}

void ReadCount(FieldReader& fields, const char* field, int& target) {
  fields.Read(field, target);
  if (target < 0) fields.Fail(field, "must not be negative");
}

void ReadPolicy(FieldReader& fields, JobSpec& spec) {
  spec.policy = "zeus";
  ReadCount(fields, "num_pruning_rounds", spec.pruning_rounds);
  ReadCount(fields, "window_size", spec.window);
  fields.Read("mab_prior_mean", spec.prior_mean);
  fields.Read("mab_prior_precision", spec.prior_precision);
  if (!(spec.prior_precision >= 0)) fields.Fail("mab_prior_precision", "must not be negative");
  ReadCount(fields, "mab_num_explorations", spec.explorations);
  fields.Read("mab_seed", spec.seed);
}

}  // namespace

Json ToJson(const JobSpec& spec) {
  return {{"job_id", spec.id},
          {"job_id_prefix", spec.prefix},
          {"batch_sizes", spec.batch_sizes},
          {"default_batch_size", spec.default_batch_size},
          {"eta_knob", spec.eta},
          {"beta_knob", OrNull(spec.beta)},
          {"target_metric", spec.target_metric},
          {"higher_is_better_metric", spec.higher_is_better},
          {"max_epochs", spec.max_epochs},
          {"num_pruning_rounds", spec.pruning_rounds},
          {"window_size", spec.window},
          {"mab_prior_mean", spec.prior_mean},
          {"mab_prior_precision", spec.prior_precision},
          {"mab_num_explorations", spec.explorations},
          {"mab_seed", OrNull(spec.seed)},
          {"max_power", spec.max_power.value()},
          {"number_of_gpus", spec.number_of_gpus},
          {"gpu_model", spec.gpu_model}};
}

Result<JobSpec> JobSpecFromJson(const Json& json) {
  // Its jobs belong to one GPU model: another one, or another MAXPOWER, is another job.
  JobSpec spec{.translate_gpu_models = false, .lease = kLease};
  FieldReader fields("a job", json);
  ReadIdentity(fields, spec);
  fields.Require("batch_sizes", spec.batch_sizes);
  fields.Require("default_batch_size", spec.default_batch_size);
  ReadObjective(fields, spec);
  ReadPolicy(fields, spec);
  RequireQuantity(fields, "max_power", spec.max_power);
  if (spec.max_power == Watts(0)) fields.Fail("max_power", "must be greater than 0");
  RequirePositive(fields, "number_of_gpus", spec.number_of_gpus);
  fields.Require("gpu_model", spec.gpu_model);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  Result<JobSpec> checked = Checked(std::move(spec));
  if (!checked.ok()) return InTheirNames(std::move(checked).error());
  return checked;
}

Json ToJson(const TrialId& trial) {
  return {{"job_id", trial.job_id},
          {"batch_size", trial.batch_size},
          {"trial_number", trial.trial_number}};
}

Result<TrialId> TrialIdFromJson(const Json& json) {
  TrialId trial;
  FieldReader fields("a trial", json);
  fields.Require("job_id", trial.job_id);
  RequirePositive(fields, "batch_size", trial.batch_size);
  fields.Require("trial_number", trial.trial_number);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return trial;
}

Json ToJson(const TrainingResult& result) {
  return {{"job_id", result.report.job_id},         {"batch_size", result.batch_size},
          {"trial_number", result.report.trial},    {"time", result.report.time.count()},
          {"energy", result.report.energy.value()}, {"metric", result.report.metric},
          {"current_epoch", result.report.epoch}};
}

Result<TrainingResult> TrainingResultFromJson(const Json& json) {
  TrainingResult result;
  FieldReader fields("a training result", json);
  fields.Require("job_id", result.report.job_id);
  fields.Require("trial_number", result.report.trial);
  RequirePositive(fields, "batch_size", result.batch_size);
  RequirePositive(fields, "current_epoch", result.report.epoch);
  RequireQuantity(fields, "time", result.report.time);
  RequireQuantity(fields, "energy", result.report.energy);
  fields.Require("metric", result.report.metric);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return result;
}

Json ToJson(const ReportAnswer& answer) {
  return {
      {"stop_train", answer.stop}, {"converged", answer.converged}, {"message", answer.message}};
}

Json ErrorToJson(const Error& error, std::string_view place) {
  if (error.code != ErrorCode::kInvalidArgument) return {{"detail", error.message}};
  Json location = Json::array({place});
  if (const std::string field = FieldOf(error); !field.empty()) location.push_back(field);
  return {{"detail",
           Json::array(
               {{{"loc", std::move(location)}, {"msg", error.message}, {"type", "value_error"}}})}};
}

}  // namespace zeus::wire::reference
