#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "apps/zeus/commands.h"
#include "apps/zeus/job/job_source.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/shift/shift_options.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/spawn.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/carbon/shift_report.h"
#include "zeus/job/memory_repository.h"

namespace zeus::cli {
namespace {

struct PlanStartFlags {
  ShiftFlags shift{};
  CarbonOptions carbon{};
  JobSourceFlags source{};
  std::string job{};
  std::string gpu_model{};
  std::optional<double> power{};
  std::string slurm_job{};
  bool sbatch = false;
  bool json = false;
};

// Slurm takes a time from now on. So neither its time zone nor its clock matter.
std::string SlurmTime(const StartAdvice& advice, WallTime now) {
  const double seconds = std::ceil(Seconds(advice.plan.start - now).count());
  return seconds > 0 ? fmt::format("now+{:.0f}", seconds) : "now";
}

// Moves the start of a job that waits in the queue.
Status UpdateSlurmJob(const std::string& job, const std::string& time) {
  const auto wrong = [](char c) { return !((c >= '0' && c <= '9') || c == '_'); };
  if (std::ranges::any_of(job, wrong))
    return InvalidArgument(
        fmt::format("--slurm-job takes the number of a job, not {}", Quote(job)));
  auto process = Spawn({.command = {"scontrol", "update", "jobid=" + job, "starttime=" + time}});
  if (!process.ok()) return std::move(process).error().While("scontrol, a program of Slurm");
  const int status = WaitForEnd(process.value());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok();
  return Error{ErrorCode::kConflict,
               fmt::format("scontrol could not move the start of job {}: only a job that waits can "
                           "be moved, by its owner",
                           job)};
}

Result<std::optional<RunEstimate>> Estimate(const PlanStartFlags& flags, Clock& clock) {
  if (flags.job.empty()) return std::optional<RunEstimate>();
  ZEUS_TRY(const auto source,
           JobSource::Open(flags.source, clock, RepositoryAccess::kReadExisting));
  ZEUS_TRY(const Job job, source->service().GetJob(flags.job));
  ZEUS_TRY(const auto trials, AllTrials(source->service(), flags.job));
  return EstimateRun(trials, flags.gpu_model.empty() ? job.spec.gpu_model : flags.gpu_model);
}

void Print(const StartAdvice& advice, WallTime now) {
  const ShiftExpectation& expected = advice.plan.expected;
  const DurationBelief& duration = advice.run.duration;
  std::string text = ToSentence(advice, now) + "\n";
  text +=
      fmt::format("  the run takes {} ({}), surely less than {}\n",
                  WithSigma(duration.mean(), duration.sigma()),
                  advice.run.runs > 0 ? fmt::format("{} recurrences", advice.run.runs) : "as said",
                  TimeText(duration.longest()));
  if (advice.plan.latest < WallTime::max())
    text += fmt::format("  the latest start is {}\n", ToText(advice.plan.latest));
  if (advice.plan.reason == ShiftReason::kGain)
    text += fmt::format("  expected: {} instead of {} now\n",
                        AmountText({expected.cost, 0}, advice.unit),
                        AmountText({expected.cost_now, 0}, advice.unit));
  if (advice.run.power_assumed)
    text += fmt::format(
        "  note: what the run draws is not known, so amounts are those of {}: say "
        "--power\n",
        PowerText(advice.run.power));
  for (const std::string& note : advice.notes) text += fmt::format("  note: {}\n", note);
  Show(stdout, text);
}

Result<int> Execute(const PlanStartFlags& flags) {
  SystemClock clock;
  const WallTime now = clock.WallNow();
  CarbonOptions carbon = flags.carbon;
  if (flags.shift.goal.empty()) return InvalidArgument("say --shift carbon or --shift price");
  if (flags.job.empty() && flags.shift.duration.empty())
    return InvalidArgument("say with --duration how long the run takes, or name a --job");
  ZEUS_TRY(auto shift, Interpret(flags.shift, carbon, now));
  if (flags.power) shift->wish.power = Watts(*flags.power);
  ZEUS_TRY(const CarbonAccounting accounting, CarbonAccounting::Open(clock, shift->forecasts));
  ZEUS_TRY(const auto known, Estimate(flags, clock));
  ZEUS_TRY(const StartAdvice advice, AdviseStart(accounting, shift->wish, known, now, now));
  if (!flags.slurm_job.empty())
    ZEUS_RETURN_IF_ERROR(UpdateSlurmJob(flags.slurm_job, SlurmTime(advice, now)));
  if (flags.json) {
    PrintJson(ToJson(advice));
  } else if (flags.sbatch) {
    Show(stdout, "--begin=" + SlurmTime(advice, now) + "\n");
    Show(stderr, ToSentence(advice, now) + "\n");
  } else {
    Print(advice, now);
  }
  return 0;
}

}  // namespace

void AddPlanStartCommand(Verb app, Action& action) {
  auto flags = std::make_shared<PlanStartFlags>();
  const Verb verb = app.AddVerb(
      "plan-start", "Say when a run should begin so that it emits or costs least, by a deadline");
  AddShiftFlags(verb, flags->shift);
  verb.AddOption("--job", flags->job, "A recurring job, whose history says how long it takes")
      .Check(NotEmpty());
  verb.AddOption("--gpu-model", flags->gpu_model, "Where it will run; that of the job by default")
      .Check(NotEmpty());
  verb.AddOption("--power", flags->power, "Watts that the run draws, instead of its history")
      .Check(NumberBetween(0.001, 1e9));
  AddJobSourceFlags(verb, flags->source);
  AddCarbonOptions(verb, flags->carbon);
  const Option sbatch = verb.AddFlag(
      "--sbatch", flags->sbatch, "Print --begin=… for sbatch, and the sentence on standard error");
  verb.AddOption("--slurm-job", flags->slurm_job,
                 "Move the start of this job, which waits in the queue of Slurm")
      .TypeName("ID")
      .Check(NotEmpty());
  verb.AddFlag("--json", flags->json, "Print JSON").Excludes(sbatch);
  verb.OnChosen([&action, flags] { action = [flags] { return Execute(*flags); }; });
}

}  // namespace zeus::cli
