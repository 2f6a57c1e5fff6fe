#include "zeus/session/trial_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/job/epoch_goal.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kPollPeriod = 20ms;  // For files, and for answers of the service.
// For a power limit that does not change any more: what was noted of steps is forgotten.
constexpr Seconds kIdlePollPeriod = 10s;
// How long a run that has ended waits for its last reports to be answered.
constexpr Seconds kLastReportsTimeout = 60s;
// The wait before a server is called silent, and the only one after a signal.
constexpr Seconds kFirstFlushTimeout = 1s;
constexpr Seconds kShortestLoggedLump = 1s;  // Shorter lumps are not worth a warning.
constexpr Seconds kGroupGrace = 2s;          // For processes that outlive the command.
constexpr int kSignalExitCode = 128;
// Schedulers ask all processes of a job to end at once, and the command may have ended before this
// process hears of it.
constexpr Seconds kSignalOfAll = 300ms;

// A seed for the randomness of the command: each run has its own, and the same run always the same.
std::uint64_t TrialSeed(const Job& job, const Trial& trial) {
  constexpr std::uint64_t kBound = std::uint64_t{1} << 31U;  // Any program can hold it.
  return Random(job.seed).Fork(fmt::format("trial {}", trial.number)).Below(kBound);
}

}  // namespace

TrialRun::TrialRun(const Parts& parts, const TrainOptions& options, const Job& job,
                   const StartedTrial& started, TrainStatus status)
    : parts_(parts),
      options_(options),
      limit_plan_(options.limit),
      job_(job),
      started_(started),
      status_(status) {
  const Trial& trial = started_.trial;
  if (trial.role == RunRole::kBaseline) limit_plan_.mode = LimitMode::kFound;
  last_.job_id = trial.job_id;
  last_.trial = trial.number;
  status_.batch_size = trial.batch_size;
  status_.attempt = trial.attempt;
  status_.max_epochs = started_.max_epochs;
  status_.target = job_.spec.target_metric;
  // Only this policy stops runs at a fixed cost (docs/batch-size.md).
  if (job_.spec.policy == "zeus" && job_.spec.beta && job_.least_cost)
    status_.bound = *job_.spec.beta * *job_.least_cost;
}

Placeholders TrialRun::MakePlaceholders() const {
  const Trial& trial = started_.trial;
  Placeholders placeholders{{"batch_size", fmt::to_string(trial.batch_size)},
                            {"job", job_.spec.id},
                            {"trial", fmt::to_string(trial.number)},
                            {"recurrence", fmt::to_string(trial.recurrence)},
                            {"attempt", fmt::to_string(trial.attempt)},
                            {"seed", fmt::to_string(TrialSeed(job_, trial))},
                            {"max_epochs", fmt::to_string(started_.max_epochs)},
                            {"target", fmt::to_string(job_.spec.target_metric)}};
  if (options_.learning_rate) {
    placeholders["lr"] = fmt::to_string(ScaledLearningRate(
        *options_.learning_rate, options_.scaling, trial.batch_size, job_.spec.default_batch_size));
  }
  return placeholders;
}

std::vector<std::string> TrialRun::MakeEnvironment(const Placeholders& placeholders) const {
  std::vector<std::string> environment{
      "ZEUS_BATCH_SIZE=" + placeholders.at("batch_size"), "ZEUS_JOB_ID=" + placeholders.at("job"),
      "ZEUS_TRIAL=" + placeholders.at("trial"), "ZEUS_RECURRENCE=" + placeholders.at("recurrence"),
      "ZEUS_SEED=" + placeholders.at("seed")};
  if (const auto rate = placeholders.find("lr"); rate != placeholders.end())
    environment.push_back("ZEUS_LEARNING_RATE=" + rate->second);
  // For commands that turn knobs themselves.
  if (started_.trial.role == RunRole::kBaseline) environment.emplace_back("ZEUS_BASELINE=1");
  // Otherwise Python buffers its output, and epochs arrive in lumps.
  if (!ProcessEnvironment()("PYTHONUNBUFFERED")) environment.emplace_back("PYTHONUNBUFFERED=1");
  environment.push_back(parts_.activity_group);
  return environment;
}

Result<TrialOutcome> TrialRun::Execute() {
  auto outcome = Run();
  parts_.listener.OnOutput();
  EndLimit();
  if (outcome.ok()) {
    NoteLimit(outcome.value());
    return outcome;
  }
  if (!gone_) (void)End(TrialStatus::kFailed, outcome.error().message, std::nullopt);
  return outcome;
}

