#include "zeus/monitor/energy_monitor.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/monitor/device_record.h"
#include "zeus/monitor/lane_weights.h"
#include "zeus/monitor/settlement.h"

namespace zeus {
namespace {

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>()(name);
  }
};

std::uint64_t LaneOfThisThread() {
  return std::hash<std::thread::id>()(std::this_thread::get_id());
}

}  // namespace

class EnergyMonitor::State {
 public:
  State(Clock& clock, const std::vector<MonitoredDevice>& devices, Options options);
  ~State();

  Result<WindowId> Begin(std::string_view name, const WindowOptions& window);
  Result<Measurement> End(std::string_view name);
  Status Cancel(std::string_view name);
  void CancelAll();
  Result<Measurement> Refined(WindowId id);
  TimePoint Step();
  void AddListener(Listener listener);
  void ReadNow();

  // Guards everything below it; never held during a driver call or a call to a listener.
  mutable std::mutex mutex_;
  Clock& clock_;
  const Options options_;
  EdgeLog edges_;
  std::vector<DeviceRecord> records_;
  Settlement settlement_;

 private:
  using Open = std::unordered_map<std::string, std::shared_ptr<Window>, NameHash, std::equal_to<>>;

  void VisitDevices(TimePoint now, bool all);
  void ShareWithOthers(TimePoint now);
  std::vector<Measurement> Settle();
  void SetOrigins();
  TimePoint SettledUntil() const;
  void Announce(TimePoint time, const Window& window, Settlement::EdgeKind kind);
  void Forget(Open::iterator window);
  Measurement Describe(const Window& window, Measurement::Stage stage) const;
  Measurement ImmediateResult(const Window& window) const;
  Measurement FinalResult(const Window& window, const std::vector<EnergyCurve::Point>& ends) const;
  void Keep(Measurement result);
  WallTime WallAt(TimePoint time) const;

  Open open_;
  std::uint64_t last_id_ = 0;
  std::vector<bool> origin_known_;
  std::unordered_map<std::uint64_t, Measurement> results_;
  std::deque<WindowId> results_in_order_;
  std::vector<Listener> listeners_;
  // What the wall clock said at the last step: labels need no system call.
  TimePoint wall_read_at_{};
  WallTime wall_{};
  // Changes of this process's weight that other processes have not been told about.
  LaneWeights own_weights_;
  std::vector<std::pair<TimePoint, double>> untold_;
  TimePoint others_known_until_{};

  std::mutex step_mutex_;  // One step at a time. Taken before mutex_.
};

EnergyMonitor::State::State(Clock& clock, const std::vector<MonitoredDevice>& devices,
                            Options options)
    : clock_(clock),
      options_(std::move(options)),
      settlement_(devices.size()),
      origin_known_(devices.size(), false) {
  const TimePoint now = clock.Now();
  records_.reserve(devices.size());
  for (const MonitoredDevice& device : devices) records_.emplace_back(device, now, edges_);
  Step();
}

EnergyMonitor::State::~State() {
  if (!options_.board) return;
  // Others need not wait until this process is missed.
  const TimePoint now = clock_.Now();
  for (std::size_t device = 0; device < records_.size(); ++device)
    options_.board->Announce(now, static_cast<unsigned>(device), 0);
}

WallTime EnergyMonitor::State::WallAt(TimePoint time) const {
  return wall_ + std::chrono::duration_cast<std::chrono::microseconds>(time - wall_read_at_);
}

