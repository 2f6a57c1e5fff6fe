#include <limits>

#include "zeus/monitor/energy_monitor_state.h"

namespace zeus {

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
  for (DeviceRecord& record : records_) {
    if (!all && !record.MayBeVisited(now)) continue;
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

}  // namespace zeus