Result<TrialOutcome> TrialRun::Run() {
  const Placeholders placeholders = MakePlaceholders();
  ZEUS_TRY(sources_,
           MetricSources::Open({.metric = options_.metric,
                                .metric_file = Substitute(options_.metric_file, placeholders),
                                .progress = options_.progress,
                                .tap_output = parts_.listener.draws()},
                               parts_.clock,
                               [this](const EpochReport& said) { return NoteEpoch(said); }));
  ZEUS_RETURN_IF_ERROR(BeginMeasuring());
  if (end_signal_) return End(TrialStatus::kFailed, "interrupted", kSignalExitCode + *end_signal_);

  ChildOptions child_options{.kill_with_parent = true, .own_group = true};
  child_options.environment = MakeEnvironment(placeholders);
  sources_->Equip(child_options);
  std::vector<std::string> command;
  for (const std::string& word : options_.command)
    command.push_back(Substitute(word, placeholders));
  auto started = Child::Start(command, parts_.signals, child_options);
  if (!started.ok()) {
    const std::optional<int> code = ExitCodeOfUnstarted(started.error());
    if (!code) return std::move(started).error();
    const std::string reason = started.error().message;
    ZEUS_TRY(TrialOutcome failed, End(TrialStatus::kFailed, reason, code));
    failed.failure = reason;
    return failed;
  }
  Child child = std::move(started).value();
  sources_->CommandStarted();
  auto guardian = GroupGuardian::Watch(child.pid());
  if (!guardian.ok()) {
    child.SendToGroup(SIGKILL);
    return std::move(guardian).error();
  }
  reporter_ =
      std::make_unique<TrialReporter>(parts_.service, parts_.clock, started_.trial, options_.lease);
  looked_ = parts_.clock.Now();
  begun_ = looked_;
  arrivals_.emplace(begun_);
  ChildOutcome outcome = Attend(child);
  EndGroup(child);
  sources_->Finish();
  QueueEpochs();
  FinishMeasuring();
  // Restores the limit now: the last reports may take a while.
  EndLimit();
  NoteInterruption(outcome);
  return Conclude(outcome);
}

Json TrialRun::NoteEpoch(const EpochReport& said) {
  noted_.push_back(said);
  noted_.back().arrived = parts_.clock.Now();
  return {{"stop", (answer_ && answer_->stop) || failure_.has_value()},
          {"converged", answer_ && answer_->converged}};
}

EpochTiming TrialRun::JudgeTiming() {
  const TimePoint now = parts_.clock.Now();
  const Seconds since_last = now - arrivals_->last();
  const EpochTiming timing = arrivals_->Judge(noted_.size(), now, now - looked_);
  const bool measured = std::ranges::any_of(noted_, [](const auto& said) { return !said.time; });
  if (timing == EpochTiming::kLumped && measured && since_last > kShortestLoggedLump &&
      !std::exchange(lumps_logged_, true))
    log::Warning(
        "epochs of the command come in lumps ({} at once), so no power limit can be measured by "
        "them: let it flush its output after each epoch",
        noted_.size());
  return timing;
}

void TrialRun::QueueEpochs() {
  if (!noted_.empty()) {
    const EpochTiming timing = JudgeTiming();
    for (std::size_t i = 0; i < noted_.size(); ++i)
      queued_.push_back({noted_[i], timing, i + 1 < noted_.size()});
    noted_.clear();
  }
  looked_ = parts_.clock.Now();
}

void TrialRun::CountEpoch(const QueuedEpoch& epoch, const EpochResult& report) {
  if ((answer_ && answer_->stop) || failure_) return;
  if (!report.ok()) {
    failure_ = report.error();
  } else if (report.value()) {
    const EpochReport& said = epoch.said;
    const bool knows_itself = said.time && (said.energy || job_.spec.eta == 0);
    last_ = *report.value();
    if (HasEpochGoal(job_.spec)) last_.metric = last_.epoch;
    Report(last_, !knows_itself && (epoch.more_follow || epoch.timing == EpochTiming::kTooSoon));
    status_.epoch = last_.epoch;
    status_.metric = last_.metric;
    status_.limit = last_.power_limit;
    status_.cost =
        ComputeZeusCost(job_.spec.eta, started_.trial.max_power, last_.energy, last_.time);
  }
}

