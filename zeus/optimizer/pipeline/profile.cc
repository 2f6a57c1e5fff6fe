#include "zeus/optimizer/pipeline/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::pipeline {

std::vector<int> SpreadStages(int wanted, int profiled) {
  std::vector<int> stages;
  for (int i = 0; i < wanted; ++i) {
    if (wanted <= profiled)
      stages.push_back(wanted == 1 ? 0
                                   : static_cast<int>(std::lround(static_cast<double>(i) *
                                                                  (profiled - 1) / (wanted - 1))));
    else if (i == 0 || i == wanted - 1 || profiled < 3)
      stages.push_back(i == wanted - 1 ? profiled - 1 : 0);
    else
      stages.push_back(1 + (i - 1) % (profiled - 2));
  }
  return stages;
}

PipelineProfile WithStages(const PipelineProfile& profile, const std::vector<int>& stages) {
  PipelineProfile chosen{.stages = static_cast<int>(stages.size()),
                         .blocking_power = profile.blocking_power};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const InstructionProfile& instruction : profile.instructions) {
      if (instruction.stage != stages[i]) continue;
      chosen.instructions.push_back(instruction);
      chosen.instructions.back().stage = static_cast<int>(i);
    }
  }
  return chosen;
}

namespace {

Error ProfileError(const InstructionProfile& profile, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("stage {}, {}: {}", profile.stage, Quote(profile.instruction), why)};
}

// Larger numbers are most likely in a wrong unit, and sums of them would overflow the exact
// arithmetic.
constexpr Seconds kLongestTime{3600};
constexpr Joules kMostEnergy{1e8};

Status CheckInstruction(const InstructionProfile& profile) {
  if (profile.instruction.empty()) return ProfileError(profile, "an instruction needs a name");
  if (profile.points.empty()) return ProfileError(profile, "has no measured point");
  std::map<double, int> clocks;
  for (const OperatingPoint& point : profile.points) {
    if (const Status checked = Check(point); !checked.ok())
      return ProfileError(profile, checked.error().message);
    if (++clocks[point.clock.ToMega()] > 1)
      return ProfileError(profile, fmt::format("{} MHz stands there twice", point.clock.ToMega()));
  }
  return Ok();
}

}  // namespace

Status Check(const OperatingPoint& point) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  const double mhz = point.clock.ToMega();
  if (!std::isfinite(mhz) || mhz < 0 || mhz > 1e5)
    return invalid(fmt::format("{} MHz is not a clock", mhz));
  if (!(point.time.count() >= 1e-6) || !(point.time <= kLongestTime))
    return invalid(fmt::format("takes {} s at {} MHz: give a time from 1e-6 to {} s",
                               point.time.count(), mhz, kLongestTime.count()));
  if (!(point.energy.value() >= 0) || !(point.energy <= kMostEnergy))
    return invalid(fmt::format("takes {} J at {} MHz: give an energy from 0 to {} J",
                               point.energy.value(), mhz, kMostEnergy.value()));
  return Ok();
}

const InstructionProfile* PipelineProfile::Find(int stage, std::string_view instruction) const {
  const auto found = std::ranges::find_if(instructions, [&](const InstructionProfile& profile) {
    return profile.stage == stage && profile.instruction == instruction;
  });
  return found == instructions.end() ? nullptr : &*found;
}

Status Check(const PipelineProfile& profile) {
  if (profile.stages < 1)
    return Error{ErrorCode::kInvalidArgument, "the profile has no stage: give it some rows"};
  const double blocking = profile.blocking_power.value();
  if (!(blocking >= 0) || blocking > 1e7)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a blocking power of {} W cannot be: measure a stage that waits", blocking)};
  std::map<std::pair<int, std::string>, int> seen;
  std::vector<bool> stages(static_cast<std::size_t>(profile.stages));
  for (const InstructionProfile& instruction : profile.instructions) {
    ZEUS_RETURN_IF_ERROR(CheckInstruction(instruction));
    if (instruction.stage < 0 || instruction.stage >= profile.stages)
      return ProfileError(instruction,
                          fmt::format("the profile has stages 0 to {}", profile.stages - 1));
    if (++seen[{instruction.stage, instruction.instruction}] > 1)
      return ProfileError(instruction, "stands there twice");
    stages[static_cast<std::size_t>(instruction.stage)] = true;
  }
  if (const auto gap = std::ranges::find(stages, false); gap != stages.end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the profile has nothing about stage {}: it needs all from 0 to {}",
                             gap - stages.begin(), profile.stages - 1)};
  return Ok();
}

}  // namespace zeus::pipeline