Result<WindowId> EnergyMonitor::State::Begin(std::string_view name, const WindowOptions& wanted) {
  if (wanted.weight < 0)
    return Error{ErrorCode::kInvalidArgument,
                 "the weight of window " + Quote(name) + " is negative"};
  if (wanted.synchronize && options_.synchronize) options_.synchronize();
  if (wanted.edges == EdgeReading::kSynchronous) ReadNow();
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  if (const auto open = open_.find(name); open != open_.end()) {
    if (wanted.if_open == IfOpen::kRefuse)
      return Error{ErrorCode::kInvalidArgument,
                   "window " + Quote(name) + " is open already: end it first, or restart it"};
    Forget(open);
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
  edges_.Mark(now);
  if (window->refinable) {
    settlement_.Enqueue(now, Settlement::EdgeKind::kBegin, window);
    Announce(now, *window, Settlement::EdgeKind::kBegin);
  }
  const WindowId id = window->id;
  open_.emplace(window->name, std::move(window));
  return id;
}

Result<Measurement> EnergyMonitor::State::End(std::string_view name) {
  std::unique_lock lock(mutex_);
  auto open = open_.find(name);
  if (open == open_.end())
    return Error{ErrorCode::kNotFound, "no window " + Quote(name) + " is open: begin it first"};
  if ((open->second->synchronize && options_.synchronize) || open->second->read_at_edges) {
    const std::shared_ptr<Window> window = open->second;
    lock.unlock();
    if (window->synchronize && options_.synchronize) options_.synchronize();
    if (window->read_at_edges) ReadNow();
    lock.lock();
    open = open_.find(name);
    if (open == open_.end() || open->second != window)
      return Error{ErrorCode::kNotFound, "window " + Quote(name) + " was ended by somebody else"};
  }
  const std::shared_ptr<Window> window = std::move(open->second);
  open_.erase(open);
  window->end = clock_.Now();
  edges_.Mark(window->end);
  if (window->refinable) {
    settlement_.Enqueue(window->end, Settlement::EdgeKind::kEnd, window);
    Announce(window->end, *window, Settlement::EdgeKind::kEnd);
  }
  return ImmediateResult(*window);
}

void EnergyMonitor::State::Forget(Open::iterator open) {
  const std::shared_ptr<Window> window = std::move(open->second);
  open_.erase(open);
  if (!window->refinable) return;
  const TimePoint now = clock_.Now();
  settlement_.Enqueue(now, Settlement::EdgeKind::kCancel, window);
  Announce(now, *window, Settlement::EdgeKind::kCancel);
}

Status EnergyMonitor::State::Cancel(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto open = open_.find(name);
  if (open == open_.end())
    return Error{ErrorCode::kNotFound, "no window " + Quote(name) + " is open: begin it first"};
  Forget(open);
  return Ok();
}

void EnergyMonitor::State::CancelAll() {
  const std::lock_guard lock(mutex_);
  while (!open_.empty()) Forget(open_.begin());
}

void EnergyMonitor::State::Announce(TimePoint time, const Window& window,
                                    Settlement::EdgeKind kind) {
  if (!options_.board) return;
  untold_.emplace_back(time, own_weights_.After(kind, window));
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

void EnergyMonitor::State::Keep(Measurement result) {
  while (results_in_order_.size() >= options_.kept_results) {
    results_.erase(static_cast<std::uint64_t>(results_in_order_.front()));
    results_in_order_.pop_front();
  }
  results_in_order_.push_back(result.id);
  results_.emplace(static_cast<std::uint64_t>(result.id), std::move(result));
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
  return Error{ErrorCode::kUnavailable, "the window is not settled yet, or its result was given"};
}

void EnergyMonitor::State::AddListener(Listener listener) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(listener));
}

void EnergyMonitor::State::VisitDevices(TimePoint now, bool all) {
  for (DeviceRecord& record : records_) {
    if (!all && record.next_visit() > now) continue;
    DeviceRecord::Visit visit =
        record.Read(record.DueForTelemetry(now, options_.telemetry_interval));
    // The value belongs to the time after the call: a slow driver answers with what it has then.
    const TimePoint read_at = clock_.Now();
    const std::lock_guard lock(mutex_);
    record.Take(read_at, std::move(visit));
    record.ScheduleNext(read_at, options_.longest_interval);
  }
}

void EnergyMonitor::State::ReadNow() {
  const std::lock_guard step(step_mutex_);
  VisitDevices(clock_.Now(), true);
}

void EnergyMonitor::State::ShareWithOthers(TimePoint now) {
  if (!options_.board) return;
  std::vector<std::pair<TimePoint, double>> untold;
  {
    const std::lock_guard lock(mutex_);
    untold.swap(untold_);
  }
  for (const auto& [time, weight] : untold)
    for (std::size_t device = 0; device < records_.size(); ++device)
      options_.board->Announce(time, static_cast<unsigned>(device), weight);
  const std::vector<ActivityBoard::Change> changes = options_.board->Poll(now);
  const std::lock_guard lock(mutex_);
  for (const ActivityBoard::Change& change : changes) settlement_.Enqueue(change);
  others_known_until_ = options_.board->known_until();
}

