#include <string>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire {
namespace {

constexpr double kJoulesPerKilowattHour = 3.6e6;

std::string Named(const char* amount, const char* what, const char* unit) {
  return std::string(amount) + what + unit;
}

void AddMean(Json& json, const char* amount, const char* unit, const MeanAmount& mean, bool known) {
  json[Named(amount, "", unit)] = known ? Json(mean.mean) : Json();
  json[Named(amount, "_sigma", unit)] = OrNull(mean.sigma);
}

Json UsualJson(const UsualAmounts& usual) {
  Json json{{"count", usual.count}};
  const bool known = usual.count > 0;
  AddMean(json, "energy", "_joules", usual.energy, known);
  AddMean(json, "time", "_seconds", usual.time, known);
  AddMean(json, "cost", "_joules", usual.cost, known);
  return json;
}

void AddSaved(Json& json, const char* amount, const char* unit, const SavedAmount& saved) {
  json[Named(amount, "", "_percent")] = saved.percent;
  json[Named(amount, "_sigma", "_percent")] = saved.percent_sigma;
  json[Named(amount, "", unit)] = saved.total;
  json[Named(amount, "_sigma", unit)] = saved.total_sigma;
}

Json SavedJson(const JobSavings& savings) {
  const std::optional<JobSavings::Saved>& saved = savings.saved;
  if (!saved) return {};
  Json json = Json::object();
  AddSaved(json, "energy", "_joules", saved->energy);
  json["energy_kwh"] = saved->energy.total / kJoulesPerKilowattHour;
  json["energy_sigma_kwh"] = saved->energy.total_sigma / kJoulesPerKilowattHour;
  AddSaved(json, "time", "_seconds", saved->time);
  AddSaved(json, "cost", "_joules", saved->cost);
  if (savings.saved_carbon) AddTo(json, *savings.saved_carbon);
  return json;
}

Result<UsualAmounts> UsualFromJson(const Json& json) {
  UsualAmounts usual;
  FieldReader fields("what a training takes", json);
  fields.Require("count", usual.count);
  fields.ReadUnlessNull("energy_joules", usual.energy.mean);
  fields.Read("energy_sigma_joules", usual.energy.sigma);
  fields.ReadUnlessNull("time_seconds", usual.time.mean);
  fields.Read("time_sigma_seconds", usual.time.sigma);
  fields.ReadUnlessNull("cost_joules", usual.cost.mean);
  fields.Read("cost_sigma_joules", usual.cost.sigma);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return usual;
}

void ReadSaved(FieldReader& fields, const char* amount, const char* unit, SavedAmount& saved) {
  fields.Require(Named(amount, "", "_percent").c_str(), saved.percent);
  fields.Require(Named(amount, "_sigma", "_percent").c_str(), saved.percent_sigma);
  fields.Require(Named(amount, "", unit).c_str(), saved.total);
  fields.Require(Named(amount, "_sigma", unit).c_str(), saved.total_sigma);
}

Result<JobSavings::Saved> SavedFromJson(const Json& json) {
  JobSavings::Saved saved;
  FieldReader fields("what was saved", json);
  ReadSaved(fields, "energy", "_joules", saved.energy);
  ReadSaved(fields, "time", "_seconds", saved.time);
  ReadSaved(fields, "cost", "_joules", saved.cost);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return saved;
}

}  // namespace

Json ToJson(const JobSavings& savings) {
  return {{"job_id", savings.job_id},
          {"gpu_model", savings.gpu_model},
          {"baseline_job", savings.baseline_job},
          {"default_batch_size", savings.default_batch_size},
          {"baseline", UsualJson(savings.baseline)},
          {"zeus", UsualJson(savings.zeus)},
          {"runs", savings.runs},
          {"shared_runs", savings.shared},
          {"saved", SavedJson(savings)},
          {"unknown_because",
           savings.unknown_because.empty() ? Json() : Json(savings.unknown_because)}};
}

Result<JobSavings> JobSavingsFromJson(const Json& json) {
  JobSavings savings;
  FieldReader fields("savings", json);
  fields.Require("job_id", savings.job_id);
  fields.Require("gpu_model", savings.gpu_model);
  fields.Require("baseline_job", savings.baseline_job);
  fields.Require("default_batch_size", savings.default_batch_size);
  fields.Require("runs", savings.runs);
  fields.Require("shared_runs", savings.shared);
  fields.ReadUnlessNull("unknown_because", savings.unknown_because);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  ZEUS_TRY(savings.baseline, UsualFromJson(json.value("baseline", Json())));
  ZEUS_TRY(savings.zeus, UsualFromJson(json.value("zeus", Json())));
  if (const Json saved = json.value("saved", Json()); !saved.is_null()) {
    ZEUS_TRY(savings.saved, SavedFromJson(saved));
    ZEUS_TRY(CarbonReport carbon, CarbonReportFromJson(saved));
    if (carbon.emissions || carbon.cost) savings.saved_carbon = std::move(carbon);
  }
  return savings;
}

}  // namespace zeus::wire
