#include <algorithm>
#include <atomic>

#include "zeus/base/text.h"
#include "zeus/monitor/energy_monitor_state.h"

namespace zeus {
namespace {

// Beyond these, sums of weights and shares lose digits.
constexpr double kLightest = 1e-6;
constexpr double kHeaviest = 1e6;

std::uint64_t LaneOfThisThread() {
  static std::atomic<std::uint64_t> threads = 0;
  // Beyond what a caller would choose as a lane of his own.
  thread_local const std::uint64_t lane = (std::uint64_t{1} << 63) + ++threads;
  return lane;
}

Error NotOpen(std::string_view name) {
  return {ErrorCode::kNotFound, "no window " + Quote(name) + " is open: begin it first"};
}

}  // namespace

WallTime EnergyMonitor::State::WallAt(TimePoint time) const {
  return wall_ + std::chrono::duration_cast<std::chrono::microseconds>(time - wall_read_at_);
}

bool EnergyMonitor::State::Synchronize() const {
  const TimePoint called = clock_.Now();
  options_.synchronize();
  return WindowEndAfter(clock_.Now() - called) == WindowEnd::kWorkEnded;
}

Result<WindowId> EnergyMonitor::State::Begin(std::string_view name, const WindowOptions& wanted) {
  if (!(wanted.weight == 0 || (wanted.weight >= kLightest && wanted.weight <= kHeaviest)))
    return Error{ErrorCode::kInvalidArgument,
                 "the weight of window " + Quote(name) + " must be 0 or between 1e-6 and 1e6"};
  bool work_ended = wanted.at_begin == WindowEnd::kWorkEnded;
  if (wanted.synchronize && options_.synchronize) work_ended |= Synchronize();
  if (wanted.edges == EdgeReading::kSynchronous) ReadNow();
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  if (const auto open = open_.find(name); open != open_.end()) {
    if (wanted.if_open == IfOpen::kRefuse)
      return Error{ErrorCode::kInvalidArgument,
                   "window " + Quote(name) + " is open already: end it first, or restart it"};
    Forget(open, now);
  }
  auto window = std::make_shared<Window>(
      Window{.id = WindowId(++last_id_),
             .name = std::string(name),
             .lane = wanted.lane ? *wanted.lane : LaneOfThisThread(),
             .weight = wanted.weight,
             .synchronize = wanted.synchronize,
             .read_at_edges = wanted.edges == EdgeReading::kSynchronous,
             .refinable = settlement_.unsettled() < 2 * options_.unsettled_windows,
             .begin = now,
             .shares = {}});
  edges_.Mark(now, work_ended ? EdgeLog::Kind::kWorkEnded : EdgeLog::Kind::kPlain);
  // The curve may have forgotten this time when the window ends.
  if (!window->refinable)
    for (const DeviceRecord& record : records_) window->shares.push_back({.begin = record.At(now)});
  if (window->refinable) {
    settlement_.Enqueue(now, Settlement::EdgeKind::kBegin, window);
    Announce(now, *window, Settlement::EdgeKind::kBegin);
  }
  const WindowId id = window->id;
  open_.emplace(window->name, std::move(window));
  return id;
}

Result<Measurement> EnergyMonitor::State::End(std::string_view name, WindowEnd end) {
  bool work_ended = end == WindowEnd::kWorkEnded;
  std::unique_lock lock(mutex_);
  auto open = open_.find(name);
  if (open == open_.end()) return NotOpen(name);
  if ((open->second->synchronize && options_.synchronize) || open->second->read_at_edges) {
    const std::shared_ptr<Window> window = open->second;
    lock.unlock();
    if (window->synchronize && options_.synchronize) work_ended |= Synchronize();
    if (window->read_at_edges) ReadNow();
    lock.lock();
    open = open_.find(name);
    if (open == open_.end() || open->second != window)
      return Error{ErrorCode::kNotFound, "window " + Quote(name) + " was ended by somebody else"};
  }
  const std::shared_ptr<Window> window = std::move(open->second);
  open_.erase(open);
  window->end = clock_.Now();
  edges_.Mark(window->end, work_ended ? EdgeLog::Kind::kWorkEnded : EdgeLog::Kind::kPlain);
  if (window->refinable) {
    settlement_.Enqueue(window->end, Settlement::EdgeKind::kEnd, window);
    Announce(window->end, *window, Settlement::EdgeKind::kEnd);
  }
  return ImmediateResult(*window);
}

Result<Measurement> EnergyMonitor::State::Peek(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto open = open_.find(name);
  if (open == open_.end()) return NotOpen(name);
  Window window = *open->second;
  window.end = clock_.Now();
  return ImmediateResult(window);
}

void EnergyMonitor::State::Forget(Open::iterator open, TimePoint now) {
  const std::shared_ptr<Window> window = std::move(open->second);
  open_.erase(open);
  if (!window->refinable) return;
  settlement_.Enqueue(now, Settlement::EdgeKind::kCancel, window);
  Announce(now, *window, Settlement::EdgeKind::kCancel);
}

Status EnergyMonitor::State::Cancel(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto open = open_.find(name);
  if (open == open_.end()) return NotOpen(name);
  Forget(open, clock_.Now());
  return Ok();
}

void EnergyMonitor::State::CancelAll() {
  const std::lock_guard lock(mutex_);
  while (!open_.empty()) Forget(open_.begin(), clock_.Now());
}

void EnergyMonitor::State::Announce(TimePoint time, const Window& window,
                                    Settlement::EdgeKind kind) {
  if (!options_.board) return;
  untold_.push_back(
      {.time = time, .kind = kind, .lane = window.lane, .id = window.id, .weight = window.weight});
}

Measurement EnergyMonitor::State::Describe(const Window& window, Measurement::Stage stage) const {
  Measurement result;
  result.id = window.id;
  result.window = window.name;
  result.started = WallAt(window.begin);
  result.begin = window.begin;
  result.time = window.end - window.begin;
  result.stage = stage;
  result.devices.reserve(records_.size());
  return result;
}

Measurement EnergyMonitor::State::ImmediateResult(const Window& window) const {
  Measurement result = Describe(window, Measurement::Stage::kImmediate);
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const DeviceRecord& record = records_[i];
    const EnergyCurve::Point from =
        window.shares.empty() ? record.At(window.begin) : window.shares[i].begin;
    result.devices.push_back(
        {.device = record.name(),
         .energy = record.Estimate(window.begin, from, window.end, record.At(window.end)),
         .in_total = record.in_total()});
  }
  return result;
}

