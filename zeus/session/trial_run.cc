#include "zeus/session/trial_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus {
namespace {

// The service takes only finite metrics: a training that diverged gets the worst one there is.
double FiniteMetric(double metric, const JobSpec& spec) {
  constexpr double kWorst = 1e308;
  if (std::isfinite(metric)) return metric;
  return spec.higher_is_better ? -kWorst : kWorst;
}

// Shorter epochs are not worth a warning.
constexpr Seconds kLongestUnnoticedDoubt{1.0};

// Whether what a profile says can be true of what is seen: epochs at different limits differ less.
bool Alike(double said, double seen) {
  constexpr double kFactor = 2;
  return said * kFactor >= seen && said <= seen * kFactor;
}

}  // namespace

TrialMeter::TrialMeter(const Parts& parts, const Trial& trial, const JobSpec& spec)
    : parts_(parts), spec_(spec), baseline_(trial.role == RunRole::kBaseline) {
  last_.job_id = trial.job_id;
  last_.trial = trial.number;
}

Status TrialMeter::Begin() {
  begun_ = parts_.clock.Now();
  if (parts_.devices == nullptr) return Ok();
  meter_.emplace(parts_.devices->NewMeter());
  ZEUS_RETURN_IF_ERROR(meter_->Begin("trial"));
  share_.emplace(parts_.devices->NewShare());
  share_->Begin();
  return Ok();
}

Result<std::optional<TrialReport>> TrialMeter::Epoch(const EpochReport& said, EpochTiming timing) {
  TrialReport report{.job_id = last_.job_id, .trial = last_.trial};
  report.epoch = said.epoch.value_or(last_.epoch + 1);
  const bool back = report.epoch < last_.epoch || (said.time && *said.time < last_.time) ||
                    (said.energy && *said.energy < last_.energy);
  if (back && !std::exchange(back_said_, true))
    log::Warning(
        "the command reports an earlier epoch, or less time or energy, than before: they count "
        "from its start, and what was reported stays");
  if (report.epoch <= last_.epoch) return std::optional<TrialReport>();
  report.metric = FiniteMetric(said.metric, spec_);
  ZEUS_RETURN_IF_ERROR(Measure(said, report));
  report.power_limit = said.power_limit;
  if (parts_.limit != nullptr) {
    timing == EpochTiming::kKnown ? parts_.limit->EpochEnded() : parts_.limit->EpochsLumped();
    // One that is only being tried says nothing about what was chosen.
    if (!report.power_limit && parts_.limit->limit_is_final())
      report.power_limit = parts_.limit->in_force();
  }
  // Without a GPU to look at, the command was asked to leave its limits alone.
  report.undisturbed = parts_.limit != nullptr ? !parts_.limit->turned() : baseline_;
  lumped_ = lumped_ || timing != EpochTiming::kKnown;
  MeasureEpoch(said, report);
  steady_ = parts_.limit == nullptr || parts_.limit->limit_is_final();
  last_ = report;
  // The first epoch contains the start of the program.
  if (!first_) first_ = report;
  if (timing == EpochTiming::kKnown || !timed_) timed_ = report;
  return std::optional(report);
}

double TrialMeter::OwnPart() {
  if (!share_) return 1;
  const double part = share_->OwnPart();
  if (share_->shared() && parts_.limit != nullptr) parts_.limit->Forget();
  return part;
}

Status TrialMeter::Measure(const EpochReport& said, TrialReport& report) {
  Joules energy{};
  if (meter_ && !said.energy) {
    const auto reading = meter_->Peek();
    if (!reading.ok() && spec_.eta > 0) return reading.error().While("measure the run");
    if (reading.ok()) energy = OwnPart() * reading.value().energy;
    // A device that is lost in the middle would make the run look cheap.
    if (spec_.eta > 0) ZEUS_RETURN_IF_ERROR(parts_.devices->CheckMeasured());
  } else if (!said.energy && spec_.eta > 0) {
    return Error{ErrorCode::kUnavailable,
                 "nothing tells the energy of the run: there is no GPU to measure, and the command "
                 "reports no energy_joules (--eta 0 needs none)"};
  }
  if (said.energy) (void)OwnPart();
  report.shared = share_ && share_->shared();
  // Estimates of what the sensor has not shown yet may be taken back; energy cannot.
  report.energy = std::max(said.energy.value_or(energy), last_.energy);
  report.time = std::max(said.time.value_or(Seconds(parts_.clock.Now() - begun_)), last_.time);
  return Ok();
}

