#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/daemon/caller.h"
#include "zeus/daemon/grant.h"
#include "zeus/daemon/knob_desk.h"
#include "zeus/daemon/lease_book.h"
#include "zeus/wire/node/lease.h"

// The rules for what a caller may ask for, as far as it does not depend on other leases. All are
// pure functions; nullopt means that nothing is wrong.
namespace zeus::daemon {

using Refused = std::optional<wire::LeaseRefusal>;

Refused Refuse(wire::LeaseRefusal::Kind kind, std::string message,
               std::optional<wire::KnobKey> knob = {});

// Demands that mean nothing, and a knob that is asked for twice.
Refused CheckShape(const std::vector<wire::KnobRequest>& requests, std::size_t most);

// Class "user" needs the right to control the device, "job" also the scope job, and "site" the
// scope budget, with which caps need no other right.
Refused CheckScopes(const Grant& grant, wire::LeaseClass lease_class,
                    const std::vector<wire::KnobRequest>& requests);

Refused CheckDevices(const Grant& grant, const std::set<std::string>& devices_of_jobs,
                     const std::vector<wire::KnobRequest>& requests);

// Whether the value is one that the device has and the caller may ask for.
Refused CheckBounds(const Grant& grant, const KnobFacts& facts, const wire::KnobRequest& request);

// The holder that a new lease asks for.
OrRefusal<Holder> HolderFor(const Caller& caller, const Grant& grant, const wire::LeaseSpec& spec,
                            const LeaseBook::Options& options);

}  // namespace zeus::daemon
