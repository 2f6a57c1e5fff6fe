#include "zeus/session/profile_session.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kFileInterval = 20ms;
constexpr Seconds kTimeToEnd = 10s;  // For a command that was asked to end.

// Standard error of the time of a change in a file, which is polled.
const Seconds kFileStamp = kFileInterval / std::sqrt(12.0);

Status CheckRange(const std::vector<Setting>& given, const std::vector<Setting>& range,
                  const std::string& knob) {
  const double most = ToNumber(range.front());
  const double least = ToNumber(range.back());
  for (const Setting& setting : given) {
    if (ToNumber(setting) >= least && ToNumber(setting) <= most) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{} is out of range, the {} goes from {} to {}{}", ToText(setting), knob,
            ToText(range.back()), ToText(range.front()),
            ToNumber(setting) > most
                ? ", which was found; a raised ceiling (--may-raise) allows what the device can do"
                : "")};
  }
  return Ok();
}

}  // namespace

ProfileSession::ProfileSession(const ProfileOptions& options, Clock& clock, SignalWatch& signals,
                               ProfiledDevices& devices, Listener listener)
    : options_(options),
      clock_(clock),
      signals_(signals),
      devices_(devices),
      listener_(std::move(listener)) {}

Status ProfileSession::Prepare() {
  Knob& knob = devices_.knob();
  ZEUS_TRY(const std::vector<Setting> offered, knob.Settings(options_.stride));
  std::vector<Setting> settings = options_.settings.empty() ? offered : options_.settings;
  ZEUS_RETURN_IF_ERROR(CheckRange(settings, offered, knob.name()));
  ZEUS_RETURN_IF_ERROR(TryFirstSetting(settings));

  if (options_.pattern) {
    series_.emplace(ProgressSeries::kPipeStamp);
    ZEUS_TRY(tap_, OutputTap::Open(clock_, [this](const auto& line) { ReadOutput(line); }));
    report_.progress = ProgressSource::kOutput;
  } else if (!options_.progress_file.empty()) {
    series_.emplace(kFileStamp);
    file_.emplace(options_.progress_file);
    report_.progress = ProgressSource::kFile;
  }
  report_.command = options_.command;
  report_.label = options_.label;
  report_.started = clock_.WallNow();
  report_.knob_name = knob.name();
  report_.knob = knob.kind();
  report_.max_power = knob.max_power();
  report_.driver = devices_.driver();
  report_.devices = devices_.turned();
  report_.plan = options_.plan;
  StartSearch(std::move(settings));
  return Ok();
}

void ProfileSession::StartSearch(std::vector<Setting> settings) {
  PowerLimitOptimizer::Options options{.mode = OptimizerMode::kMeasure};
  options.rule.warmup = {.time = options_.plan.warmup};
  options.rule.profile = {.time = options_.plan.slice};
  options.settings = std::move(settings);
  options.try_present = false;
  options.rounds = options_.plan.rounds;
  options.context = {.job = options_.label,
                     .devices = static_cast<int>(devices_.turned().size()),
                     .driver = devices_.driver(),
                     .date = report_.started};
  for (const JobKnob::Device& device : devices_.turned()) {
    options.context.device_model = device.model;
    if (!device.uuid.empty()) options.context.uuids.push_back(device.uuid);
  }
  options.log = false;
  StepSource* steps = &unknown_steps_;
  if (series_) steps = &*series_;
  search_ = std::make_unique<PowerLimitOptimizer>(
      PowerLimitOptimizer::Parts{clock_, devices_.knob(), devices_.meter(), alone_, steps},
      std::move(options));
}

// Finds out before the command has cost an hour that the knob cannot be turned.
Status ProfileSession::TryFirstSetting(const std::vector<Setting>& settings) {
  ZEUS_RETURN_IF_ERROR(devices_.knob().Set(settings.front()));
  return devices_.knob().Restore();
}

