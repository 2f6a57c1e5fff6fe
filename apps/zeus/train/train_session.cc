#include "apps/zeus/train/train_session.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "apps/zeus/host_name.h"
#include "apps/zeus/job/energy_text.h"
#include "apps/zeus/job/job_report.h"
#include "apps/zeus/job/lessons.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/user_files.h"

namespace zeus::cli {
namespace {

constexpr int kTargetNotReached = 1;

std::filesystem::path RecordsFolder() {
  const auto folder = UserDataFolder(ProcessEnvironment(), "trials");
  return folder ? *folder : std::filesystem::temp_directory_path() / "zeus-trials";
}

// The power limit of a run; where there is not one, what there was instead.
std::string LimitText(const TrialOutcome& outcome, ProfiledDevices* devices) {
  if (outcome.trial.power_limit) return fmt::format("{:g} W", outcome.trial.power_limit->value());
  if (devices == nullptr) return "no GPU to limit";
  if (!outcome.limit_trouble) return "limits still being tried";
  // GPUs of several models have limits of their own, and no common one.
  return devices->knob().Current().ok() ? "limit left as it was" : "each GPU at its own limit";
}

}  // namespace

TrainSession::TrainSession(const Parts& parts, TrainOptions options)
    : parts_(parts),
      options_(std::move(options)),
      service_(
          parts.source.service(), parts.clock,
          SpoolingJobService::Options::ForThisUser(parts.source.where(), options_.server_wait)),
      records_(RecordsFolder()),
      line_(options_.quiet ? StatusLine::Wanted::kNo : StatusLine::Wanted::kYes) {}

void TrainSession::Say(const std::string& sentence) const {
  if (!options_.quiet) Show(stderr, fmt::format("zeus: {}\n", sentence));
}

// What the user did not say about the GPUs, they say themselves.
Status TrainSession::CompleteSpec() {
  JobSpec& spec = options_.spec;
  if (parts_.devices != nullptr) {
    const auto& gpus = parts_.devices->turned();
    spec.number_of_gpus = static_cast<int>(gpus.size());
    if (spec.gpu_model.empty() && !gpus.empty()) spec.gpu_model = gpus.front().model;
    if (!(spec.max_power > Watts(0))) spec.max_power = parts_.devices->knob().max_power();
  } else if (spec.gpu_model.empty() || !(spec.max_power > Watts(0))) {
    return Error{ErrorCode::kNotFound,
                 "there is no GPU to measure here (zeus doctor says why): try a simulated one with "
                 "zeus sim start --gpus V100 && eval \"$(zeus sim env)\", or for a command that "
                 "reports its own energy say --gpu-model and --max-power"};
  }
  return Ok();
}

Result<int> TrainSession::Execute() {
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(parts_.clock, options_.carbon));
  ZEUS_RETURN_IF_ERROR(CompleteSpec());
  ZEUS_TRY(const RegisteredJob registered, service().Register(options_.spec));
  job_ = registered.job;
  if (!service_.offline()) ZEUS_RETURN_IF_ERROR(EndOrphans());
  int exit_code = 0;
  for (unsigned number = 1; number <= all_recurrences(); ++number) {
    ZEUS_TRY(const RecurrenceEnd end, RunRecurrence(number));
    if (end.exit_code) {
      exit_code = *end.exit_code;
      break;
    }
    if (!end.reached) exit_code = kTargetNotReached;
  }
  const Status told = TellLessons(carbon);
  // Not a matter of what the command did: a GPU is not what it was.
  if (parts_.devices != nullptr) {
    if (Status restored = parts_.devices->knob().Restore(); !restored.ok()) {
      if (exit_code == 0) return std::move(restored).error();
      log::Failure("{}", restored.error().message);
    }
  }
  if (told.ok()) return exit_code;
  if (exit_code == 0) return told.error();
  log::Warning("what was learned cannot be told: {}", told.error().message);
  return exit_code;
}

Status TrainSession::EndOrphans() {
  for (const RunningTrial& orphan : records_.Orphans(parts_.source.where(), job_.spec.id)) {
    std::int64_t number = orphan.trial;
    if (number < 0) {  // It ran without the service, which was told of it with the registration.
      records_.Remove(orphan);
      continue;
    }
    if (number == 0) {
      // It was killed before it read the answer: the same question has the same one.
      auto again = service().StartTrial(MakeRequest(orphan.request, std::nullopt));
      if (!again.ok()) return std::move(again).error();
      number = again.value().trial.number;
    }
    auto ended = service().EndTrial({.job_id = orphan.job,
                                     .trial = number,
                                     .status = TrialStatus::kFailed,
                                     .reason = "its runner was killed"});
    // A trial that nobody knows any more needs no end.
    if (!ended.ok() && ended.error().code != ErrorCode::kNotFound) return std::move(ended).error();
    records_.Remove(orphan);
    Say(fmt::format("trial {} had lost its runner and is ended", number));
  }
  return Ok();
}

