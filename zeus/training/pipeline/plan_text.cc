#include "zeus/training/pipeline/plan_text.h"

#include <utility>

#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/plan_json.h"

namespace zeus {

std::string ToText(const CurrentPlan& plan) {
  Json json{{"id", plan.id},
            {"version", plan.version},
            {"baseline_time_seconds", plan.baseline_time.count()},
            {"baseline_energy_joules", plan.baseline_energy.value()},
            {"plan", pipeline::ToJson(plan.plan)}};
  if (plan.pace) json["pace_seconds"] = plan.pace->count();
  return json.dump();
}

Result<CurrentPlan> PlanFromText(const std::string& text) {
  CurrentPlan plan;
  ZEUS_TRY(const Json json, ParseJson(text));
  ZEUS_TRY(plan.id, GetField<std::string>(json, "id"));
  ZEUS_TRY(plan.version, GetField<std::int64_t>(json, "version"));
  ZEUS_TRY(const double time, GetField<double>(json, "baseline_time_seconds"));
  ZEUS_TRY(const double energy, GetField<double>(json, "baseline_energy_joules"));
  ZEUS_TRY(const std::optional<double> pace, GetOptionalField<double>(json, "pace_seconds"));
  ZEUS_TRY(const Json parts, GetField<Json>(json, "plan"));
  ZEUS_TRY(plan.plan, pipeline::PlanFromJson(parts));
  plan.baseline_time = Seconds(time);
  plan.baseline_energy = Joules(energy);
  if (pace) plan.pace = Seconds(*pace);
  return plan;
}

}  // namespace zeus
