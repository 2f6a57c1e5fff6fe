#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "apps/zeus/commands.h"
#include "apps/zeus/job/job_report.h"
#include "apps/zeus/job/lessons.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/run/run_options.h"
#include "apps/zeus/terminal.h"
#include "apps/zeus/train/slurm_launch.h"
#include "apps/zeus/train/train_display.h"
#include "apps/zeus/train/train_log.h"
#include "apps/zeus/train/train_options.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/job/epoch_goal.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/train.h"

namespace zeus::cli {
namespace {

constexpr int kTargetNotReached = 1;

Status CheckFiles(const TrainInvocation& options) {
  if (!options.json.empty() && options.json != "-")
    ZEUS_RETURN_IF_ERROR(CheckWritable(options.json));
  std::error_code ignored;
  const auto metrics = std::filesystem::status(options.session.metric_file, ignored);
  if (std::filesystem::exists(metrics) && !std::filesystem::is_regular_file(metrics))
    return Error{ErrorCode::kInvalidArgument, "--metric-file takes a regular file: " +
                                                  Quote(options.session.metric_file) + " is none"};
  return options.html.empty() ? Ok() : CheckWritable(options.html);
}

// Shows and writes what the runs have taught.
Status ShowLessons(const TrainInvocation& invocation, const TrainOutcome& outcome,
                   JobService& service, const CarbonAccounting& carbon,
                   const TrainDisplay& display) {
  if (outcome.offline) {
    display.Say(
        "there is nothing to show without the service; what was run is told by the next start");
    return Ok();
  }
  auto collected = CollectLessons(service, {.job = outcome.job, .gpu_model = outcome.gpu_model});
  if (!collected.ok() && collected.error().retryable()) {
    log::Warning("what was learned cannot be shown: {}", collected.error().message);
    return Ok();
  }
  if (!collected.ok()) return collected.error();
  Lessons& lessons = collected.value();
  AddSavedCarbon(carbon, lessons.trials, lessons.savings);
  if (!invocation.quiet) Show(stderr, "\n" + ArmsTable(lessons) + "\n" + SummaryText(lessons));
  if (!invocation.html.empty()) {
    ZEUS_TRY(const std::string page, ToHtml(lessons));
    ZEUS_RETURN_IF_ERROR(WriteWhole(invocation.html, page));
  }
  if (invocation.json.empty()) return Ok();
  Json json = ToJson(lessons);
  if (invocation.shift) {
    Json shifts = Json::array();
    for (const ShiftReport& report : outcome.shifts) shifts.push_back(ToJson(report));
    json["shifts"] = std::move(shifts);
  }
  if (invocation.json == "-") {
    PrintJson(json);
    return Ok();
  }
  return WriteWhole(invocation.json, JsonText(json, 2) + "\n");
}

// Submits the recurrences to Slurm; what was learned is shown without a word on GPUs, which this
// machine need not have.
Result<int> Submit(const TrainInvocation& invocation) {
  SystemClock clock;
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, invocation.carbon));
  return LaunchOnSlurm(invocation, [&]() -> Status {
    ZEUS_TRY(const std::unique_ptr<JobSource> source, JobSource::Open(invocation.source, clock));
    const TrainDisplay display(invocation.quiet ? TrainDisplay::Sentences::kQuiet
                                                : TrainDisplay::Sentences::kShown);
    return ShowLessons(invocation, {.job = invocation.session.spec.id}, source->service(), carbon,
                       display);
  });
}

Result<int> Execute(const TrainFlags& flags, const Verb& verb, const CommandTail& tail) {
  ZEUS_TRY(std::vector<std::string> command, CommandToRun(verb, tail));
  SystemClock clock;
  ZEUS_TRY(const TrainInvocation invocation, Interpret(flags, std::move(command), clock.WallNow()));
  ZEUS_RETURN_IF_ERROR(CheckFiles(invocation));
  if (auto found = FindTrainCommand(invocation.session); !found.ok())
    return CommandNotStarted(std::move(found).error());
  if (invocation.slurm.wanted) return Submit(invocation);
  // Before the first thread, which would get the signals otherwise.
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  ZEUS_TRY(const std::unique_ptr<JobSource> source, JobSource::Open(invocation.source, clock));
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, invocation.carbon));
  CarbonAccounting other_forecasts;
  const bool other = invocation.shift && !invocation.shift->same_source;
  if (other) {
    ZEUS_TRY(other_forecasts, CarbonAccounting::Open(clock, invocation.shift->forecasts));
  }
  TrainDisplay display(invocation.quiet ? TrainDisplay::Sentences::kQuiet
                                        : TrainDisplay::Sentences::kShown);
  if (HasEpochGoal(invocation.session.spec)) display.Say(EpochGoalText(invocation.session.spec));
  std::unique_ptr<TrainLog> events;
  if (!invocation.log.empty()) {
    ZEUS_TRY(events, TrainLog::Open(invocation.log, invocation.session.spec.id, clock, display));
  }
  TrainListener& listener = events ? static_cast<TrainListener&>(*events) : display;
  ZEUS_TRY(TrainOutcome outcome,
           Train(invocation.session, {.open_jobs = source.get(),
                                      .gpus = invocation.gpus,
                                      .driver_timeout = invocation.driver_timeout,
                                      .listener = &listener,
                                      .forecasts = other ? &other_forecasts : &carbon,
                                      .carbon = &carbon,
                                      .signals = signals.get()}));
  const int exit_code = outcome.exit_code.value_or(outcome.reached ? 0 : kTargetNotReached);
  const Status shown = ShowLessons(invocation, outcome, source->service(), carbon, display);
  // A GPU that is not what it was matters, however the command ended.
  if (outcome.limit_left_changed) {
    if (exit_code == 0) return *std::move(outcome.limit_left_changed);
    log::Failure("{}", outcome.limit_left_changed->message);
  }
  if (shown.ok()) return exit_code;
  if (exit_code == 0) return shown.error();
  log::Warning("what was learned cannot be told: {}", shown.error().message);
  return exit_code;
}

}  // namespace

void AddTrainCommand(Verb app, Action& action, const CommandTail& tail) {
  auto flags = std::make_shared<TrainFlags>();
  const Verb verb = app.AddVerb(
      "train",
      "Run a recurring job with the batch size and power limit that cost least: zeus train --job "
      "NAME [OPTIONS] -- COMMAND --batch-size {batch_size}");
  // The command begins with the first word that is not an option of ours.
  verb.StopAtUnknown();
  AddTrainFlags(verb, *flags);
  verb.Footer(
      "In the command and in --metric-file, {batch_size}, {lr}, {seed}, {job}, {trial},\n"
      "{recurrence}, {attempt}, {max_epochs} and {target} stand for their values; the command "
      "also\n"
      "finds ZEUS_BATCH_SIZE, ZEUS_LEARNING_RATE, ZEUS_SEED, ZEUS_JOB_ID, ZEUS_TRIAL and\n"
      "ZEUS_RECURRENCE in its environment.\n"
      "Exit codes: 0 the target was reached in every recurrence, 1 it was not in one; that of the\n"
      "command when it failed (127 not found, 126 cannot be executed); 128 + signal when zeus was\n"
      "asked to end; 2 wrong options, 6 no metric was told or a database cannot be opened, 9 "
      "there\n"
      "is a job of this name that is described differently.");
  verb.OnChosen([&action, &tail, flags, verb] {
    action = [&tail, flags, verb] { return Execute(*flags, verb, tail); };
  });
}

}  // namespace zeus::cli
