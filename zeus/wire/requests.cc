#include "zeus/wire/requests.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire {
namespace {

constexpr std::size_t kLongestText = 1000;
constexpr Seconds kLongestLease = std::chrono::hours(24 * 30);

// Texts are stored, so their length is bounded.
void ReadText(FieldReader& fields, const char* field, std::string& target) {
  fields.ReadUnlessNull(field, target);
  if (target.size() > kLongestText)
    fields.Fail(field, fmt::format("is longer than {} bytes", kLongestText));
}

}  // namespace

Json ToJson(const TrialRequest& request) {
  Json json = Json::object();
  if (!request.gpu_model.empty()) json["gpu_model"] = request.gpu_model;
  if (request.max_power) json["max_power_watts"] = request.max_power->value();
  if (request.recurrence) json["recurrence"] = *request.recurrence;
  if (!request.request_id.empty()) json["request_id"] = request.request_id;
  if (request.lease) json["lease_seconds"] = request.lease->count();
  if (request.batch_size) json["batch_size"] = *request.batch_size;
  if (request.baseline) json["baseline"] = true;
  return json;
}

Result<TrialRequest> TrialRequestFromJson(std::string job_id, const Json& json) {
  TrialRequest request{.job_id = std::move(job_id)};
  FieldReader fields("a request for a trial", json);
  ReadText(fields, "gpu_model", request.gpu_model);
  ReadQuantity(fields, "max_power_watts", request.max_power);
  if (request.max_power == Watts(0)) fields.Fail("max_power_watts", "must be greater than 0");
  fields.Read("recurrence", request.recurrence);
  if (request.recurrence && *request.recurrence < 0)
    fields.Fail("recurrence", "must not be negative");
  ReadText(fields, "request_id", request.request_id);
  ReadQuantity(fields, "lease_seconds", request.lease);
  if (request.lease && !(*request.lease >= Seconds(1) && *request.lease <= kLongestLease))
    fields.Fail("lease_seconds", "must be between a second and 30 days");
  fields.Read("batch_size", request.batch_size);
  fields.ReadUnlessNull("baseline", request.baseline);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return request;
}

Json ToJson(const TrialReport& report) {
  Json json = {{"epoch", report.epoch},
               {"time_seconds", report.time.count()},
               {"energy_joules", report.energy.value()},
               {"metric", report.metric}};
  if (report.epoch_energy) json["epoch_energy_joules"] = report.epoch_energy->value();
  if (report.epoch_time) json["epoch_time_seconds"] = report.epoch_time->count();
  if (report.power_limit) json["power_limit_watts"] = report.power_limit->value();
  if (report.undisturbed) json["undisturbed"] = true;
  if (report.shared) json["shared"] = true;
  return json;
}

Result<TrialReport> TrialReportFromJson(std::string job_id, std::int64_t trial, const Json& json) {
  TrialReport report{.job_id = std::move(job_id), .trial = trial};
  FieldReader fields("a report", json);
  RequirePositive(fields, "epoch", report.epoch);
  RequireQuantity(fields, "time_seconds", report.time);
  RequireQuantity(fields, "energy_joules", report.energy);
  fields.Require("metric", report.metric);
  ReadQuantity(fields, "epoch_energy_joules", report.epoch_energy);
  ReadQuantity(fields, "epoch_time_seconds", report.epoch_time);
  ReadQuantity(fields, "power_limit_watts", report.power_limit);
  fields.ReadUnlessNull("undisturbed", report.undisturbed);
  fields.ReadUnlessNull("shared", report.shared);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return report;
}

Json ToJson(const TrialEnd& end) { return {{"status", Name(end.status)}, {"reason", end.reason}}; }

Result<TrialEnd> TrialEndFromJson(std::string job_id, std::int64_t trial, const Json& json) {
  TrialEnd end{.job_id = std::move(job_id), .trial = trial};
  FieldReader fields("the end of a trial", json);
  std::string name;
  fields.Require("status", name);
  const auto status = TrialStatusNamed(name);
  if (status == TrialStatus::kStopped || status == TrialStatus::kFailed) {
    end.status = *status;
  } else {
    fields.Fail("status", "must be stopped or failed");
  }
  ReadText(fields, "reason", end.reason);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return end;
}

Json ToJson(const EpochCostReport& report) {
  Json json = {{"gpu_model", report.gpu_model},
               {"batch_size", report.batch_size},
               {"time_seconds", report.time.count()},
               {"energy_joules", report.energy.value()}};
  if (report.max_power) json["max_power_watts"] = report.max_power->value();
  return json;
}

Result<EpochCostReport> EpochCostReportFromJson(std::string job_id, const Json& json) {
  EpochCostReport report{.job_id = std::move(job_id)};
  FieldReader fields("an epoch cost", json);
  ReadText(fields, "gpu_model", report.gpu_model);
  if (report.gpu_model.empty()) fields.Fail("gpu_model", "must say where it was measured");
  RequirePositive(fields, "batch_size", report.batch_size);
  RequireQuantity(fields, "time_seconds", report.time);
  RequireQuantity(fields, "energy_joules", report.energy);
  ReadQuantity(fields, "max_power_watts", report.max_power);
  if (report.max_power == Watts(0)) fields.Fail("max_power_watts", "must be greater than 0");
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return report;
}

}  // namespace zeus::wire
