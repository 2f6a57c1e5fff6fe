#include "zeus/monitor/energy_monitor.h"

#include <algorithm>
#include <utility>

#include "zeus/monitor/energy_monitor_state.h"

namespace zeus {

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
  return state_->Peek(name);
}
Status EnergyMonitor::CancelWindow(std::string_view name) { return state_->Cancel(name); }
void EnergyMonitor::CancelAllWindows() { state_->CancelAll(); }
Result<Measurement> EnergyMonitor::RefinedResult(WindowId id) { return state_->Refined(id); }
void EnergyMonitor::OnRefined(Listener listener) { state_->AddListener(std::move(listener)); }
TimePoint EnergyMonitor::Step() { return state_->Step(); }

Result<Measurement> EnergyMonitor::Refine(WindowId id, Seconds patience) {
  const TimePoint deadline = clock_.Now() + patience;
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

bool EnergyMonitor::device_in_total(std::size_t device) const {
  return state_->records_[device].in_total();
}

EnergyMonitor::Present EnergyMonitor::Now(std::size_t device) const {
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Now(clock_.Now());
}

EnergyMonitor::Ledger EnergyMonitor::Accounts(std::size_t device) const {
  const std::lock_guard lock(state_->mutex_);
  const AttributionLedger ledger = state_->LedgerNow(device);
  return {
      .device = ledger.device(), .unattributed = ledger.unattributed(), .others = ledger.others()};
}

Result<EnergyEstimate> EnergyMonitor::EnergyBetween(std::size_t device, TimePoint begin,
                                                    TimePoint end) const {
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Between(begin, end);
}

std::size_t EnergyMonitor::edges_after_work() const {
  const std::lock_guard lock(state_->mutex_);
  return state_->edges_.after_work();
}

std::vector<Timeline::Sample> EnergyMonitor::History(std::size_t device, Quantity quantity,
                                                     TimePoint begin, TimePoint end) const {
  const std::lock_guard lock(state_->mutex_);
  return state_->records_[device].Line(quantity).Between(begin, end);
}

}  // namespace zeus
