#include "zeus/session/sweep.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kLookForProgress = 20ms;
constexpr Seconds kLookForSensors = 20ms;
// Sensors show the end of a slice one or two updates later; the slowest update once a second.
constexpr Seconds kPatience = 2s;
// Whether a setting is still in force is asked this often, and a slice is measured so often at
// most.
constexpr Seconds kLookAtKnob = 500ms;
constexpr int kTries = 2;

}  // namespace

std::optional<SweepPlan::Position> SweepPlan::At(std::size_t slice_number) const {
  if (settings == 0) return std::nullopt;
  const auto round = static_cast<unsigned>(slice_number / settings);
  if (rounds && round >= *rounds) return std::nullopt;
  const std::size_t along = slice_number % settings;
  return Position{round, round % 2 == 0 ? along : settings - 1 - along};
}

Sweep::Sweep(const Parts& parts, std::vector<Setting> settings, const SweepPlan& plan)
    : parts_(parts), settings_(std::move(settings)), plan_(plan) {}

Sweep::~Sweep() { Stop(); }

TimePoint Sweep::Step() {
  auto next = Advance();
  if (next.ok()) return next.value();
  Finish(std::move(next).error());
  return TimePoint::max();
}

Result<TimePoint> Sweep::Advance() {
  const TimePoint now = parts_.clock.Now();
  if (waiting()) {
    if (parts_.progress != nullptr && parts_.progress->empty()) return now + kLookForProgress;
    return BeginNext();
  }
  if (const auto* warmup = std::get_if<Warmup>(&state_)) {
    if (now < warmup->end) return warmup->end;
    const SweepPlan::Position position = warmup->position;
    return BeginSlice(position);
  }
  if (auto* measuring = std::get_if<Measuring>(&state_)) {
    const TimePoint next = Look(*measuring);
    if (now < measuring->end) return next;
    return EndSlice(Measuring(*measuring));
  }
  if (const auto* settling = std::get_if<Settling>(&state_)) {
    ZEUS_RETURN_IF_ERROR(Settle());
    if (!unsettled_.empty() && now < settling->end) return now + kLookForSensors;
    Finish(std::nullopt);
  }
  return TimePoint::max();
}

Result<TimePoint> Sweep::BeginNext() {
  const TimePoint now = parts_.clock.Now();
  const auto position = plan_.At(next_++);
  if (!position) {
    complete_ = true;
    state_ = Settling{now + kPatience};
    ZEUS_RETURN_IF_ERROR(parts_.knob.Restore());
    return now + kLookForSensors;
  }
  return Try(*position);
}

Result<TimePoint> Sweep::Try(const SweepPlan::Position& position) {
  Status set = parts_.knob.Set(settings_[position.setting]);
  // Another program has lowered the limit meanwhile: lower settings can still be tried.
  if (!set.ok() && set.error().code == ErrorCode::kConflict) {
    tries_ = kTries;
    return TryAgainOrSkip(position, set.error());
  }
  if (!set.ok()) return std::move(set).error();
  const TimePoint end = parts_.clock.Now() + plan_.warmup;
  state_ = Warmup{position, end};
  return end;
}

Result<TimePoint> Sweep::BeginSlice(const SweepPlan::Position& position) {
  ZEUS_RETURN_IF_ERROR(Settle());
  ZEUS_RETURN_IF_ERROR(parts_.meter.Begin(ToText(settings_[position.setting])));
  const TimePoint begin = parts_.clock.Now();
  state_ = Measuring{position, begin, begin + plan_.slice};
  return Look(std::get<Measuring>(state_));
}

// Whether the setting is in force; when to look again.
TimePoint Sweep::Look(Measuring& measuring) {
  const Status in_force = parts_.knob.CheckInForce(settings_[measuring.position.setting]);
  if (!in_force.ok() && !measuring.disturbed) measuring.disturbed = in_force.error();
  return std::min<TimePoint>(measuring.end, parts_.clock.Now() + kLookAtKnob);
}

Result<TimePoint> Sweep::TryAgainOrSkip(const SweepPlan::Position& position, const Error& reason) {
  if (++tries_ < kTries) return Try(position);
  skipped_.push_back({position.setting, reason.message});
  tries_ = 0;
  if (++skipped_in_a_row_ >= settings_.size()) return reason;  // Nothing can be measured any more.
  return BeginNext();
}

Result<TimePoint> Sweep::EndSlice(const Measuring& measuring) {
  if (measuring.disturbed) {
    parts_.meter.Cancel();
    return TryAgainOrSkip(measuring.position, *measuring.disturbed);
  }
  tries_ = 0;
  skipped_in_a_row_ = 0;
  ZEUS_TRY(const SliceMeter::Ticket ticket, parts_.meter.End());
  unsettled_.push_back({slices_.size(), ticket, measuring.begin, parts_.clock.Now()});
  slices_.push_back({measuring.position.round, measuring.position.setting, {}, std::nullopt});
  return BeginNext();
}

Status Sweep::Settle() {
  for (auto slice = unsettled_.begin(); slice != unsettled_.end();) {
    MeasuredSlice& measured = slices_[slice->slice];
    ZEUS_TRY(measured.reading, parts_.meter.Read(slice->ticket));
    // Asked again although it is known: the last line of a slice may come after its end.
    if (parts_.progress != nullptr)
      measured.rate = parts_.progress->Between(slice->begin, slice->end);
    slice = measured.reading.final ? unsettled_.erase(slice) : slice + 1;
  }
  if (parts_.progress != nullptr && unsettled_.empty())
    parts_.progress->ForgetBefore(parts_.clock.Now());
  return Ok();
}

bool Sweep::complete() const {
  return complete_ && std::ranges::all_of(skipped_, [this](const SkippedSlice& skipped) {
           return std::ranges::find(slices_, skipped.setting, &MeasuredSlice::setting) !=
                  slices_.end();
         });
}

void Sweep::Stop() {
  if (done()) return;
  if (std::holds_alternative<Measuring>(state_)) parts_.meter.Cancel();
  Status settled = Settle();
  Finish(settled.ok() ? std::nullopt : std::optional(std::move(settled).error()));
}

void Sweep::Finish(std::optional<Error> trouble) {
  if (std::holds_alternative<Measuring>(state_)) parts_.meter.Cancel();
  state_ = Done{};
  if (auto restored = parts_.knob.Restore(); !restored.ok() && !trouble)
    trouble = std::move(restored).error();
  trouble_ = std::move(trouble);
}

}  // namespace zeus
