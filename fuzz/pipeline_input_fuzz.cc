#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/profile_csv.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace {

using namespace zeus::pipeline;

void CheckProfile(std::string_view text) {
  const auto profile = ParseProfileCsv(text);
  if (!profile.ok()) return;
  const auto again = ParseProfileCsv(ToCsv(profile.value()));
  if (!again.ok() || again.value().stages != profile.value().stages) __builtin_trap();
}

void CheckSchedule(std::string_view text) {
  const auto schedule = ParseSchedule(text);
  if (!schedule.ok()) return;
  const auto again = ParseSchedule(ToText(schedule.value()));
  if (!again.ok() || again.value().stages != schedule.value().stages) __builtin_trap();
}

void CheckInstance(std::string_view text) {
  const auto problem = ParseInstance(text);
  if (!problem.ok()) return;
  for (int i = 0; i < problem.value().graph.size(); ++i)
    if (problem.value().Kind(i).points.empty()) __builtin_trap();
}

void CheckPlan(std::string_view text) {
  const auto json = zeus::ParseJson(text);
  if (!json.ok()) return;
  if (const auto plan = PlanFromJson(json.value()); plan.ok())
    if (!ParseReferenceSchedule(ToReferenceSchedule(plan.value())).ok()) __builtin_trap();
  if (const auto profile = ProfileFromJson(json.value()); profile.ok())
    if (!Check(profile.value()).ok()) __builtin_trap();
}

}  // namespace

// What people hand to `zeus plan`. The first byte says as what the rest is read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      CheckProfile(text);
      break;
    case 1:
      CheckSchedule(text);
      break;
    case 2:
      CheckInstance(text);
      break;
    case 3:
      CheckPlan(text);
      break;
    default:
      (void)ParseReferenceSchedule(text).ok();
  }
  return 0;
}
