#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus {

// Which part of the energy of some devices is this process's while it has a window open, and which
// other processes of this user had meanwhile (ActivityBoard). Unlike the attribution of a window,
// windows of this process that lie inside each other do not matter. One owner; the monitor must
// outlive it.
class OwnShare {
 public:
  OwnShare(const EnergyMonitor& monitor, std::vector<std::size_t> devices)
      : monitor_(monitor), devices_(std::move(devices)) {}

  // Counts from here, to be called when the window has begun. What is not settled yet at this
  // moment counts as the others' before it: a process that has just left is not taken for company.
  void Begin();

  // The part of the energy since Begin() that was other processes', from 0 to 1: as far as it is
  // settled, which is one or two updates of the sensor behind.
  double OfOthers() const;

  // Returns the part of this process. Logs a warning once when it is not all.
  double OwnPart();
  // OwnPart() has ever found others that use more than a trifle.
  bool shared() const { return shared_; }

 private:
  EnergyMonitor::Ledger Sum() const;

  const EnergyMonitor& monitor_;
  const std::vector<std::size_t> devices_;
  EnergyMonitor::Ledger begin_{};
  bool shared_ = false;
  Joules unsettled_{};  // Used before Begin() and not yet in `begin_`.
};

}  // namespace zeus
