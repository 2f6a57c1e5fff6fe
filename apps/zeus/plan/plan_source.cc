#include "apps/zeus/plan/plan_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "apps/zeus/lists.h"
#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/optimizer/pipeline/profile_csv.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kLargestFile = std::size_t{512} << 20;
constexpr int kMostStages = 4096;
constexpr std::array<std::string_view, 4> kSchedules = {"1f1b", "gpipe", "interleaved",
                                                        "early_recompute"};

// Adds the name of the file to an error about its content.
template <class T>
Result<T> NamingFile(const std::filesystem::path& path, Result<T> result) {
  if (result.ok()) return result;
  return std::move(result).error().While(Printable(path.string()));
}

Result<std::string> ReadInput(const std::filesystem::path& path) {
  Result<std::string> text = ReadSmallFile(path, kLargestFile);
  if (!text.ok()) return std::move(text).error().While("cannot read");
  return text;
}

// Returns whether a profile has rows for every GPU of a stage.
bool HasTensorRanks(std::string_view csv) {
  while (csv.starts_with('#') && csv.find('\n') != std::string_view::npos)
    csv.remove_prefix(csv.find('\n') + 1);
  return csv.substr(0, csv.find('\n')).find("tp_rank") != std::string_view::npos;
}

void ScaleEnergy(pipeline::PipelineProfile& profile, double factor) {
  for (pipeline::InstructionProfile& instruction : profile.instructions)
    for (pipeline::OperatingPoint& point : instruction.points) point.energy = point.energy * factor;
}

Result<pipeline::PipelineProfile> LoadProfile(const PlanFlags& flags) {
  if (!flags.blocking_power)
    return InvalidArgument(
        "--blocking-power is missing: the power of a GPU that waits for another stage, as in 70 "
        "for an A40 or 84 for an A100");
  ZEUS_TRY(const std::string text, ReadInput(flags.profile));
  ZEUS_TRY(pipeline::PipelineProfile profile,
           NamingFile(flags.profile, pipeline::ParseProfileCsv(text)));
  profile.blocking_power = Watts(*flags.blocking_power * flags.tensor_parallel);
  if (!HasTensorRanks(text)) ScaleEnergy(profile, flags.tensor_parallel);
  if (flags.stages.empty()) return profile;
  ZEUS_TRY(const std::vector<int> stages, ParseStages(flags.stages, profile.stages));
  return WithStages(profile, stages);
}

Result<pipeline::Schedule> ReadSchedule(const PlanFlags& flags) {
  const std::filesystem::path path(flags.schedule);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return InvalidArgument(fmt::format("--schedule: {} is neither {} nor a file",
                                       Quote(flags.schedule), fmt::join(kSchedules, ", ")));
  ZEUS_TRY(const std::string text, ReadInput(path));
  ZEUS_TRY(pipeline::Schedule schedule, NamingFile(path, pipeline::ParseSchedule(text)));
  if (flags.microbatches > 0 && flags.microbatches != schedule.microbatches)
    return InvalidArgument(
        fmt::format("{} has {} microbatches and --microbatches says {}: leave it out",
                    Printable(flags.schedule), schedule.microbatches, flags.microbatches));
  return schedule;
}

Result<pipeline::Schedule> ScheduleOf(const PlanFlags& flags, int stages) {
  if (std::ranges::find(kSchedules, flags.schedule) == kSchedules.end()) return ReadSchedule(flags);
  if (flags.microbatches < 1)
    return InvalidArgument(
        "--microbatches is missing: how many go through the pipeline in an iteration");
  return pipeline::MakeSchedule(
      flags.schedule,
      {.stages = stages, .microbatches = flags.microbatches, .chunks = flags.chunks});
}

// An instance defines everything, so flags that would change it are rejected.
Status CheckAlone(const PlanFlags& flags) {
  if (flags.microbatches == 0 && flags.stages.empty() && !flags.blocking_power &&
      flags.schedule == "1f1b" && flags.chunks == 1 && flags.tensor_parallel == 1)
    return Ok();
  return InvalidArgument(
      "--instance has its own schedule, stages, microbatches and power: leave out --schedule, "
      "--stages, --microbatches, --chunks, --blocking-power and --tensor-parallel");
}

}  // namespace

Result<std::vector<int>> ParseStages(const std::string& text, int profiled) {
  std::vector<int> stages;
  for (const std::string_view part : SplitAtCommas(text)) {
    const auto number = ParseInteger(part);
    if (!number.ok() || number.value() < 0 || number.value() > kMostStages)
      return InvalidArgument(
          fmt::format("--stages takes a number up to {}, or a list as in 0,2,5,7, not {}",
                      kMostStages, Quote(text)));
    stages.push_back(static_cast<int>(number.value()));
  }
  if (stages.size() == 1) {
    if (stages.front() < 1) return InvalidArgument("--stages: a pipeline has at least 1");
    return pipeline::SpreadStages(stages.front(), profiled);
  }
  for (const int stage : stages)
    if (stage >= profiled)
      return InvalidArgument(
          fmt::format("--stages: the profile has stages 0 to {}, not {}", profiled - 1, stage));
  return stages;
}

Result<pipeline::Problem> LoadPipeline(const PlanFlags& flags) {
  if (!flags.instance.empty()) {
    ZEUS_RETURN_IF_ERROR(CheckAlone(flags));
    ZEUS_TRY(const std::string text, ReadInput(flags.instance));
    ZEUS_TRY(pipeline::Problem problem, NamingFile(flags.instance, pipeline::ParseInstance(text)));
    if (problem.name.empty()) problem.name = flags.instance.stem().string();
    return problem;
  }
  if (flags.profile.empty())
    return InvalidArgument(
        "what is the pipeline? Give --profile FILE and --microbatches, or --instance FILE");
  ZEUS_TRY(const pipeline::PipelineProfile profile, LoadProfile(flags));
  ZEUS_TRY(const pipeline::Schedule schedule, ScheduleOf(flags, profile.stages));
  ZEUS_TRY(pipeline::Problem problem, pipeline::MakeProblem(profile, schedule));
  problem.name = fmt::format("{}, {}", flags.profile.filename().string(), schedule.name);
  return problem;
}

}  // namespace zeus::cli
