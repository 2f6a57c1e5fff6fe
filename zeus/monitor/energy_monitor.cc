#include "zeus/monitor/energy_monitor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/base/text.h"
#include "zeus/monitor/device_record.h"
#include "zeus/monitor/settlement.h"

namespace zeus {

// With what weight this process uses its devices: that of the innermost window of every lane, as
// Settlement books it, but at once instead of when the sensors have spoken. Not thread-safe.
class LaneWeights {
 public:
  // The part of a window's edge that settling needs.
  struct Edge {
    TimePoint time;
    Settlement::EdgeKind kind;
    std::uint64_t lane;
    WindowId id;
    double weight;
  };

  // The weight after an edge.
  double After(const Edge& edge) {
    std::vector<Use>& lane = lanes_[edge.lane];
    if (edge.kind == Settlement::EdgeKind::kBegin) {
      lane.push_back({edge.id, edge.weight});
    } else {
      std::erase_if(lane, [&](const Use& use) { return use.id == edge.id; });
    }
    if (lane.empty()) lanes_.erase(edge.lane);
    return Total();
  }

  // Summed anew each time: what is added and subtracted a million times would drift.
  double Total() const {
    double sum = 0;
    for (const auto& [id, uses] : lanes_) sum += uses.back().weight;
    return sum;
  }

 private:
  struct Use {
    WindowId id;
    double weight;
  };

  std::unordered_map<std::uint64_t, std::vector<Use>> lanes_;
};

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>()(name);
  }
};

// Everything that an EnergyMonitor knows: open windows, the recording of each device, and which
// windows wait for the sensors to show what happened at their edges.
class EnergyMonitor::State {
 public:
  State(Clock& clock, const std::vector<MonitoredDevice>& devices, Options options);
  ~State();

  Result<WindowId> Begin(std::string_view name, const WindowOptions& window);
  Result<Measurement> End(std::string_view name, WindowEnd end);
  Result<Measurement> Peek(std::string_view name) const;
  Status Cancel(std::string_view name);
  void CancelAll();
  std::vector<std::string> OpenNames() const;
  Result<Measurement> Refined(WindowId id);
  // The refined result, or the immediate one of a window that is not settled yet.
  Result<Measurement> BestSoFar(WindowId id);
  // With what was settled since the last edge of a window, too. Under the lock.
  AttributionLedger LedgerNow(std::size_t device) const;
  TimePoint Step();
  void AddListener(Listener listener);
  void ReadNow();
  // Takes over what other processes have read of followed devices.
  void CatchUp();

  // Guards everything below it; never held during a driver call or a call to a listener.
  mutable std::mutex mutex_;
  Clock& clock_;
  const Options options_;
  EdgeLog edges_;
  std::vector<DeviceRecord> records_;
  Settlement settlement_;
  // The readings that another process takes of a device.
  struct Followed {
    std::shared_ptr<ReadingFeed> feed;      // Null where this process reads the device.
    std::optional<TimedReading> next = {};  // Taken out of the feed, but not recorded yet.
  };
  std::vector<Followed> followed_;  // One per record. Only Step() takes readings out.

 private:
  using Open = std::unordered_map<std::string, std::shared_ptr<Window>, NameHash, std::equal_to<>>;

  // Waits for the devices' work as the options ask for; whether there was anything to wait for.
  bool Synchronize() const;
  void VisitDevices(TimePoint now, bool all);
  void Visit(DeviceRecord& record, TimePoint now);
  // Takes the readings of the next stretch of time from all followed devices. Returns false when
  // there are none.
  bool FollowNextStretch(TimePoint now);
  void ShareWithOthers(TimePoint now);
  std::vector<Measurement> Settle();
  void SetOrigins();
  TimePoint SettledUntil() const;
  void Announce(TimePoint time, const Window& window, Settlement::EdgeKind kind);
  void Forget(Open::iterator window, TimePoint now);
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
  // Wall clock at the last step, so that labelling a window needs no system call.
  TimePoint wall_read_at_{};
  WallTime wall_{};
  // Edges that other processes have not been told about, and the weight that they know.
  LaneWeights own_weights_;  // Only Step() uses it.
  std::vector<LaneWeights::Edge> untold_;
  TimePoint others_known_until_{};
  bool follows_any_ = false;  // Constant after construction.

  // One step at a time. Taken before mutex_; recursive because listeners may use the monitor.
  std::recursive_mutex step_mutex_;
};

