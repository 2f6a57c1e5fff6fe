#include "zeus/session/train_session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/job/memory_repository.h"
#include "zeus/session/limit_follower.h"
#include "zeus/session/trial_run.h"

namespace zeus {
namespace {

Json ToJson(const RunningTrial& trial) {
  return {{"schema", "zeus.running_trial/1"},
          {"where", trial.where},
          {"job", trial.job},
          {"request", trial.request},
          {"trial", trial.trial},
          {"pid", trial.runner.pid},
          {"start_ticks", trial.runner.start_ticks},
          {"pid_namespace", trial.runner.pid_namespace},
          {"host", trial.host.empty() ? HostName() : trial.host},
          {"boot", trial.boot.empty() ? CurrentBootTime().boot : trial.boot}};
}

Result<RunningTrial> Read(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file));
  ZEUS_TRY(const Json json, ParseJson(text));
  RunningTrial trial;
  ZEUS_TRY(trial.where, GetField<std::string>(json, "where"));
  ZEUS_TRY(trial.job, GetField<std::string>(json, "job"));
  ZEUS_TRY(trial.request, GetField<std::string>(json, "request"));
  ZEUS_TRY(trial.trial, GetField<std::int64_t>(json, "trial"));
  ZEUS_TRY(trial.runner.pid, GetField<std::int64_t>(json, "pid"));
  ZEUS_TRY(trial.runner.start_ticks, GetField<std::uint64_t>(json, "start_ticks"));
  ZEUS_TRY(trial.runner.pid_namespace, GetField<std::string>(json, "pid_namespace"));
  // Older versions told neither, for this machine.
  ZEUS_TRY(const auto host, GetOptionalField<std::string>(json, "host"));
  ZEUS_TRY(const auto boot, GetOptionalField<std::string>(json, "boot"));
  trial.host = host.value_or(HostName());
  trial.boot = boot.value_or(CurrentBootTime().boot);
  return trial;
}

// Numbers of processes mean nothing on another machine, nor after this one was started again.
bool HasDied(const RunningTrial& trial) {
  if (trial.host != HostName()) return false;
  return trial.boot != CurrentBootTime().boot || !IsRunning(trial.runner);
}

}  // namespace

std::filesystem::path TrialRecords::TrialFile(const RunningTrial& trial) const {
  return folder_ / fmt::format("{}-{}.json", FileNamePart(trial.job), FileNamePart(trial.request));
}

Status TrialRecords::Add(const RunningTrial& trial) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return FileError(folder_, error.value());
  return ReplaceFile(TrialFile(trial), JsonText(ToJson(trial), 2) + "\n", Readers::kOwnerOnly);
}

void TrialRecords::Remove(const RunningTrial& trial) const {
  std::error_code ignored;
  std::filesystem::remove(TrialFile(trial), ignored);
}

std::vector<RunningTrial> TrialRecords::Orphans(const std::string& where,
                                                const std::string& job) const {
  std::vector<RunningTrial> orphans;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    if (file.path().extension() != ".json") continue;
    const auto trial = Read(file.path());
    if (trial.ok() && trial.value().where == where && trial.value().job == job &&
        HasDied(trial.value()))
      orphans.push_back(trial.value());
  }
  return orphans;
}

namespace {

std::filesystem::path RecordsFolder() {
  const auto folder = UserDataFolder(ProcessEnvironment(), "trials");
  return folder ? *folder : std::filesystem::temp_directory_path() / "zeus-trials";
}

}  // namespace

TrainSession::TrainSession(const Parts& parts, TrainOptions options)
    : parts_(parts),
      options_(std::move(options)),
      service_(parts.service, parts.clock, ServiceOptions()),
      records_(RecordsFolder()),
      steps_(parts.driver_timeout) {}

SpoolingJobService::Options TrainSession::ServiceOptions() {
  auto options = SpoolingJobService::Options::ForThisUser(parts_.where, options_.server_wait);
  options.stop_requested = [this] { return StopRequested(); };
  return options;
}