std::optional<TrialMeter::OneEpoch> TrialMeter::MeanEpoch(const std::optional<TrialReport>& since,
                                                          const TrialReport& report) {
  if (!since || report.epoch <= since->epoch) return std::nullopt;
  const double epochs = report.epoch - since->epoch;
  return OneEpoch{.time = (report.time - since->time) / epochs,
                  .energy = (report.energy - since->energy) / epochs};
}

std::optional<TrialMeter::OneEpoch> TrialMeter::EpochAtBest(const TrialReport& report) {
  const auto seen = MeanEpoch(first_, report);
  const auto best = parts_.limit != nullptr && seen ? parts_.limit->EpochAtBest() : std::nullopt;
  if (!best) return std::nullopt;
  if (Alike(best->time_per_step.count(), seen->time.count()) &&
      Alike(best->energy_per_step.value(), seen->energy.value()))
    return OneEpoch{.time = best->time_per_step, .energy = best->energy_per_step};
  if (!std::exchange(doubted_, true) && seen->time > kLongestUnnoticedDoubt)
    log::Warning(
        "the profile of this job says {:.3g} J and {:.3g} s of an epoch, which takes {:.3g} J and "
        "{:.3g} s: it is not used to plan; if the job has changed, give it another --profiles "
        "folder",
        best->energy_per_step.value(), best->time_per_step.count(), seen->energy.value(),
        seen->time.count());
  return std::nullopt;
}

void TrialMeter::MeasureEpoch(const EpochReport& said, TrialReport& report) {
  std::optional<OneEpoch> epoch;
  if (said.epoch_time && said.epoch_energy) {
    epoch = OneEpoch{.time = *said.epoch_time, .energy = *said.epoch_energy};
  } else if (!said.energy) {
    epoch = EpochAtBest(report);
  }
  // After a lump the service, which sees the last epoch only, would take it for too short.
  if (!epoch && (steady_ || lumped_)) epoch = MeanEpoch(timed_, report);
  if (!epoch) return;
  report.epoch_time = epoch->time;
  report.epoch_energy = epoch->energy;
}