TimePoint EnergyMonitor::State::SettledUntil() const {
  TimePoint until = TimePoint::max();
  for (const DeviceRecord& record : records_) until = std::min(until, record.settled_until());
  if (options_.board) until = std::min(until, others_known_until_);
  return until;
}

std::vector<Measurement> EnergyMonitor::State::Settle() {
  std::vector<Measurement> finished;
  const auto curve = [this](std::size_t device, TimePoint time) {
    return records_[device].At(time);
  };
  const auto finish = [&](const Window& window, const std::vector<EnergyCurve::Point>& ends) {
    Measurement result = FinalResult(window, ends);
    if (!listeners_.empty()) finished.push_back(result);
    Keep(std::move(result));
  };
  // A few edges at a time: windows must not wait for the lock.
  constexpr int kEdgesPerTurn = 64;
  for (bool done = false; !done;) {
    const std::lock_guard lock(mutex_);
    SetOrigins();
    done = settlement_.SettleUntil(SettledUntil(), curve, finish, kEdgesPerTurn);
  }
  return finished;
}

// The energy of a device counts from where recording began, once that is known.
void EnergyMonitor::State::SetOrigins() {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (origin_known_[i] || !records_[i].known() || !records_[i].rooted()) continue;
    settlement_.SetOrigin(i, records_[i].EnergyAtBegin());
    origin_known_[i] = true;
  }
}

TimePoint EnergyMonitor::State::Step() {
  const std::lock_guard step(step_mutex_);
  const TimePoint now = clock_.Now();
  {
    const std::lock_guard lock(mutex_);
    wall_read_at_ = now;
    wall_ = clock_.WallNow();
  }
  VisitDevices(now, false);
  ShareWithOthers(now);
  const std::vector<Measurement> finished = Settle();
  std::vector<Listener> listeners;
  TimePoint next = now + options_.longest_interval * 4;
  {
    const std::lock_guard lock(mutex_);
    if (!finished.empty()) listeners = listeners_;
    for (const DeviceRecord& record : records_) next = std::min(next, record.next_visit());
  }
  for (const Measurement& result : finished)
    for (const Listener& listener : listeners) listener(result);
  return next;
}

EnergyMonitor::EnergyMonitor(Clock& clock, std::vector<MonitoredDevice> devices, Options options)
    : clock_(clock), state_(std::make_unique<State>(clock, devices, std::move(options))) {}

EnergyMonitor::~EnergyMonitor() = default;

Result<WindowId> EnergyMonitor::BeginWindow(std::string_view name, const WindowOptions& options) {
  return state_->Begin(name, options);
}
Result<Measurement> EnergyMonitor::EndWindow(std::string_view name) { return state_->End(name); }
Status EnergyMonitor::CancelWindow(std::string_view name) { return state_->Cancel(name); }
void EnergyMonitor::CancelAllWindows() { state_->CancelAll(); }
Result<Measurement> EnergyMonitor::RefinedResult(WindowId id) { return state_->Refined(id); }
void EnergyMonitor::OnRefined(Listener listener) { state_->AddListener(std::move(listener)); }
TimePoint EnergyMonitor::Step() { return state_->Step(); }

Result<Measurement> EnergyMonitor::Refine(WindowId id, Seconds patience) {
  const TimePoint deadline = clock_.Now() + patience;
  for (;;) {
    Result<Measurement> result = RefinedResult(id);
    if (result.ok() || !result.error().retryable() || clock_.Now() >= deadline) return result;
    clock_.SleepUntil(std::min(Step(), deadline));
  }
}

std::size_t EnergyMonitor::device_count() const { return state_->records_.size(); }

const std::string& EnergyMonitor::device_name(std::size_t device) const {
  return state_->records_[device].name();
}

EnergyMonitor::Present EnergyMonitor::Now(std::size_t device) const {
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Now();
}

EnergyMonitor::Ledger EnergyMonitor::Accounts(std::size_t device) const {
  const std::lock_guard lock(state_->mutex_);
  const AttributionLedger& ledger = state_->settlement_.ledger(device);
  return {
      .device = ledger.device(), .unattributed = ledger.unattributed(), .others = ledger.others()};
}

std::vector<Timeline::Sample> EnergyMonitor::History(std::size_t device, Quantity quantity,
                                                     TimePoint begin, TimePoint end) const {
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Line(quantity).Between(begin, end);
}

}  // namespace zeus