bool TrainSession::StopRequested() {
  if (parts_.stop_requested && parts_.stop_requested()) end_signal_ = SIGINT;
  while (const auto signal = parts_.signals.NextWithin(Seconds(0))) {
    const int number = static_cast<int>(signal->ssi_signo);
    if (AsksToEnd(number)) end_signal_ = number;
  }
  return end_signal_.has_value();
}

std::optional<int> TrainSession::ExitCodeOfStop() const {
  constexpr int kSignalExitCode = 128;
  return end_signal_ ? std::optional(kSignalExitCode + *end_signal_) : std::nullopt;
}

// Fills in what the devices know about themselves.
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

Status TrainSession::CheckFixedLimit() {
  const LimitPlan& plan = options_.limit;
  if (plan.mode != LimitMode::kFixed || parts_.devices == nullptr) return Ok();
  constexpr Watts kStride{1};
  const auto offered = parts_.devices->knob().Settings(kStride);
  // GPUs of several models may have no common limits: then setting it says why.
  if (!offered.ok() || offered.value().empty()) return Ok();
  // A limit between that which was found and that of the device is not an error, but is not set.
  const auto gpus = static_cast<double>(parts_.devices->turned().size());
  const double highest = parts_.devices->knob().max_power().value() / gpus;
  const double lowest = ToNumber(offered.value().back());
  const double wanted = plan.fixed.value();
  if (!(highest > 0)) return Ok();
  if (wanted <= highest && wanted > lowest - kStride.value()) return Ok();
  return InvalidArgument(fmt::format("--power-limit {:g} is not possible: {} may be {:g} to {:g} W",
                                     wanted, parts_.devices->knob().name(), lowest, highest));
}

Result<TrainOutcome> TrainSession::Execute() {
  ZEUS_RETURN_IF_ERROR(CompleteSpec());
  ZEUS_RETURN_IF_ERROR(CheckFixedLimit());
  TrainOutcome outcome{.job = options_.spec.id, .gpu_model = options_.spec.gpu_model};
  auto registered = service_.Register(options_.spec);
  outcome.exit_code = ExitCodeOfStop();
  if (outcome.exit_code) {
    outcome.reached = false;
    outcome.offline = !registered.ok();
    return outcome;
  }
  if (!registered.ok()) return std::move(registered).error();
  job_ = registered.value().job;
  outcome.job = job_.spec.id;
  if (!service_.offline()) {
    ZEUS_RETURN_IF_ERROR(EndOrphans());
    ZEUS_RETURN_IF_ERROR(ResumeTask());
  }
  for (unsigned number = 1; number <= all_recurrences() && !outcome.exit_code; ++number) {
    ZEUS_TRY(const RecurrenceEnd end, RunRecurrence(number));
    outcome.exit_code = end.exit_code;
    if (!end.reached) outcome.reached = false;
  }
  outcome.shifts = std::move(shifts_);
  outcome.offline = service_.offline() || service_.stopped() || silent_;
  if (Status restored = RestoreLimit(); !restored.ok())
    outcome.limit_left_changed = std::move(restored).error();
  return outcome;
}

Status TrainSession::RestoreLimit() {
  if (parts_.devices == nullptr) return Ok();
  const auto restored = std::make_shared<Status>(Ok());
  if (!steps_.busy()) {
    steps_.Start([restored, devices = parts_.devices] { *restored = devices->knob().Restore(); });
    while (steps_.busy() && !steps_.overdue())
      (void)parts_.signals.NextUnless(steps_.descriptor(), parts_.driver_timeout);
  }
  if (!steps_.busy()) return *restored;
  if (options_.limit.mode == LimitMode::kFound) return Ok();  // It was never changed.
  return Error{ErrorCode::kUnavailable,
               "the power limit may still be changed, because the driver does not answer: zeus "
               "knobs restore puts it back when it does"};
}