Result<TrainSession::RecurrenceEnd> TrainSession::RunRecurrence(unsigned number) {
  std::optional<std::int64_t> recurrence;
  unsigned runs = 0;
  spent_ = Seconds(0);
  for (unsigned tries = 0; tries < options_.tries; ++tries) {
    ZEUS_TRY(const TrialOutcome outcome, RunTrial(number, recurrence));
    SayOutcome(outcome);
    spent_ += outcome.trial.time;
    if (outcome.exit_code) return RecurrenceEnd{.exit_code = outcome.exit_code};
    if (outcome.trial.status == TrialStatus::kConverged) return RecurrenceEnd{.reached = true};
    ++runs;
    if (!outcome.retry) break;
    recurrence = outcome.trial.recurrence;
  }
  Say(fmt::format("recurrence {} did not reach the target in {} run{}", number, runs,
                  runs == 1 ? "" : "s"));
  return RecurrenceEnd{};
}

TrialRequest TrainSession::MakeRequest(const std::string& id,
                                       std::optional<std::int64_t> recurrence) const {
  TrialRequest request{.job_id = job_.spec.id, .recurrence = recurrence, .lease = options_.lease};
  request.gpu_model = options_.spec.gpu_model;
  request.max_power = options_.spec.max_power;
  request.request_id = id;
  return request;
}

void TrainSession::Keep(const RunningTrial& record) {
  const Status added = records_.Add(record);
  if (!added.ok() && !std::exchange(record_trouble_said_, true))
    log::Warning("if zeus is killed, its run is taken for dead only after {:g} s: {}",
                 options_.lease.count(), added.error().message);
}

Result<TrialOutcome> TrainSession::RunTrial(unsigned number,
                                            std::optional<std::int64_t> recurrence) {
  ZEUS_TRY(const ProcessIdentity self, ThisProcess());
  RunningTrial record{
      .where = parts_.source.where(),
      .job = job_.spec.id,
      .request = fmt::format("{}-{}-{}-{}", HostName(), self.pid, self.start_ticks, ++requests_),
      .runner = self};
  Keep(record);
  TrialRequest request = MakeRequest(record.request, recurrence);
  request.baseline = number <= options_.baseline;
  auto started = service().StartTrial(request);
  if (!started.ok()) {
    // Where nobody answered, there may be one all the same.
    if (!started.error().retryable()) records_.Remove(record);
    return std::move(started).error();
  }
  record.trial = started.value().trial.number;
  Keep(record);
  // What the bound is made from changes with every run, here and elsewhere.
  if (auto fresh = service().GetJob(job_.spec.id); fresh.ok()) job_ = std::move(fresh).value();
  std::optional<Seconds> patience;
  if (job_.spec.deadline) patience = *job_.spec.deadline - spent_;
  TrialRun run({service_, parts_.clock, parts_.signals, parts_.devices, line_, patience}, options_,
               job_, started.value(), {.recurrence = number, .recurrences = all_recurrences()});
  auto outcome = run.Execute();
  if (run.end_is_known()) records_.Remove(record);
  return outcome;
}

void TrainSession::SayOutcome(const TrialOutcome& outcome) {
  if (outcome.limit_trouble && !std::exchange(limit_trouble_said_, true))
    Say((outcome.limit_left_changed ? "the power limit is not what it was: "
                                    : "the power limit is left alone: ") +
        outcome.limit_trouble->message);
  const Trial& trial = outcome.trial;
  // Not a matter of taste: it is why zeus ends.
  if (outcome.failure) Complain("zeus", {ErrorCode::kUnavailable, *outcome.failure});
  if (!line_.active()) return;
  Say(fmt::format("recurrence {}: batch size {}, {}, {}, {}: {}", trial.recurrence,
                  trial.batch_size, EnergyText(trial.energy), TimeText(trial.time),
                  LimitText(outcome, parts_.devices), trial.reason));
}

Status TrainSession::TellLessons(const CarbonAccounting& carbon) const {
  if (service_.offline()) {
    Say("there is nothing to show without the service; what was run is told by the next start");
    return Ok();
  }
  auto collected = CollectLessons(parts_.source.service(),
                                  {.job = job_.spec.id, .gpu_model = options_.spec.gpu_model});
  if (!collected.ok() && collected.error().retryable()) {
    log::Warning("what was learned cannot be shown: {}", collected.error().message);
    return Ok();
  }
  if (!collected.ok()) return collected.error();
  Lessons& lessons = collected.value();
  AddSavedCarbon(carbon, lessons.trials, lessons.savings);
  if (!options_.quiet) PrintErrorText("\n" + ArmsTable(lessons) + "\n" + SummaryText(lessons));
  if (!options_.html.empty()) ZEUS_RETURN_IF_ERROR(WriteWhole(options_.html, ToHtml(lessons)));
  if (options_.json.empty()) return Ok();
  const Json json = ToJson(lessons);
  if (options_.json == "-") {
    PrintJson(json);
    return Ok();
  }
  return WriteWhole(options_.json, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace zeus::cli