Result<ProfileOutcome> ProfileSession::Execute() {
  ZEUS_RETURN_IF_ERROR(Prepare());
  ChildOptions child_options;
  if (tap_ != nullptr) child_options.streams = tap_->streams();
  if (std::string group = ActivityGroup::VariableOfMembers(); !group.empty())
    child_options.environment.push_back(std::move(group));
  if (file_) stale_count_ = file_->Count();
  auto started = Child::Start(options_.command, signals_, child_options);
  if (!started.ok()) return ProfileOutcome{.not_started = std::move(started).error()};
  Child child = std::move(started).value();
  started_ = clock_.Now();
  if (tap_ != nullptr) tap_->CloseCommandEnds();
  const ChildOutcome outcome = Attend(child);
  search_->Stop();
  if (tap_ != nullptr) tap_->Finish();
  Conclude({.command_ended = true, .interrupted = outcome.interrupted});
  Remember(devices_.knob().Restore());  // A kept setting is kept until the command has ended.
  return ProfileOutcome{.command = outcome,
                        .stopped = kill_at_.has_value(),
                        .measured = !report_.rows.empty(),
                        .failure = failure_};
}

ChildOutcome ProfileSession::Attend(Child& child) {
  for (;;) {
    Rest(Advance(child));
    if (tap_ != nullptr) tap_->Pump();
    ReadProgressFile();
    if (const auto outcome = child.WaitFor(0s)) return *outcome;
    if (child.interrupted()) search_->Stop();
    if (kill_at_ && clock_.Now() >= *kill_at_) {
      child.Send(SIGKILL);
      kill_at_ = TimePoint::max();
    }
  }
}

TimePoint ProfileSession::Advance(Child& child) {
  const TimePoint next = search_->Poll();
  const bool waiting = std::holds_alternative<PowerLimitOptimizer::Ready>(search_->state());
  if (!waiting && !search_began_) search_began_ = clock_.Now();
  if (!search_->done())
    return file_ ? std::min<TimePoint>(next, clock_.Now() + kFileInterval) : next;
  if (!concluded_) {
    Conclude({.interrupted = child.interrupted()});
    if (options_.after == AfterSearch::kStop) {
      child.Send(SIGTERM);
      kill_at_ = clock_.Now() + kTimeToEnd;
    }
  }
  return kill_at_.value_or(TimePoint::max());
}

void ProfileSession::Rest(TimePoint deadline) {
  std::vector<::pollfd> events;
  if (tap_ != nullptr) events = tap_->WaitFor();
  events.push_back({.fd = signals_.descriptor(), .events = POLLIN, .revents = 0});
  constexpr double kMostMilliseconds = 1e6;
  const double milliseconds = Seconds(deadline - clock_.Now()).count() * 1e3;
  ::poll(events.data(), events.size(),
         static_cast<int>(std::ceil(std::clamp(milliseconds, 0.0, kMostMilliseconds))));
}

void ProfileSession::ReadOutput(const LineCutter::Line& line) {
  const auto count = options_.pattern->Count(line.text, count_);
  if (!count) return;
  count_ = *count;
  series_->Observe(line.when, *count);
}

void ProfileSession::ReadProgressFile() {
  if (!file_ || (search_ && search_->done())) return;
  const auto count = file_->Count();
  // A count that an earlier command left in the file is not progress of this one.
  if (!count || (!series_->Begun() && count == stale_count_)) return;
  series_->Observe(clock_.Now(), *count);
}

void ProfileSession::Conclude(SearchEnd end) {
  if (std::exchange(concluded_, true)) return;
  if (tap_ != nullptr) tap_->StopListening();
  end.ran = clock_.Now() - started_;
  end.before_search = search_began_.value_or(started_) - started_;
  end.waiting = !search_began_;
  end.trouble = search_->trouble();
  end.left_out = search_->left_out();
  FillReport(report_, *search_, options_.objectives);
  if (search_->trouble()) {
    failure_ = search_->trouble();
    report_.choices.clear();  // A search that failed has no best setting.
  }
  if (options_.after == AfterSearch::kKeep && !end.command_ended && !end.interrupted) KeepBest();
  report_.end = std::move(end);
  Remember(listener_(report_));
}

void ProfileSession::KeepBest() {
  if (report_.choices.empty()) return;
  // The last objective is the largest slowdown, where it was given; the first is the cost.
  const SettingChoice& choice =
      options_.objectives.max_slowdown ? report_.choices.back() : report_.choices.front();
  if (!choice.row) return;
  report_.kept = report_.rows[*choice.row].setting;
  Remember(devices_.knob().Set(*report_.kept));
}

void ProfileSession::Remember(const Status& status) {
  if (!status.ok()) failure_ = status.error();
}

}  // namespace zeus