Status TrainSession::EndOrphans() {
  for (const RunningTrial& orphan : records_.Orphans(parts_.where, job_.spec.id)) {
    std::int64_t number = orphan.trial;
    if (number < 0) {  // It ran without the service; Register() has reported it.
      records_.Remove(orphan);
      continue;
    }
    if (number == 0) {
      // It was killed before it read the answer: the same request gets the same trial.
      auto again = service_.StartTrial(MakeRequest(orphan.request, std::nullopt));
      if (!again.ok()) return std::move(again).error();
      number = again.value().trial.number;
    }
    auto ended = service_.EndTrial({.job_id = orphan.job,
                                    .trial = number,
                                    .status = TrialStatus::kFailed,
                                    .reason = "its runner was killed"});
    // A trial that was deleted needs no end.
    if (!ended.ok() && ended.error().code != ErrorCode::kNotFound) return std::move(ended).error();
    records_.Remove(orphan);
    parts_.listener.OnOrphanEnded(number);
  }
  return Ok();
}

Status TrainSession::ResumeTask() {
  task_ = FindScheduledTask(ProcessEnvironment());
  if (!task_) return Ok();
  auto trials = AllTrials(service_, job_.spec.id);
  // Without an answer the task begins anew, and what it left expires.
  if (!trials.ok() && trials.error().retryable()) {
    task_.reset();
    return Ok();
  }
  if (!trials.ok()) return std::move(trials).error();
  past_ = PastOf(*task_, trials.value());
  for (const Trial& trial : past_.unfinished) {
    auto ended = service_.EndTrial({.job_id = job_.spec.id,
                                    .trial = trial.number,
                                    .status = TrialStatus::kFailed,
                                    .reason = "its task was started again"});
    if (!ended.ok() && ended.error().code != ErrorCode::kNotFound) return std::move(ended).error();
    // A result that came before the end counts.
    if (ended.ok())
      for (auto& [number, latest] : past_.latest)
        if (latest.number == trial.number) latest = ended.value();
    parts_.listener.OnOrphanEnded(trial.number);
  }
  return Ok();
}

void TrainSession::BeginFollowing(unsigned number) {
  options_.limit.follower.reset();
  if (!options_.shift || !options_.shift->follow || parts_.forecasts == nullptr ||
      number <= options_.baseline)
    return;
  std::optional<RunEstimate> estimate;
  if (const auto trials = AllTrials(service_, job_.spec.id); trials.ok())
    estimate = EstimateRun(trials.value(), options_.spec.gpu_model);
  options_.limit.follower = std::make_shared<LimitFollower>(
      LimitFollower::Parts{parts_.clock, *parts_.forecasts}, options_.shift->wish, estimate);
}

void TrainSession::EndFollowing() {
  // While a step hangs, it may still use the follower.
  if (options_.limit.follower == nullptr || steps_.busy()) return;
  parts_.carbon->Refresh();
  if (const auto report = options_.limit.follower->Judge(*parts_.carbon))
    parts_.listener.OnFollowed(*report);
}

std::unique_ptr<ShiftedStart> TrainSession::MakeShiftedStart(unsigned number) {
  // Undisturbed runs are compared with the others, and begin as without Zeus.
  if (!options_.shift || options_.shift->follow || parts_.forecasts == nullptr ||
      number <= options_.baseline)
    return nullptr;
  return std::make_unique<ShiftedStart>(
      ShiftedStart::Parts{parts_.clock, parts_.signals, service_, *parts_.forecasts, *parts_.carbon,
                          parts_.listener, [this] { return StopRequested(); }},
      *options_.shift, job_.spec.id, options_.spec.gpu_model);
}

Result<TrainSession::RecurrenceEnd> TrainSession::RunRecurrence(unsigned number) {
  const auto past = past_.latest.find(number);
  if (past != past_.latest.end() && past->second.status == TrialStatus::kConverged) {
    parts_.listener.OnRecurrenceKnown(number);
    return RecurrenceEnd{.reached = true};
  }
  const std::unique_ptr<ShiftedStart> shifted = MakeShiftedStart(number);
  if (shifted != nullptr) shifted->Wait();
  if (const auto code = ExitCodeOfStop()) return RecurrenceEnd{.exit_code = code};
  BeginFollowing(number);
  auto end = RunTries(number, shifted.get());
  EndFollowing();
  const auto report = shifted != nullptr ? shifted->Judge() : std::nullopt;
  if (report) {
    parts_.listener.OnShiftJudged(*report);
    shifts_.push_back(*report);
  }
  return end;
}