namespace {

// Beyond these, sums of weights and shares lose digits.
constexpr double kLightest = 1e-6;
constexpr double kHeaviest = 1e6;

// Followed devices are looked at this often between the edges of windows: often enough to lose no
// reading, and for other processes to see that this one is alive.
constexpr Seconds kFollowInterval{0.5};

// Windows are settled after so much time of followed readings, before curves forget their edges.
constexpr Seconds kFollowedStretch{5};

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
  CatchUp();
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
  CatchUp();
  std::unique_lock lock(mutex_);
  auto open = open_.find(name);
  if (open == open_.end()) return NotOpen(name);
  if ((open->second->synchronize && options_.synchronize) || open->second->read_at_edges) {
    const std::shared_ptr<Window> window = open->second;
    lock.unlock();
    if (window->synchronize && options_.synchronize) work_ended |= Synchronize();
    if (window->read_at_edges) ReadNow();
    CatchUp();
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

std::vector<std::string> EnergyMonitor::State::OpenNames() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, window] : open_) names.emplace_back(name);
  std::ranges::sort(names);
  return names;
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

EnergyMonitor::State::State(Clock& clock, const std::vector<MonitoredDevice>& devices,
                            Options options)
    : clock_(clock),
      options_(std::move(options)),
      settlement_(devices.size()),
      origin_known_(devices.size(), false) {
  const TimePoint now = clock.Now();
  records_.reserve(devices.size());
  for (const MonitoredDevice& device : devices) {
    records_.emplace_back(device, now, edges_);
    followed_.push_back({.feed = device.meter->Follow()});
    follows_any_ |= followed_.back().feed != nullptr;
  }
  Step();
}

EnergyMonitor::State::~State() {
  if (!options_.board) return;
  // Others need not wait until this process is missed.
  const TimePoint now = clock_.Now();
  for (std::size_t device = 0; device < records_.size(); ++device)
    options_.board->Announce(now, static_cast<unsigned>(device), 0);
}

void EnergyMonitor::State::Keep(Measurement result) {
  if (options_.kept_results == 0) return;
  while (results_in_order_.size() >= options_.kept_results) {
    results_.erase(static_cast<std::uint64_t>(results_in_order_.front()));
    results_in_order_.pop_front();
  }
  results_in_order_.push_back(result.id);
  results_.emplace(static_cast<std::uint64_t>(result.id), std::move(result));
}

void EnergyMonitor::State::AddListener(Listener listener) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(listener));
}

void EnergyMonitor::State::VisitDevices(TimePoint now, bool all) {
  for (std::size_t device = 0; device < records_.size(); ++device) {
    if (followed_[device].feed != nullptr) continue;
    DeviceRecord& record = records_[device];
    if (all || record.MayBeVisited(now)) Visit(record, now);
  }
}

void EnergyMonitor::State::Visit(DeviceRecord& record, TimePoint now) {
  DeviceRecord::Visit visit = record.Read(record.DueForTelemetry(now, options_.telemetry_interval));
  // The value belongs to the time after the call: a slow driver answers with what it has then.
  const TimePoint read_at = clock_.Now();
  if (options_.recorded) options_.recorded(record.name(), read_at, visit);
  const std::lock_guard lock(mutex_);
  record.Take(read_at, std::move(visit));
  record.ScheduleNext(read_at, options_.longest_interval);
}

bool EnergyMonitor::State::FollowNextStretch(TimePoint now) {
  std::optional<TimePoint> begin;
  for (Followed& device : followed_) {
    if (device.feed != nullptr && !device.next) device.next = device.feed->Next(now);
    if (device.next) begin = std::min(begin.value_or(device.next->time), device.next->time);
  }
  for (std::size_t i = 0; i < followed_.size(); ++i) {
    Followed& device = followed_[i];
    // A recorder settles before it learns more about the state of a GPU, and so flags of windows
    // are the same here.
    const auto in_stretch = [&](const TimedReading& reading) {
      return reading.time <= *begin ||
             (reading.time <= *begin + kFollowedStretch && !reading.reading.telemetry);
    };
    while (begin && device.next && in_stretch(*device.next)) {
      {
        const std::lock_guard lock(mutex_);
        records_[i].TakeFollowed(*std::move(device.next));
      }
      device.next = device.feed->Next(now);
    }
    const std::lock_guard lock(mutex_);
    if (device.feed != nullptr) records_[i].ScheduleAt(now + kFollowInterval);
  }
  return begin.has_value();
}

void EnergyMonitor::State::CatchUp() {
  if (!follows_any_) return;
  const std::lock_guard step(step_mutex_);
  const TimePoint now = clock_.Now();
  const bool news = std::ranges::any_of(followed_, [now](const Followed& device) {
    return device.feed != nullptr && device.feed->HasNext(now);
  });
  if (news) Step();
}

void EnergyMonitor::State::ReadNow() {
  const std::lock_guard step(step_mutex_);
  VisitDevices(clock_.Now(), true);
}

