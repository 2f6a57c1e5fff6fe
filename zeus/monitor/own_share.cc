#include "zeus/monitor/own_share.h"

#include <algorithm>
#include <utility>

#include "zeus/base/log.h"

namespace zeus {
namespace {

// Others that use less of the energy than this do not disturb.
constexpr double kTrifle = 0.01;

}  // namespace

EnergyMonitor::Ledger OwnShare::Sum() const {
  EnergyMonitor::Ledger sum{};
  for (const std::size_t device : devices_) {
    const EnergyMonitor::Ledger ledger = monitor_.Accounts(device);
    sum.device += ledger.device;
    sum.others += ledger.others;
  }
  return sum;
}

void OwnShare::Begin() {
  begin_ = Sum();
  Joules recorded{};
  for (const std::size_t device : devices_) {
    const auto present = monitor_.Now(device);
    if (present.total.ok()) recorded += present.total.value();
  }
  unsettled_ = std::max(recorded - begin_.device, Joules(0));
}

double OwnShare::OfOthers() const {
  const EnergyMonitor::Ledger now = Sum();
  const Joules used = now.device - begin_.device - unsettled_;
  if (!(used > Joules(0))) return 0;
  return std::clamp((now.others - begin_.others - unsettled_) / used, 0.0, 1.0);
}

double OwnShare::OwnPart() {
  const double others = OfOthers();
  if (others > kTrifle && !std::exchange(shared_, true))
    log::Warning(
        "other processes use the GPUs of this run too, {:.0f} % of the energy is theirs: it gets "
        "its own part, and nothing is learned from it",
        100 * others);
  return 1 - others;
}

}  // namespace zeus
