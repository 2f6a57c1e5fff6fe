#include "zeus/wire/plans.h"

#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire {
namespace {

Json ToJson(const pipeline::FrontierPoint& point) {
  return {{"time_seconds", point.time.count()},
          {"energy_joules", point.energy.value()},
          {"ticks", point.ticks}};
}

Result<pipeline::FrontierPoint> PointFromJson(const Json& json) {
  pipeline::FrontierPoint point;
  FieldReader fields("a point of a frontier", json);
  RequireQuantity(fields, "time_seconds", point.time);
  RequireQuantity(fields, "energy_joules", point.energy);
  fields.Require("ticks", point.ticks);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return point;
}

}  // namespace

Json ToJson(const CurrentPlan& plan) {
  return {{"id", plan.id},
          {"version", plan.version},
          {"pace_seconds", plan.pace ? Json(plan.pace->count()) : Json()},
          {"baseline_time_seconds", plan.baseline_time.count()},
          {"baseline_energy_joules", plan.baseline_energy.value()},
          {"plan", pipeline::ToJson(plan.plan)}};
}

Result<CurrentPlan> CurrentPlanFromJson(const Json& json) {
  CurrentPlan current;
  Json plan;
  FieldReader fields("a current plan", json);
  fields.Require("id", current.id);
  fields.Require("version", current.version);
  ReadQuantity(fields, "pace_seconds", current.pace);
  RequireQuantity(fields, "baseline_time_seconds", current.baseline_time);
  RequireQuantity(fields, "baseline_energy_joules", current.baseline_energy);
  fields.Require("plan", plan);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  ZEUS_TRY(current.plan, pipeline::PlanFromJson(plan));
  return current;
}

Json ToJson(const PlanFrontier& frontier) {
  Json points = Json::array();
  for (const pipeline::FrontierPoint& point : frontier.points) points.push_back(ToJson(point));
  return {{"fastest_time_seconds", frontier.fastest_time.count()},
          {"baseline_time_seconds", frontier.baseline_time.count()},
          {"baseline_energy_joules", frontier.baseline_energy.value()},
          {"points", std::move(points)}};
}

Result<PlanFrontier> PlanFrontierFromJson(const Json& json) {
  PlanFrontier frontier;
  Json points;
  FieldReader fields("a frontier", json);
  RequireQuantity(fields, "fastest_time_seconds", frontier.fastest_time);
  RequireQuantity(fields, "baseline_time_seconds", frontier.baseline_time);
  RequireQuantity(fields, "baseline_energy_joules", frontier.baseline_energy);
  fields.Require("points", points);
  if (!points.is_array()) fields.Fail("points", "must be a list");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  for (const Json& point : points) {
    ZEUS_TRY(frontier.points.emplace_back(), PointFromJson(point));
  }
  return frontier;
}

Result<std::vector<std::string>> PlanIdsFromJson(const Json& json) {
  std::vector<std::string> ids;
  FieldReader fields("a list of plans", json);
  fields.Require("plans", ids);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return ids;
}

Json PaceToJson(std::optional<Seconds> pace) {
  return {{"pace_seconds", pace ? Json(pace->count()) : Json()}};
}

Result<PaceReport> PaceFromJson(const Json& json) {
  PaceReport report;
  std::optional<double> pace;
  FieldReader fields("a report of a pace", json);
  fields.Require("pace_seconds", pace);
  if (pace && !(*pace > 0))
    fields.Fail("pace_seconds", "must be greater than 0, or null when nobody is slow any more");
  fields.Read("rank", report.rank);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  if (pace) report.pace = Seconds(*pace);
  return report;
}

}  // namespace zeus::wire
