#include <string>

#include "zeus/base/field_reader.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire {

Json ToJson(const Trial& trial) {
  return {{"job_id", trial.job_id},
          {"number", trial.number},
          {"recurrence", trial.recurrence},
          {"attempt", trial.attempt},
          {"batch_size", trial.batch_size},
          {"role", Name(trial.role)},
          {"gpu_model", trial.gpu_model},
          {"max_power_watts", trial.max_power.value()},
          {"status", Name(trial.status)},
          {"request_id", trial.request_id},
          {"started_at", ToExactText(trial.started_at)},
          {"lease_seconds", trial.lease.count()},
          {"lease_until", ToExactText(trial.lease_until)},
          {"ended_at", trial.ended_at ? Json(ToExactText(*trial.ended_at)) : Json()},
          {"epochs", trial.epochs},
          {"time_seconds", trial.time.count()},
          {"energy_joules", trial.energy.value()},
          {"cost_joules", trial.cost.value()},
          {"metric", OrNull(trial.metric)},
          {"epoch_cost_joules", OrNull(trial.epoch_cost)},
          {"power_limit_watts", OrNull(trial.power_limit)},
          {"reason", trial.reason},
          {"undisturbed", trial.undisturbed},
          {"shared", trial.shared}};
}

namespace {

void ReadPlace(FieldReader& fields, Trial& trial) {
  std::string role;
  std::string status;
  fields.Require("job_id", trial.job_id);
  fields.Require("number", trial.number);
  fields.Require("recurrence", trial.recurrence);
  fields.Require("attempt", trial.attempt);
  fields.Require("batch_size", trial.batch_size);
  fields.Require("gpu_model", trial.gpu_model);
  RequireQuantity(fields, "max_power_watts", trial.max_power);
  fields.Require("role", role);
  fields.Require("status", status);
  const auto known_role = RunRoleNamed(role);
  if (!known_role) fields.Fail("role", "is not known");
  const auto known_status = TrialStatusNamed(status);
  if (!known_status) fields.Fail("status", "is not known");
  trial.role = known_role.value_or(trial.role);
  trial.status = known_status.value_or(trial.status);
}

void ReadLife(FieldReader& fields, Trial& trial) {
  fields.Read("request_id", trial.request_id);
  RequireTime(fields, "started_at", trial.started_at);
  RequireQuantity(fields, "lease_seconds", trial.lease);
  RequireTime(fields, "lease_until", trial.lease_until);
  ReadTime(fields, "ended_at", trial.ended_at);
  fields.Read("reason", trial.reason);
}

void ReadResults(FieldReader& fields, Trial& trial) {
  fields.Require("epochs", trial.epochs);
  RequireQuantity(fields, "time_seconds", trial.time);
  RequireQuantity(fields, "energy_joules", trial.energy);
  RequireQuantity(fields, "cost_joules", trial.cost);
  fields.Read("metric", trial.metric);
  ReadQuantity(fields, "epoch_cost_joules", trial.epoch_cost);
  ReadQuantity(fields, "power_limit_watts", trial.power_limit);
  fields.Read("undisturbed", trial.undisturbed);
  fields.Read("shared", trial.shared);
}

}  // namespace

Result<Trial> TrialFromJson(const Json& json) {
  Trial trial;
  FieldReader fields("a trial", json);
  ReadPlace(fields, trial);
  ReadLife(fields, trial);
  ReadResults(fields, trial);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return trial;
}

}  // namespace zeus::wire
