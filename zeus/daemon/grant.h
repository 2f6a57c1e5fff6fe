#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/daemon/scope.h"
#include "zeus/wire/node/lease.h"

namespace zeus::daemon {

// How far a knob may be turned.
struct KnobBounds {
  std::optional<Watts> min_watts{};
  std::optional<double> max_share{};  // Share of the highest setting of the device, 0 to 1.
  std::optional<Hertz> min_hertz{};

  // The stricter of both.
  KnobBounds And(const KnobBounds& other) const;
};

// Everything that one caller may do: the union of the scopes of the rules that match, and the
// strictest of their bounds. Immutable.
struct Grant {
  ScopeSet scopes{};
  bool all_devices = false;
  bool devices_of_jobs = false;     // Those of jobs that the caller belongs to.
  std::set<std::string> devices{};  // UUIDs or PCI addresses, besides the above.
  std::map<wire::LeaseKnob, KnobBounds> bounds{};
  std::size_t leases = 64;                              // At once.
  std::map<wire::LeaseKnob, double> sets_per_second{};  // 10, clocks 200, where not said.
  std::vector<std::string> rules{};  // Names of the rules that matched, for people.

  bool admin() const { return scopes.Has(Scope::kAdmin); }
};

}  // namespace zeus::daemon