void TrialRun::Report(const TrialReport& report, bool may_wait) {
  const JobSpec& spec = job_.spec;
  const bool reached = spec.higher_is_better ? report.metric >= spec.target_metric
                                             : report.metric <= spec.target_metric;
  const bool says_what_epochs_cost = !may_wait && (report.epoch > 1 || report.epoch_time);
  if (reached || says_what_epochs_cost || report.epoch >= spec.max_epochs) {
    held_.reset();
    reporter_->Push(report);
  } else {
    held_ = report;
  }
}

// --- the devices ---

void TrialRun::StartStep(std::function<void(TrialDevices&)> step, std::function<void()> then) {
  then_ = std::move(then);
  if (parts_.devices != nullptr)
    return parts_.steps.Start(
        [devices = devices_, step = std::move(step)]() mutable { step(*devices); });
  step(*devices_);
  FinishStep();
}

void TrialRun::FinishStep() {
  parts_.steps.Clear();
  if (const auto then = std::exchange(then_, nullptr)) then();
}

void TrialRun::WaitForStep() {
  while (parts_.steps.busy() && !parts_.steps.overdue()) {
    std::array<::pollfd, 2> events{
        {{.fd = parts_.steps.descriptor(), .events = POLLIN, .revents = 0},
         {.fd = parts_.signals.descriptor(), .events = POLLIN, .revents = 0}}};
    constexpr int kMilliseconds = 20;  // The caller's wish to stop has no descriptor.
    ::poll(events.data(), events.size(), kMilliseconds);
    SeeInterruption();
  }
}

bool TrialRun::SeeInterruption() {
  if (parts_.stop_requested && parts_.stop_requested()) end_signal_ = SIGINT;
  while (const auto signal = parts_.signals.NextWithin(0s)) {
    const int number = static_cast<int>(signal->ssi_signo);
    if (AsksToEnd(number)) end_signal_ = number;
  }
  return end_signal_.has_value();
}

void TrialRun::NoteInterruption(ChildOutcome& outcome) const {
  if (!end_signal_ || outcome.interrupted) return;
  outcome.interrupted = true;
  outcome.signal = *end_signal_;
}

Status TrialRun::BeginMeasuring() {
  devices_ = std::make_shared<TrialDevices>(TrialDevices::Parts{
      parts_.clock, parts_.devices, sources_, limit_plan_, started_.trial, job_.spec});
  WaitForStep();  // An earlier run may have left one.
  if (parts_.devices != nullptr && parts_.steps.busy()) {
    GoBlind();
    return Ok();
  }
  const auto begun = std::make_shared<Status>(Ok());
  StartStep([begun](TrialDevices& devices) { *begun = devices.Begin(); });
  WaitForStep();
  if (parts_.steps.busy()) {
    GoBlind();
    return Ok();
  }
  FinishStep();
  return *begun;
}

void TrialRun::ServeDevices() {
  if (parts_.steps.busy()) {
    if (!blind_ && parts_.steps.overdue()) GoBlind();
    if (blind_) CountBlindly();
    return;
  }
  FinishStep();
  if (blind_) {
    CountBlindly();
    StartEndOfLimit();
  } else if (!queued_.empty()) {
    MeasureEpochs();
  } else if (parts_.devices != nullptr && parts_.clock.Now() >= next_poll_) {
    PollLimit();
  }
}

void TrialRun::MeasureEpochs() {
  in_step_ = std::exchange(queued_, {});
  if ((answer_ && answer_->stop) || failure_) return;
  const auto results = std::make_shared<std::vector<EpochResult>>();
  StartStep(
      [results, epochs = in_step_](TrialDevices& devices) {
        for (const QueuedEpoch& epoch : epochs)
          results->push_back(devices.Epoch(epoch.said, epoch.timing));
      },
      [this, results] {
        const std::vector<QueuedEpoch> epochs = std::exchange(in_step_, {});
        for (std::size_t i = 0; i < epochs.size(); ++i) CountEpoch(epochs[i], (*results)[i]);
      });
}

void TrialRun::PollLimit() {
  const auto next = std::make_shared<TimePoint>();
  StartStep([next](TrialDevices& devices) { *next = devices.limit()->Poll(); },
            [this, next] {
              const Seconds pause = *next == TimePoint::max() ? kIdlePollPeriod : kPollPeriod;
              next_poll_ = std::min<TimePoint>(*next, parts_.clock.Now() + pause);
            });
}

