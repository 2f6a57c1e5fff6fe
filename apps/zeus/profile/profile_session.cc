#include "apps/zeus/profile/profile_session.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "apps/zeus/profile/sweep_outputs.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kFileInterval = 20ms;
constexpr Seconds kTimeToEnd = 10s;  // For a command that was asked to.

// How far from the truth the time of a change may be: pipes wake us up at once, files are looked at
// now and then.
constexpr Seconds kPipeStamp = 1ms;
const Seconds kFileStamp = kFileInterval / std::sqrt(12.0);

Status CheckRange(const std::vector<Setting>& given, const std::vector<Setting>& range,
                  const std::string& knob) {
  const double most = ToNumber(range.front());
  const double least = ToNumber(range.back());
  for (const Setting& setting : given) {
    if (ToNumber(setting) >= least && ToNumber(setting) <= most) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--limits: {} is out of range, the {} goes from {} to {}{}",
                             ToText(setting), knob, ToText(range.back()), ToText(range.front()),
                             ToNumber(setting) > most
                                 ? ", which was found; --may-raise allows what the device can do"
                                 : "")};
  }
  return Ok();
}

}  // namespace

ProfileSession::ProfileSession(const ProfileOptions& options, Clock& clock, SignalWatch& signals,
                               ProfiledDevices& devices)
    : options_(options), clock_(clock), signals_(signals), devices_(devices) {}

Status ProfileSession::Prepare() {
  Knob& knob = devices_.knob();
  ZEUS_TRY(const std::vector<Setting> offered, knob.Settings(options_.stride));
  std::vector<Setting> settings = options_.settings.empty() ? offered : options_.settings;
  ZEUS_RETURN_IF_ERROR(CheckRange(settings, offered, knob.name()));
  ZEUS_RETURN_IF_ERROR(TryFirstSetting(settings));

  if (options_.pattern) {
    series_.emplace(kPipeStamp);
    ZEUS_TRY(tap_, OutputTap::Open(clock_, [this](const auto& line) { Look(line); }));
    report_.progress = ProgressSource::kOutput;
  } else if (!options_.progress_file.empty()) {
    series_.emplace(kFileStamp);
    file_.emplace(options_.progress_file);
    report_.progress = ProgressSource::kFile;
  }
  SweepPlan plan = options_.plan;
  plan.settings = settings.size();
  report_.command = options_.command;
  report_.label = options_.label;
  report_.host = HostName();
  report_.version = Version();
  report_.started = clock_.WallNow();
  report_.knob_name = knob.name();
  report_.knob = knob.kind();
  report_.max_power = knob.max_power();
  report_.driver = devices_.driver();
  for (const JobKnob::Device& device : devices_.turned())
    report_.devices.push_back({device.name, device.model, device.uuid});
  report_.settings = settings;
  report_.plan = plan;
  sweep_ = std::make_unique<Sweep>(
      Sweep::Parts{clock_, knob, devices_.meter(), series_ ? &*series_ : nullptr},
      std::move(settings), plan);
  return Ok();
}

// A sweep was asked for: if the knob cannot be turned, the command need not cost an hour.
Status ProfileSession::TryFirstSetting(const std::vector<Setting>& settings) {
  ZEUS_RETURN_IF_ERROR(devices_.knob().Set(settings.front()));
  return devices_.knob().Restore();
}

Result<int> ProfileSession::Execute() {
  ZEUS_RETURN_IF_ERROR(Prepare());
  ChildOptions child_options;
  if (tap_ != nullptr) child_options.streams = tap_->streams();
  if (file_) stale_count_ = file_->Count();
  auto started = Child::Start(options_.command, signals_, child_options);
  if (!started.ok()) return CommandNotStarted(std::move(started).error());
  Child child = std::move(started).value();
  started_ = clock_.Now();
  if (tap_ != nullptr) tap_->CloseCommandEnds();
  const Outcome outcome = Attend(child);
  sweep_->Stop();
  if (tap_ != nullptr) tap_->Finish();
  Conclude({.command_ended = true, .interrupted = outcome.interrupted});
  Remember(devices_.knob().Restore());  // --keep ends with the command.
  if (failure_) PrintErrorText(fmt::format("zeus: {}\n", failure_->message));

  if (kill_at_) return failure_ ? ExitCode(failure_->code) : 0;  // Its end was asked for.
  if (outcome.exit_code != 0) return outcome.exit_code;
  if (failure_) return ExitCode(failure_->code);
  return report_.rows.empty() ? ExitCode(ErrorCode::kUnavailable) : 0;
}

Outcome ProfileSession::Attend(Child& child) {
  for (;;) {
    Rest(Advance(child));
    if (tap_ != nullptr) tap_->Pump();
    ReadProgressFile();
    if (const auto outcome = child.WaitFor(0s)) return *outcome;
    if (child.interrupted()) sweep_->Stop();
    if (kill_at_ && clock_.Now() >= *kill_at_) {
      child.Send(SIGKILL);
      kill_at_ = TimePoint::max();
    }
  }
}

TimePoint ProfileSession::Advance(Child& child) {
  const TimePoint next = sweep_->Step();
  if (!sweep_->waiting() && !sweep_began_) sweep_began_ = clock_.Now();
  if (!sweep_->done())
    return file_ ? std::min<TimePoint>(next, clock_.Now() + kFileInterval) : next;
  if (!concluded_) {
    Conclude({.interrupted = child.interrupted()});
    if (options_.after == AfterSweep::kStop) {
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

void ProfileSession::Look(const LineCutter::Line& line) {
  const auto count = options_.pattern->Count(line.text, count_);
  if (!count) return;
  count_ = *count;
  series_->Observe(line.when, *count);
}

void ProfileSession::ReadProgressFile() {
  if (!file_ || (sweep_ && sweep_->done())) return;
  const auto count = file_->Count();
  // What it says from before this command is no progress of it.
  if (!count || (series_->empty() && count == stale_count_)) return;
  series_->Observe(clock_.Now(), *count);
}

void ProfileSession::Conclude(SweepEnd end) {
  if (std::exchange(concluded_, true)) return;
  if (tap_ != nullptr) tap_->StopListening();
  end.ran = clock_.Now() - started_;
  end.before_sweep = sweep_began_.value_or(started_) - started_;
  end.waiting = !sweep_began_;
  end.trouble = sweep_->trouble();
  end.skipped = sweep_->skipped();
  report_.slices = sweep_->slices();
  report_.complete = sweep_->complete();
  Evaluate(report_, options_.objectives);
  report_.notes = NotesOn(report_, end);
  if (sweep_->trouble()) {
    failure_ = sweep_->trouble();
    report_.choices.clear();  // Of a sweep that went wrong nothing is called best.
  }
  if (options_.after == AfterSweep::kKeep && !end.command_ended && !end.interrupted) KeepBest();
  Remember(WriteResults(report_, options_.files));
  if (!options_.quiet) ShowResults(report_);
}

void ProfileSession::KeepBest() {
  if (report_.choices.empty()) return;
  // The last objective is --max-slowdown, where it was given; the first is --eta.
  const Choice& choice =
      options_.objectives.max_slowdown ? report_.choices.back() : report_.choices.front();
  if (!choice.row) return;
  const Setting& best = report_.rows[*choice.row].setting;
  Remember(devices_.knob().Set(best));
  report_.notes.push_back(fmt::format("{} is set for the rest of the command", ToText(best)));
}

void ProfileSession::Remember(const Status& status) {
  if (!status.ok()) failure_ = status.error();
}

}  // namespace zeus::cli
