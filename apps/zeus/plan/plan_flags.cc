#include "apps/zeus/plan/plan_flags.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "apps/zeus/numbers.h"
#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/text.h"
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

}  // namespace zeus::cli
