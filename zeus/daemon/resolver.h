#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "zeus/device/knobs/knob.h"
#include "zeus/wire/node/lease.h"

// The rule that says what holds on a knob. It is a pure function: the table is in docs/daemon.md.
namespace zeus::daemon {

// The demand of one lease on one knob.
struct Claim {
  std::string lease{};    // Its id.
  std::string name{};     // For people.
  std::string subject{};  // The subject of the lease's owner: "uid:1001".
  wire::LeaseClass lease_class = wire::LeaseClass::kUser;
  wire::Demand demand{wire::SwitchedOn{}};
  std::uint64_t order = 0;  // Grows with every request; a later claim never displaces its class.
};

// The outcome of all claims on one knob.
struct Resolution {
  // nullopt: the baseline holds, and the knob is not to be turned.
  std::optional<wire::KnobValue> effective{};
  std::string bound_by{};             // Id of the lease that decides; empty for the baseline.
  std::set<std::string> overruled{};  // Ids of leases whose exclusive demand gives way.

  friend bool operator==(const Resolution&, const Resolution&) = default;
};

// `baseline` is the value before the first claim; nullopt: clocks that are not locked. `choices`
// are those that the device and the bounds for everybody leave.
Resolution Resolve(const std::optional<wire::KnobValue>& baseline,
                   const std::optional<KnobChoices>& choices, const std::vector<Claim>& claims);

// Returns the claim that forbids `asked` (its class holds the knob exclusively, a higher class
// does, or the ranges of clocks have nothing in common), or null. Claims of the same lease do not
// count.
const Claim* FindConflict(const std::vector<Claim>& claims, const Claim& asked);

}  // namespace zeus::daemon
