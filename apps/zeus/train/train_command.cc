#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "apps/zeus/commands.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/run/child.h"
#include "apps/zeus/run/run_options.h"
#include "apps/zeus/train/train_options.h"
#include "apps/zeus/train/train_session.h"
#include "zeus/base/clock.h"
#include "zeus/base/executable.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus::cli {
namespace {

// What a run that was killed left changed; nothing to do is the rule.
void RepairLimits(Clock& clock, const TrainOptions& options) {
  const auto folder = KnobFolder();
  if (!folder.ok()) return;
  KnobJournal journal(clock, folder.value());
  Surroundings surroundings = RealSurroundings(clock);
  surroundings.answer_within = options.driver_timeout;
  const auto repairs = RepairKnobs(journal, surroundings);
  if (!repairs.ok()) {
    log::Warning("{}", repairs.error().message);
    return;
  }
  for (const KnobRepair& repair : repairs.value())
    if (!options.quiet) PrintErrorText(fmt::format("zeus: {}\n", ToText(repair)));
}

// Null when there is no GPU: a command may know what it uses.
Result<std::unique_ptr<ProfiledDevices>> OpenDevices(const TrainOptions& options, Clock& clock) {
  auto devices = ProfiledDevices::Open(clock, {.gpus = options.gpus,
                                               .ceiling = options.limit.ceiling,
                                               .driver_timeout = options.driver_timeout});
  if (devices.ok() || options.gpus || devices.error().code != ErrorCode::kNotFound) return devices;
  // Without a place to note what is to be put back, none is opened either.
  if (auto folder = KnobFolder(); !folder.ok() && options.spec.gpu_model.empty())
    return std::move(folder).error();
  return std::unique_ptr<ProfiledDevices>();
}

Status CheckFiles(const TrainOptions& options) {
  if (!options.json.empty() && options.json != "-")
    ZEUS_RETURN_IF_ERROR(CheckWritable(options.json));
  std::error_code ignored;
  const auto metrics = std::filesystem::status(options.metric_file, ignored);
  if (std::filesystem::exists(metrics) && !std::filesystem::is_regular_file(metrics))
    return Error{ErrorCode::kInvalidArgument,
                 "--metric-file takes a regular file: " + Quote(options.metric_file) + " is none"};
  return options.html.empty() ? Ok() : CheckWritable(options.html);
}

// A command that is not there is found out before a job is made for it, whose first trial would
// fail.
Status FindCommand(const std::vector<std::string>& command) {
  if (command.front().find('{') != std::string::npos) return Ok();  // Known when it starts.
  auto file = FindExecutable(command.front());
  return file.ok() ? Ok() : Status(std::move(file).error());
}

Result<int> Execute(const TrainFlags& flags, const Verb& verb, const CommandTail& tail) {
  ZEUS_TRY(std::vector<std::string> command, CommandToRun(verb, tail));
  ZEUS_TRY(TrainOptions options, Interpret(flags, std::move(command)));
  ZEUS_RETURN_IF_ERROR(CheckFiles(options));
  if (auto found = FindCommand(options.command); !found.ok())
    return CommandNotStarted(std::move(found).error());
  ActivityGroup::BecomeHost();
  SystemClock clock;
  // Before any thread, which would get the signals otherwise.
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  ZEUS_TRY(const std::unique_ptr<JobSource> source, JobSource::Open(options.source, clock));
  RepairLimits(clock, options);
  ZEUS_TRY(const std::unique_ptr<ProfiledDevices> devices, OpenDevices(options, clock));
  return TrainSession({clock, *signals, *source, devices.get()}, std::move(options)).Execute();
}

}  // namespace

void AddTrainCommand(Verb app, Action& action, const CommandTail& tail) {
  auto flags = std::make_shared<TrainFlags>();
  const Verb verb = app.AddVerb(
      "train",
      "Run a recurring job with the batch size and power limit that cost least: zeus train --job "
      "NAME [OPTIONS] -- COMMAND --batch-size {batch_size}");
  // What is no option of ours begins the command.
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