Error TrialRun::NoAnswer() const {
  return {ErrorCode::kUnavailable,
          fmt::format("the GPUs of this run did not answer within {:g} s (zeus doctor says more)",
                      parts_.steps.timeout().count())};
}

void TrialRun::GoBlind() {
  blind_ = true;
  devices_->Doubt();
  parts_.listener.OnOutput();
  log::Warning(
      "{}: the run goes on without measuring them, nothing is learned from it, and their power "
      "limit is put back when they answer",
      NoAnswer().message);
}

void TrialRun::CountBlindly() {
  then_ = nullptr;
  std::vector<QueuedEpoch> epochs = std::exchange(in_step_, {});
  for (QueuedEpoch& epoch : std::exchange(queued_, {})) epochs.push_back(epoch);
  for (const QueuedEpoch& epoch : epochs) {
    const EpochReport& said = epoch.said;
    TrialReport report = last_;
    report.epoch = said.epoch.value_or(last_.epoch + 1);
    if (report.epoch <= last_.epoch) continue;
    report.metric = FiniteMetric(said.metric, job_.spec);
    const Seconds passed = said.arrived.value_or(parts_.clock.Now()) - begun_;
    report.time = std::max(said.time.value_or(passed), last_.time);
    report.energy = std::max(said.energy.value_or(last_.energy), last_.energy);
    report.power_limit = said.power_limit;
    report.undisturbed = false;
    report.unmeasured = true;
    CountEpoch(epoch, std::optional(report));
  }
}

void TrialRun::FinishMeasuring() {
  for (;;) {
    if (!blind_) WaitForStep();
    if (!blind_ && parts_.steps.busy()) GoBlind();
    if (blind_) return CountBlindly();
    FinishStep();
    if (queued_.empty()) return;
    MeasureEpochs();
  }
}

void TrialRun::EndLimit() {
  if (devices_ == nullptr || devices_->limit() == nullptr) return;
  WaitForStep();
  if (parts_.steps.busy()) return;  // The step restores the limit when it returns.
  FinishStep();
  StartEndOfLimit();
  WaitForStep();
}

void TrialRun::StartEndOfLimit() {
  if (devices_->limit() == nullptr || std::exchange(limit_ended_, true)) return;
  StartStep([doubted = blind_](TrialDevices& devices) {
    if (doubted) devices.limit()->Forget();
    devices.limit()->End();
  });
}

void TrialRun::NoteLimit(TrialOutcome& outcome) {
  if (devices_ == nullptr || devices_->limit() == nullptr) return;
  outcome.devices_answer = !parts_.steps.busy();
  if (!outcome.devices_answer) {
    outcome.limit_trouble = NoAnswer();
    outcome.limit_left_changed = limit_plan_.mode != LimitMode::kFound;
    return;
  }
  RunPowerLimit& limit = *devices_->limit();
  outcome.limit_trouble = limit.trouble();
  if (blind_ && !outcome.limit_trouble) outcome.limit_trouble = NoAnswer();
  outcome.limit_left_changed = limit.left_changed();
  outcome.chosen_limit = limit.chosen();
}

// --- the command ---

ChildOutcome TrialRun::Attend(Child& child) {
  for (;;) {
    ServeDevices();
    Rest(parts_.clock.Now() + kPollPeriod);
    if (sources_->OutputWaits()) parts_.listener.OnOutput();
    sources_->Pump();
    QueueEpochs();
    if (auto outcome = child.WaitFor(0s)) {
      if (stop_requested_ && !outcome->interrupted) {
        outcome->interrupted = true;
        outcome->signal = SIGINT;
      }
      AwaitOwnSignal(*outcome);
      return *outcome;
    }
    ObeyAnswers(child);
    if (Interrupted(child) && !kill_at_) kill_at_ = parts_.clock.Now() + options_.grace;
    if (kill_at_ && parts_.clock.Now() >= *kill_at_) Kill(child);
    ShowStatus();
  }
}

void TrialRun::AwaitOwnSignal(const ChildOutcome& outcome) {
  if (outcome.exit_code == 0 || outcome.interrupted || kill_at_) return;
  const TimePoint deadline = parts_.clock.Now() + kSignalOfAll;
  while (!SeeInterruption() && parts_.clock.Now() < deadline) parts_.clock.SleepFor(kPollPeriod);
}

bool TrialRun::Interrupted(const Child& child) {
  if (!stop_requested_ && parts_.stop_requested && parts_.stop_requested()) {
    stop_requested_ = true;
    child.Send(SIGTERM);
  }
  return stop_requested_ || child.interrupted();
}

