#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/plan/plan_answer.h"
#include "apps/zeus/plan/plan_flags.h"
#include "apps/zeus/plan/plan_report.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kLargestReference = std::size_t{128} << 20;

// Returns an error if an output would overwrite an input or another output.
Status CheckDistinct(const PlanFlags& flags) {
  const std::pair<const char*, std::filesystem::path> files[] = {
      {"--profile", flags.profile},   {"--instance", flags.instance},
      {"--schedule", flags.schedule}, {"--from-reference", flags.from_reference},
      {"--out", flags.out},           {"--reference-schedule", flags.reference_schedule},
      {"--html", flags.outputs.html}, {"--csv", flags.outputs.csv}};
  constexpr std::size_t kRead = 4;
  for (std::size_t i = kRead; i < std::size(files); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::error_code ignored;
      const auto& [flag, path] = files[i];
      const auto& [other_flag, other] = files[j];
      if (path.empty() || other.empty()) continue;
      if (std::filesystem::weakly_canonical(path, ignored) !=
          std::filesystem::weakly_canonical(other, ignored))
        continue;
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} and {} are the same file, {}: choose another", other_flag, flag,
                               Quote(path.string()))};
    }
  }
  return Ok();
}

// Finds problems with files before the work, not after it.
Status CheckFiles(const PlanFlags& flags) {
  ZEUS_RETURN_IF_ERROR(CheckDistinct(flags));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(flags.outputs));
  if (!flags.out.empty()) ZEUS_RETURN_IF_ERROR(CheckWritable(flags.out));
  if (!flags.reference_schedule.empty())
    ZEUS_RETURN_IF_ERROR(CheckWritable(flags.reference_schedule));
  return Ok();
}

Result<std::vector<pipeline::RankClocks>> ReadReference(const std::filesystem::path& path) {
  Result<std::string> text = ReadSmallFile(path, kLargestReference);
  if (!text.ok()) return std::move(text).error().While("cannot read");
  auto ranks = pipeline::ParseReferenceSchedule(text.value());
  if (!ranks.ok()) return std::move(ranks).error().While(Printable(path.string()));
  return ranks;
}

Result<PlanAnswer> Answer(const PlanFlags& flags) {
  const SystemClock clock;
  ZEUS_TRY(const PlanRequest request, MakePlanRequest(flags));
  ZEUS_RETURN_IF_ERROR(CheckFiles(flags));
  ZEUS_TRY(pipeline::Problem problem, LoadPipeline(flags));
  if (flags.from_reference.empty()) return AnswerPlan(std::move(problem), request, clock);
  ZEUS_TRY(const auto ranks, ReadReference(flags.from_reference));
  return AnswerReference(std::move(problem), ranks, request.rules.latency, clock);
}

Status WritePlan(const PlanFlags& flags, const pipeline::PipelinePlan& plan) {
  if (!flags.out.empty())
    ZEUS_RETURN_IF_ERROR(WriteWhole(flags.out, JsonText(pipeline::ToJson(plan), 1) + "\n"));
  if (!flags.reference_schedule.empty())
    ZEUS_RETURN_IF_ERROR(WriteWhole(flags.reference_schedule, pipeline::ToReferenceSchedule(plan)));
  return Ok();
}

Result<int> Plan(const PlanFlags& flags) {
  ZEUS_TRY(const PlanAnswer answer, Answer(flags));
  if (answer.plan) ZEUS_RETURN_IF_ERROR(WritePlan(flags, *answer.plan));
  const report::Report report = MakePlanReport(answer);
  ZEUS_RETURN_IF_ERROR(WriteFiles(flags.outputs, report));
  if (flags.outputs.json) {
    PrintJson(ToJson(answer));
  } else {
    const int width = OutputWidth();
    const std::string picture = PlanPicture(answer, width);
    // Printed as it is, because it contains our own colours.
    fmt::print("{}{}", picture, picture.empty() ? "" : "\n");
    PrintText(ToText(report, width));
  }
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  return 0;
}

}  // namespace

void AddPlanCommand(Verb app, Action& action) {
  auto flags = std::make_shared<PlanFlags>();
  const Verb verb = app.AddVerb(
      "plan", "Plan the clocks of pipeline-parallel training: the least energy for its time");
  AddPlanFlags(verb, *flags);
  verb.OnChosen([flags, &action] { action = [flags] { return Plan(*flags); }; });
}

}  // namespace zeus::cli
