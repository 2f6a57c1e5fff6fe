#include "apps/zeus/plan/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kInitials = 4;

std::string_view Initials(std::string_view instruction) {
  if (instruction == pipeline::kForward) return "F";
  if (instruction == pipeline::kBackward) return "B";
  if (instruction == pipeline::kForwardBackward) return "FB";
  if (instruction == pipeline::kRecomputation) return "R";
  return instruction.substr(0, kInitials);
}

}  // namespace

std::string ShortName(const pipeline::PlannedInstruction& planned) {
  std::string name = fmt::format("{}{}", Initials(planned.instruction), planned.microbatch);
  if (planned.chunk > 0) name += fmt::format(".{}", planned.chunk);
  return name;
}

std::string LongName(const pipeline::PlannedInstruction& planned) {
  std::string name = fmt::format("{} of microbatch {}", planned.instruction, planned.microbatch);
  if (planned.chunk > 0) name += fmt::format(", chunk {}", planned.chunk);
  if (planned.clock > Hertz()) name += fmt::format(" at {:.0f} MHz", planned.clock.ToMega());
  return name + fmt::format(", {:.4g} s", planned.time.count());
}

Watts PowerOf(const pipeline::PlannedInstruction& planned) { return planned.energy / planned.time; }

double PowerRange::ShareOf(Watts power) const {
  if (!(high > low)) return 0.5;
  return std::clamp((power - low) / (high - low), 0.0, 1.0);
}

PowerRange RangeOf(const std::vector<const pipeline::PipelinePlan*>& plans, Watts blocking) {
  PowerRange range{.low = blocking, .high = blocking};
  for (const pipeline::PipelinePlan* plan : plans)
    for (const auto& stage : plan->stages)
      for (const pipeline::PlannedInstruction& planned : stage)
        range.high = std::max(range.high, PowerOf(planned));
  return range;
}

}  // namespace zeus::cli