void TrialRun::ObeyAnswers(const Child& child) {
  answer_ = reporter_->answer();
  if (const auto refusal = reporter_->refusal(); refusal && !failure_) failure_ = refusal;
  const bool stop = answer_ && answer_->stop && !(answer_->converged && options_.let_finish);
  // The service sees the deadline in reports, but a command may be silent.
  overdue_ = overdue_ || (parts_.time_left && parts_.clock.Now() - begun_ >= *parts_.time_left);
  if (stop || failure_ || overdue_) Stop(child);
  status_.waiting_for_service = reporter_->trouble().has_value();
  (void)ServiceHangs();
}

void TrialRun::EndGroup(const Child& child) const {
  if (child.GroupIsEmpty()) return;
  if (!kill_at_) {
    child.SendToGroup(SIGTERM);
    const TimePoint deadline = parts_.clock.Now() + std::min(options_.grace, kGroupGrace);
    while (!child.GroupIsEmpty() && parts_.clock.Now() < deadline)
      parts_.clock.SleepFor(kPollPeriod);
  }
  child.SendToGroup(SIGKILL);
}

void TrialRun::Stop(const Child& child) {
  if (kill_at_) return;
  child.Send(SIGTERM);
  kill_at_ = parts_.clock.Now() + options_.grace;
}

void TrialRun::Kill(const Child& child) {
  child.Send(SIGKILL);
  kill_at_ = TimePoint::max();
}

void TrialRun::Rest(TimePoint deadline) const {
  std::vector<::pollfd> events = sources_->WaitFor();
  events.push_back({.fd = parts_.signals.descriptor(), .events = POLLIN, .revents = 0});
  if (!parts_.steps.overdue())
    events.push_back({.fd = parts_.steps.descriptor(), .events = POLLIN, .revents = 0});
  const double milliseconds = Seconds(deadline - parts_.clock.Now()).count() * 1e3;
  constexpr double kMostMilliseconds = 1e6;
  ::poll(events.data(), events.size(),
         static_cast<int>(std::ceil(std::clamp(milliseconds, 0.0, kMostMilliseconds))));
}

void TrialRun::ShowStatus() {
  if (parts_.listener.draws() && sources_->LineIsOpen()) return;
  parts_.listener.OnStatus(status_);
}

// A server that is away refuses calls, which is trouble at once.
bool TrialRun::ServiceHangs() {
  const auto since = reporter_->waiting_since();
  if (!since) {
    service_hangs_ = false;
  } else if (!reporter_->trouble() &&
             parts_.clock.Now() - *since > kRetryInTraining.answer_timeout / 2) {
    service_hangs_ = true;
  }
  return service_hangs_;
}

bool TrialRun::FlushReports(ChildOutcome& outcome) {
  if (held_) reporter_->Push(*held_);
  if (outcome.interrupted) return reporter_->Flush(kFirstFlushTimeout);
  if (reporter_->Flush(kFirstFlushTimeout)) return true;
  // Reports that a hanging server does not take now are kept and sent later.
  if (ServiceHangs() || parts_.service.offline()) return false;
  parts_.listener.OnOutput();
  log::Warning("the run has ended; its last reports wait for the server, for {:g} s more",
               kLastReportsTimeout.count());
  return reporter_->Flush(kLastReportsTimeout, [&] {
    SeeInterruption();
    NoteInterruption(outcome);
    return outcome.interrupted || ServiceHangs();
  });
}