Measurement EnergyMonitor::State::FinalResult(const Window& window,
                                              const std::vector<EnergyCurve::Point>& ends) const {
  Measurement result = Describe(window, Measurement::Stage::kRefined);
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const DeviceRecord& record = records_[i];
    const Window::Share& share = window.shares[i];
    auto estimate = record.Estimate(window.begin, share.begin, window.end, ends[i]);
    if (estimate.ok()) {
      estimate.value().attributed = share.attributed;
      if (share.shared > Joules(0)) estimate.value().flags.Set(MeasurementFlag::kShared);
    }
    result.devices.push_back(
        {.device = record.name(), .energy = std::move(estimate), .in_total = record.in_total()});
  }
  return result;
}

Result<Measurement> EnergyMonitor::State::Refined(WindowId id) {
  const std::lock_guard lock(mutex_);
  const auto found = results_.find(static_cast<std::uint64_t>(id));
  if (found != results_.end()) {
    Measurement result = std::move(found->second);
    results_.erase(found);
    return result;
  }
  if (static_cast<std::uint64_t>(id) > last_id_ || static_cast<std::uint64_t>(id) == 0)
    return Error{ErrorCode::kNotFound, "there was no window with this id"};
  const bool open =
      std::ranges::any_of(open_, [id](const auto& named) { return named.second->id == id; });
  if (open || settlement_.FindEnded(id))
    return Error{ErrorCode::kUnavailable,
                 open ? "the window is open: end it first" : "the window is not settled yet"};
  return Error{ErrorCode::kNotFound, "the result of this window was given already, or dropped"};
}

Result<Measurement> EnergyMonitor::State::BestSoFar(WindowId id) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto window = settlement_.FindEnded(id)) return ImmediateResult(*window);
  }
  return Refined(id);
}

}  // namespace zeus