namespace {

using namespace std::chrono_literals;

constexpr Seconds kPollPeriod = 20ms;  // For files, and for answers of the service.
// How long a run that has ended waits for its last reports to be answered.
constexpr Seconds kLastReportsTimeout = 60s;
constexpr Seconds kFlushTimeoutOnSignal = 1s;
constexpr Seconds kShortestLoggedLump = 1s;  // Shorter lumps are not worth a warning.
constexpr Seconds kGroupGrace = 2s;          // For processes that outlive the command.
constexpr int kSignalExitCode = 128;

// A seed for the randomness of the command: each run has its own, and the same run always the same.
std::uint64_t SeedOf(const Job& job, const Trial& trial) {
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
                            {"seed", fmt::to_string(SeedOf(job_, trial))},
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
  if (std::string group = ActivityGroup::VariableOfMembers(); !group.empty())
    environment.push_back(std::move(group));
  return environment;
}

Result<TrialOutcome> TrialRun::Execute() {
  auto outcome = Run();
  parts_.listener.OnOutput();
  if (limit_ != nullptr) limit_->End();
  if (outcome.ok()) {
    if (limit_ != nullptr) {
      outcome.value().limit_trouble = limit_->trouble();
      outcome.value().limit_left_changed = limit_->left_changed();
      outcome.value().chosen_limit = limit_->chosen();
    }
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
  if (parts_.devices != nullptr) {
    limit_ = std::make_unique<RunPowerLimit>(
        RunPowerLimit::Parts{parts_.clock, *parts_.devices, sources_->progress()}, limit_plan_,
        RunPowerLimit::Run{job_.spec.id, started_.trial.batch_size, job_.spec.eta});
    limit_->Begin();
  }
  meter_ = std::make_unique<TrialMeter>(
      TrialMeter::Parts{parts_.clock, parts_.devices, limit_.get()}, started_.trial, job_.spec);
  ZEUS_RETURN_IF_ERROR(meter_->Begin());

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
  const ChildOutcome outcome = Attend(child);
  EndGroup(child);
  sources_->Finish();
  CountEpochs();
  // Restores the limit now: the last reports may take a while.
  if (limit_ != nullptr) limit_->End();
  return Conclude(outcome);
}

Json TrialRun::NoteEpoch(const EpochReport& said) {
  noted_.push_back(said);
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

void TrialRun::CountEpochs() {
  if (!noted_.empty()) {
    const EpochTiming timing = JudgeTiming();
    for (std::size_t i = 0; i < noted_.size(); ++i)
      CountEpoch(noted_[i], timing, i + 1 < noted_.size());
    noted_.clear();
  }
  looked_ = parts_.clock.Now();
}

void TrialRun::CountEpoch(const EpochReport& said, EpochTiming timing, bool more_follow) {
  if ((answer_ && answer_->stop) || failure_) return;
  const auto report = meter_->Epoch(said, timing);
  if (!report.ok()) {
    failure_ = report.error();
  } else if (report.value()) {
    const bool knows_itself = said.time && (said.energy || job_.spec.eta == 0);
    Report(*report.value(), !knows_itself && (more_follow || timing == EpochTiming::kTooSoon));
    status_.epoch = report.value()->epoch;
    status_.metric = report.value()->metric;
    status_.limit = report.value()->power_limit;
    status_.cost = ZeusCostOf(job_.spec.eta, started_.trial.max_power, report.value()->energy,
                              report.value()->time);
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

ChildOutcome TrialRun::Attend(Child& child) {
  for (;;) {
    const TimePoint next = limit_ != nullptr ? limit_->Poll() : TimePoint::max();
    Rest(std::min<TimePoint>(next, parts_.clock.Now() + kPollPeriod));
    if (sources_->OutputWaits()) parts_.listener.OnOutput();
    sources_->Pump();
    CountEpochs();
    if (auto outcome = child.WaitFor(0s)) {
      if (stop_requested_ && !outcome->interrupted) {
        outcome->interrupted = true;
        outcome->signal = SIGINT;
      }
      return *outcome;
    }
    ObeyAnswers(child);
    if (Interrupted(child) && !kill_at_) kill_at_ = parts_.clock.Now() + options_.grace;
    if (kill_at_ && parts_.clock.Now() >= *kill_at_) Kill(child);
    ShowStatus();
  }
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
  const double milliseconds = Seconds(deadline - parts_.clock.Now()).count() * 1e3;
  constexpr double kMostMilliseconds = 1e6;
  ::poll(events.data(), events.size(),
         static_cast<int>(std::ceil(std::clamp(milliseconds, 0.0, kMostMilliseconds))));
}

void TrialRun::ShowStatus() {
  if (parts_.listener.draws() && sources_->LineIsOpen()) return;
  parts_.listener.OnStatus(status_);
}

bool TrialRun::FlushReports(ChildOutcome& outcome) {
  if (held_) reporter_->Push(*held_);
  if (outcome.interrupted) return reporter_->Flush(kFlushTimeoutOnSignal);
  if (reporter_->Flush(kFlushTimeoutOnSignal)) return true;
  parts_.listener.OnOutput();
  log::Warning("the run has ended; its last reports wait for the server, for {:g} s more",
               kLastReportsTimeout.count());
  return reporter_->Flush(kLastReportsTimeout, [&] {
    if (parts_.stop_requested && parts_.stop_requested()) {
      outcome.interrupted = true;
      outcome.signal = SIGINT;
    }
    while (const auto signal = parts_.signals.NextWithin(0s)) {
      const int number = static_cast<int>(signal->ssi_signo);
      if (!AsksToEnd(number)) continue;
      outcome.interrupted = true;
      outcome.signal = number;
    }
    return outcome.interrupted;
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
    return TrialOutcome{.trial = started_.trial, .exit_code = kSignalExitCode + outcome.signal};
  if (outcome.interrupted)
    return End(TrialStatus::kFailed, "interrupted", kSignalExitCode + outcome.signal);
  if (failure_) return *failure_;
  if (gone_)
    return KeepForLater(
        outcome, trouble.value_or(Error{ErrorCode::kUnavailable, "the server does not answer"}));
  if (overdue_) {
    ZEUS_TRY(TrialOutcome late,
             End(meter_->epochs() > 0 ? TrialStatus::kStopped : TrialStatus::kFailed,
                 fmt::format("stopped after {} epochs: the deadline of {:g} s has passed",
                             meter_->epochs(), job_.spec.deadline->count()),
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
  if (meter_->epochs() == 0)
    return Error{ErrorCode::kUnavailable,
                 "the command ended and told no metric: see --metric-regex, --metric-file and "
                 "ZEUS_REPORT_SOCKET"};
  return End(TrialStatus::kStopped,
             fmt::format("the command ended after {} epochs without reaching the target",
                         meter_->epochs()),
             std::nullopt);
}

Result<TrialOutcome> TrialRun::KeepForLater(const ChildOutcome& outcome, const Error& trouble) {
  const TrialReport& last = meter_->last();
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
  Trial trial = started_.trial;
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
  const Trial trial = ended.ok() ? ended.value() : started_.trial;
  return TrialOutcome{
      .trial = trial, .retry = trial.status == TrialStatus::kStopped, .exit_code = code};
}

}  // namespace zeus