Result<TrainSession::RecurrenceEnd> TrainSession::RunTries(unsigned number, ShiftedStart* shifted) {
  std::optional<std::int64_t> recurrence;
  unsigned runs = 0;
  unsigned earlier = 0;
  spent_ = Seconds(0);
  if (const auto past = past_.latest.find(number); past != past_.latest.end()) {
    const Trial& latest = past->second;
    // An undisturbed run of the default has no further tries.
    if (latest.role != RunRole::kBaseline) {
      recurrence = latest.recurrence;
      earlier = static_cast<unsigned>(latest.attempt) + 1;
    }
  }
  for (unsigned tries = earlier; tries < std::max(options_.tries, earlier + 1); ++tries) {
    auto ended = RunTrial(number, recurrence);
    if (const auto code = ExitCodeOfStop(); code && !ended.ok())
      return RecurrenceEnd{.exit_code = code};
    if (!ended.ok()) return std::move(ended).error();
    TrialOutcome& outcome = ended.value();
    if (!outcome.exit_code) outcome.exit_code = ExitCodeOfStop();
    parts_.listener.OnTrialEnded(outcome);
    if (shifted != nullptr) shifted->NoteRun(outcome.trial);
    spent_ += outcome.trial.time;
    if (outcome.exit_code) return RecurrenceEnd{.exit_code = outcome.exit_code};
    if (outcome.trial.status == TrialStatus::kConverged) return RecurrenceEnd{.reached = true};
    ++runs;
    if (!outcome.retry) break;
    recurrence = outcome.trial.recurrence;
  }
  parts_.listener.OnTargetMissed(number, runs);
  return RecurrenceEnd{};
}

std::string TrainSession::MakeRequestId(unsigned number, const ProcessIdentity& self) {
  std::string unique =
      fmt::format("{}-{}-{}-{}", HostName(), self.pid, self.start_ticks, ++requests_);
  if (!task_) return unique;
  return ToText({.task = *task_, .call = past_.call, .recurrence = number}, unique);
}

TrialRequest TrainSession::MakeRequest(const std::string& id,
                                       std::optional<std::int64_t> recurrence) const {
  TrialRequest request{.job_id = job_.spec.id, .recurrence = recurrence, .lease = options_.lease};
  request.gpu_model = options_.spec.gpu_model;
  request.max_power = options_.spec.max_power;
  request.request_id = id;
  return request;
}

void TrainSession::Record(const RunningTrial& record) {
  const Status added = records_.Add(record);
  if (!added.ok() && !std::exchange(record_trouble_logged_, true))
    log::Warning("if zeus is killed, its run is taken for dead only after {:g} s: {}",
                 options_.lease.count(), added.error().message);
}

Result<TrialOutcome> TrainSession::RunTrial(unsigned number,
                                            std::optional<std::int64_t> recurrence) {
  ZEUS_TRY(const ProcessIdentity self, ThisProcess());
  RunningTrial record{.where = parts_.where,
                      .job = job_.spec.id,
                      .request = MakeRequestId(number, self),
                      .runner = self,
                      .host = HostName(),
                      .boot = CurrentBootTime().boot};
  Record(record);
  TrialRequest request = MakeRequest(record.request, recurrence);
  request.baseline = number <= options_.baseline;
  auto started = service_.StartTrial(request);
  if (!started.ok()) {
    // Without an answer the service may have started a trial all the same.
    if (!started.error().retryable()) records_.Remove(record);
    return std::move(started).error();
  }
  record.trial = started.value().trial.number;
  Record(record);
  // Every run changes the bound on the cost, also runs on other machines.
  if (auto fresh = service_.GetJob(job_.spec.id); fresh.ok()) job_ = std::move(fresh).value();
  std::optional<Seconds> time_left;
  if (job_.spec.deadline) time_left = *job_.spec.deadline - spent_;
  TrialRun run({service_, parts_.clock, parts_.signals, parts_.devices, steps_,
                parts_.activity_group, parts_.listener, parts_.stop_requested, time_left},
               options_, job_, started.value(),
               {.recurrence = number, .recurrences = all_recurrences()});
  auto outcome = run.Execute();
  if (run.end_is_known()) records_.Remove(record);
  silent_ = run.service_is_silent();
  return outcome;
}

}  // namespace zeus