void EnergyMonitor::State::ShareWithOthers(TimePoint now) {
  if (!options_.board) return;
  std::vector<LaneWeights::Edge> untold;
  {
    const std::lock_guard lock(mutex_);
    untold.swap(untold_);
  }
  for (const LaneWeights::Edge& edge : untold) {
    const double before = own_weights_.Total();
    const double weight = own_weights_.After(edge);
    if (weight == before) continue;  // A window within another.
    for (std::size_t device = 0; device < records_.size(); ++device)
      options_.board->Announce(edge.time, static_cast<unsigned>(device), weight);
  }
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

// Windows move the ledger at their edges alone, and long ones have none for hours.
AttributionLedger EnergyMonitor::State::LedgerNow(std::size_t device) const {
  AttributionLedger ledger = settlement_.ledger(device);
  const TimePoint until = SettledUntil();
  if (!origin_known_[device] || until == TimePoint::max()) return ledger;
  ledger.Advance(std::max(records_[device].At(until).energy, ledger.energy()));
  return ledger;
}

// The energy of a device counts from where recording began, once that is known.
void EnergyMonitor::State::SetOrigins() {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (origin_known_[i] || !records_[i].known() || !records_[i].has_origin()) continue;
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
  std::vector<Measurement> finished;
  const auto settle = [&] {
    for (Measurement& result : Settle()) finished.push_back(std::move(result));
  };
  while (follows_any_ && FollowNextStretch(now)) settle();
  ShareWithOthers(now);
  settle();
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
Result<Measurement> EnergyMonitor::EndWindow(std::string_view name, WindowEnd end) {
  return state_->End(name, end);
}
Result<Measurement> EnergyMonitor::PeekWindow(std::string_view name) const {
  state_->CatchUp();
  return state_->Peek(name);
}
Status EnergyMonitor::CancelWindow(std::string_view name) { return state_->Cancel(name); }
void EnergyMonitor::CancelAllWindows() { state_->CancelAll(); }
std::vector<std::string> EnergyMonitor::OpenWindows() const { return state_->OpenNames(); }
Result<Measurement> EnergyMonitor::RefinedResult(WindowId id) {
  state_->CatchUp();
  return state_->Refined(id);
}
void EnergyMonitor::OnRefined(Listener listener) { state_->AddListener(std::move(listener)); }
TimePoint EnergyMonitor::Step() { return state_->Step(); }

Result<Measurement> EnergyMonitor::Refine(WindowId id, Seconds timeout) {
  const TimePoint deadline = clock_.Now() + timeout;
  for (;;) {
    Result<Measurement> result = RefinedResult(id);
    if (result.ok() || !result.error().retryable()) return result;
    if (clock_.Now() >= deadline) return state_->BestSoFar(id);
    clock_.SleepUntil(std::min(Step(), deadline));
  }
}

std::size_t EnergyMonitor::device_count() const { return state_->records_.size(); }

const std::string& EnergyMonitor::device_name(std::size_t device) const {
  return state_->records_[device].name();
}

bool EnergyMonitor::follows(std::size_t device) const {
  return state_->followed_[device].feed != nullptr;
}

bool EnergyMonitor::device_in_total(std::size_t device) const {
  return state_->records_[device].in_total();
}

EnergyMonitor::Present EnergyMonitor::Now(std::size_t device) const {
  state_->CatchUp();
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Now(clock_.Now());
}

EnergyMonitor::Ledger EnergyMonitor::Accounts(std::size_t device) const {
  state_->CatchUp();
  const std::lock_guard lock(state_->mutex_);
  const AttributionLedger ledger = state_->LedgerNow(device);
  return {
      .device = ledger.device(), .unattributed = ledger.unattributed(), .others = ledger.others()};
}

Result<EnergyEstimate> EnergyMonitor::EnergyBetween(std::size_t device, TimePoint begin,
                                                    TimePoint end) const {
  state_->CatchUp();
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Between(begin, end);
}

TimePoint EnergyMonitor::SettledUntil(std::size_t device) const {
  state_->CatchUp();
  const std::lock_guard lock(state_->mutex_);
  const TimePoint until = state_->records_[device].settled_until();
  return std::isinf(until.time_since_epoch().count()) ? TimePoint::min() : until;
}

std::size_t EnergyMonitor::edges_after_work() const {
  const std::lock_guard lock(state_->mutex_);
  return state_->edges_.after_work();
}

std::vector<Timeline::Sample> EnergyMonitor::History(std::size_t device, Quantity quantity,
                                                     TimePoint begin, TimePoint end) const {
  state_->CatchUp();
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Line(quantity).Between(begin, end);
}

ScopedWindow::ScopedWindow(EnergyMonitor& monitor, std::string name, Sink sink,
                           const WindowOptions& options)
    : monitor_(monitor), name_(std::move(name)), sink_(std::move(sink)), status_(Ok()) {
  const Result<WindowId> begun = monitor_.BeginWindow(name_, options);
  open_ = begun.ok();
  if (!open_) status_ = begun.error();
}

ScopedWindow::~ScopedWindow() {
  if (open_) (void)End();
}

Result<Measurement> ScopedWindow::End() {
  if (!std::exchange(open_, false))
    return Error{ErrorCode::kNotFound, "window \"" + name_ + "\" is not open any more"};
  Result<Measurement> result = monitor_.EndWindow(name_);
  if (result.ok() && sink_) sink_(result.value());
  return result;
}

}  // namespace zeus
