#include "apps/zeus/plan/plan_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "apps/zeus/numbers.h"
#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/optimizer/pipeline/profile_csv.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kMostGpus = 1 << 20;
constexpr double kMostFactor = 1000;

Option AddFile(Verb app, const char* name, std::filesystem::path& path, const char* description) {
  return app.AddOption(name, path, description).Check(NotEmpty()).TypeName("FILE");
}

Option AddNumber(Verb app, const char* name, int& number, std::uint64_t most,
                 const char* description) {
  return app.AddOption(name, number, description).Check(WholeNumberBetween(1, most)).TypeName("N");
}

void AddPipelineFlags(Verb app, PlanFlags& flags) {
  AddFile(app, "--profile", flags.profile,
          "What was measured: CSV with stage, instruction, frequency (MHz), time (s), energy (J)");
  AddFile(app, "--instance", flags.instance,
          "A whole pipeline in one file instead of a profile and a schedule (docs/formats.md)")
      .Excludes("--profile");
  app.AddOption("--schedule", flags.schedule,
                "1f1b, gpipe, interleaved, early_recompute, or a file with a line for each stage "
                "(F0 F1 B0 B1)")
      .Check(NotEmpty())
      .ShowDefault();
  AddNumber(app, "--microbatches", flags.microbatches, pipeline::kMostInstructions,
            "Of an iteration; a schedule's file has its own");
  AddNumber(app, "--chunks", flags.chunks, pipeline::kMostInstructions,
            "Chunks of layers on each stage of an interleaved schedule")
      .ShowDefault();
  app.AddOption("--stages", flags.stages,
                "A number: so many stages, spread over those of the profile (first and last kept, "
                "the others repeated where there are more); or a list: the profile's stage for "
                "each, as 0,2,5,7")
      .Check(NotEmpty())
      .TypeName("N|LIST");
  app.AddOption("--blocking-power", flags.blocking_power,
                "Power of a GPU while it waits for another stage (W)")
      .Check(NumberBetween(0, 1e6))
      .TypeName("WATTS");
  AddNumber(app, "--tensor-parallel", flags.tensor_parallel, kMostGpus,
            "GPUs of a stage; the blocking power is that of one, and so is the profile unless it "
            "has rows for each (tp_rank)")
      .ShowDefault();
  AddNumber(app, "--data-parallel", flags.data_parallel, kMostGpus,
            "Replicas of the pipeline, which wait for each other")
      .ShowDefault();
}

void AddRequestFlags(Verb app, PlanFlags& flags) {
  app.AddOption("--deadline", flags.deadline,
                "How long an iteration may take: 1.05x (of all computations at the highest "
                "clock), 2.9s, or none (as slow as saves energy); without it 1x")
      .Check(NotEmpty())
      .TypeName("TIME");
  app.AddOption("--pace", flags.pace,
                "A straggler makes iterations take so long: 1.2x or 3.4s; the energy includes "
                "waiting for it")
      .Check(NotEmpty())
      .TypeName("TIME")
      .Excludes("--deadline");
  app.AddOption("--cost", flags.cost,
                "hull: the measured points; exponential: the reference's fitted model, for "
                "comparison (its frontier only)")
      .Check(OneOf({"hull", "exponential"}))
      .ShowDefault();
  app.AddOption("--latency", flags.latency,
                "An instruction takes so much longer after a change of the clock: 20ms")
      .ShowDefault()
      .TypeName("TIME");
  AddNumber(app, "--least-instructions", flags.least_instructions, pipeline::kMostInstructions,
            "Between two changes of the clock on a stage")
      .ShowDefault();
  app.AddFlag("--whole-frontier", flags.whole_frontier,
              "Solve all of it also where one deadline of a large pipeline was asked for");
  AddFile(app, "--from-reference", flags.from_reference,
          "Evaluate this schedule file of the reference implementation instead of planning");
}

}  // namespace

void AddPlanFlags(Verb app, PlanFlags& flags) {
  AddPipelineFlags(app, flags);
  AddRequestFlags(app, flags);
  AddFile(app, "--out", flags.out, "Write the plan as JSON: a clock for each instruction");
  AddFile(app, "--reference-schedule", flags.reference_schedule,
          "Write the plan as the reference implementation's schedule file");
  app.AddFlag("--json", flags.outputs.json, "Print JSON, with the whole frontier");
  AddFile(app, "--html", flags.outputs.html, "Write a report to read in a browser: one file");
  app.AddOption("--svg", flags.outputs.figures,
                "Write the pictures as SVG, PNG and CSV, and the tables as CSV, into a folder")
      .Check(NotEmpty())
      .TypeName("DIR");
}

Result<PaceTarget> ParsePaceTarget(const std::string& text, const char* option) {
  const std::string_view trimmed = Trim(text);
  if (trimmed.ends_with('x')) {
    const auto factor = ParseDouble(trimmed.substr(0, trimmed.size() - 1));
    if (factor.ok() && factor.value() > 0 && factor.value() <= kMostFactor)
      return PaceTarget{.factor = factor.value()};
  } else if (const auto time = ParseDuration(text, option); time.ok() && time.value().count() > 0) {
    return PaceTarget{.factor = std::nullopt, .time = time.value()};
  }
  return InvalidArgument(
      fmt::format("{} takes 1.05x (of the baseline), 2.9s or 2900ms, not {}", option, Quote(text)));
}

Result<PlanRequest> MakePlanRequest(const PlanFlags& flags) {
  PlanRequest request{.whole_frontier = flags.whole_frontier, .replicas = flags.data_parallel};
  if (flags.cost == "exponential") request.cost = pipeline::CostKind::kExponential;
  request.without_deadline = Trim(flags.deadline) == "none";
  if (!flags.deadline.empty() && !request.without_deadline) {
    ZEUS_TRY(request.deadline, ParsePaceTarget(flags.deadline, "--deadline"));
  }
  if (!flags.pace.empty()) {
    ZEUS_TRY(request.pace, ParsePaceTarget(flags.pace, "--pace"));
  }
  request.rules.least_instructions = flags.least_instructions;
  ZEUS_TRY(request.rules.latency, ParseDuration(flags.latency, "--latency"));
  const bool planned = !flags.out.empty() || !flags.reference_schedule.empty() ||
                       !flags.from_reference.empty() || request.pace;
  if (request.cost == pipeline::CostKind::kExponential && planned)
    return InvalidArgument(
        "the exponential model has no clocks to plan with: leave out --cost, or --out, "
        "--reference-schedule, --from-reference and --pace");
  if (!flags.from_reference.empty() && (!flags.deadline.empty() || request.pace))
    return InvalidArgument(
        "--from-reference takes as long as it takes: leave out --deadline and --pace");
  return request;
}

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

Result<pipeline::Schedule> ChooseSchedule(const PlanFlags& flags, int stages) {
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
  ZEUS_TRY(const pipeline::Schedule schedule, ChooseSchedule(flags, profile.stages));
  ZEUS_TRY(pipeline::Problem problem, pipeline::MakeProblem(profile, schedule));
  problem.name = fmt::format("{}, {}", flags.profile.filename().string(), schedule.name);
  return problem;
}

}  // namespace zeus::cli
