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

// Names are compared too: one with a comma or a quotation mark must be read as it was written.
bool SameInstructions(const PipelineProfile& one, const PipelineProfile& other) {
  if (one.stages != other.stages || one.instructions.size() != other.instructions.size())
    return false;
  for (std::size_t i = 0; i < one.instructions.size(); ++i) {
    const InstructionProfile& a = one.instructions[i];
    const InstructionProfile& b = other.instructions[i];
    if (a.stage != b.stage || a.instruction != b.instruction || a.points.size() != b.points.size())
      return false;
  }
  return true;
}

void CheckProfile(std::string_view text) {
  const auto profile = ParseProfileCsv(text);
  if (!profile.ok()) return;
  const auto again = ParseProfileCsv(ToCsv(profile.value()));
  if (!again.ok() || !SameInstructions(profile.value(), again.value())) __builtin_trap();
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

// Parses the files that users pass to `zeus plan`. The first byte selects the format of the rest.
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