Result<TrialOutcome> TrialRun::Conclude(ChildOutcome outcome) {
  const bool told = FlushReports(outcome);
  answer_ = reporter_->answer();
  if (const auto refusal = reporter_->refusal()) failure_ = refusal;
  const auto trouble = reporter_->trouble();
  reporter_.reset();
  end_is_known_ = answer_ && answer_->stop;
  if (end_is_known_ && options_.let_finish && !kill_at_ && outcome.exit_code != 0)
    return TrialOutcome{
        .trial = answer_->trial,
        .exit_code = outcome.exit_code,
        .failure = fmt::format("the command ended with exit code {} after it had {}",
                               outcome.exit_code, answer_->trial.reason)};
  if (end_is_known_)
    return TrialOutcome{.trial = answer_->trial,
                        .retry = answer_->retry && !outcome.interrupted,
                        .exit_code = outcome.interrupted
                                         ? std::optional(kSignalExitCode + outcome.signal)
                                         : std::nullopt};
  // The next start ends the trial, see TrialRecords.
  gone_ = !told;
  if (outcome.interrupted && gone_)
    return TrialOutcome{.trial = WithLastReport(started_.trial),
                        .exit_code = kSignalExitCode + outcome.signal};
  if (outcome.interrupted)
    return End(TrialStatus::kFailed, "interrupted", kSignalExitCode + outcome.signal);
  if (failure_) return *failure_;
  if (gone_)
    return KeepForLater(
        outcome, trouble.value_or(Error{ErrorCode::kUnavailable, "the server does not answer"}));
  if (overdue_) {
    ZEUS_TRY(TrialOutcome late,
             End(last_.epoch > 0 ? TrialStatus::kStopped : TrialStatus::kFailed,
                 fmt::format("stopped after {} epochs: the deadline of {:g} s has passed",
                             last_.epoch, job_.spec.deadline->count()),
                 std::nullopt));
    late.retry = false;
    return late;
  }
  if (outcome.exit_code != 0) {
    const std::string reason =
        fmt::format("the command ended with exit code {}", outcome.exit_code);
    ZEUS_TRY(TrialOutcome failed, End(TrialStatus::kFailed, reason, outcome.exit_code));
    failed.failure = reason;
    return failed;
  }
  if (last_.epoch == 0)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the command ended and told no {}: see --metric-regex, --metric-file "
                             "and ZEUS_REPORT_SOCKET",
                             HasEpochGoal(job_.spec) ? "epoch" : "metric")};
  return End(
      TrialStatus::kStopped,
      fmt::format("the command ended after {} epochs without reaching the target", last_.epoch),
      std::nullopt);
}

Trial TrialRun::WithLastReport(Trial trial) const {
  if (trial.epochs >= last_.epoch) return trial;
  trial.epochs = last_.epoch;
  trial.time = last_.time;
  trial.energy = last_.energy;
  trial.cost = ComputeZeusCost(job_.spec.eta, trial.max_power, last_.energy, last_.time);
  trial.metric = last_.metric;
  trial.shared = trial.shared || last_.shared;
  trial.unmeasured = last_.unmeasured;
  if (last_.power_limit) trial.power_limit = last_.power_limit;
  return trial;
}

Result<TrialOutcome> TrialRun::KeepForLater(const ChildOutcome& outcome, const Error& trouble) {
  const TrialReport& last = last_;
  const JobSpec& spec = job_.spec;
  const bool reached =
      last.epoch > 0 && (spec.higher_is_better ? last.metric >= spec.target_metric
                                               : last.metric <= spec.target_metric);
  TrialEnd end{.job_id = spec.id, .trial = started_.trial.number, .status = TrialStatus::kStopped};
  end.reason = fmt::format("the command ended after {} epochs", last.epoch);
  const bool failed = outcome.exit_code != 0 && !(reached && kill_at_);
  if (failed) {
    end.status = TrialStatus::kFailed;
    end.reason = fmt::format("the command ended with exit code {}", outcome.exit_code);
  }
  if (auto kept = parts_.service.Keep(started_.trial, last, end); !kept.ok())
    return Error(trouble).While("report the run");
  end_is_known_ = true;  // The spool has it.
  log::Warning("{}: what this run took is kept, and told by the next start", trouble.message);
  Trial trial = WithLastReport(started_.trial);
  trial.status =
      failed ? TrialStatus::kFailed : (reached ? TrialStatus::kConverged : TrialStatus::kStopped);
  trial.reason = end.reason;
  TrialOutcome kept{.trial = trial};
  if (failed) kept.exit_code = outcome.exit_code;
  return kept;
}

Result<TrialOutcome> TrialRun::End(TrialStatus status, const std::string& reason,
                                   std::optional<int> code) {
  auto ended = parts_.service.EndTrial(
      {.job_id = job_.spec.id, .trial = started_.trial.number, .status = status, .reason = reason});
  end_is_known_ = ended.ok() || !ended.error().retryable();
  // After a signal the answer is not needed.
  if (!ended.ok() && !(code && *code > kSignalExitCode)) return std::move(ended).error();
  const Trial trial = WithLastReport(ended.ok() ? ended.value() : started_.trial);
  return TrialOutcome{
      .trial = trial, .retry = trial.status == TrialStatus::kStopped, .exit_code = code};
}

}  // namespace zeus
