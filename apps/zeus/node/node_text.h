#pragma once

#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/client/node/node_view.h"
#include "zeus/wire/node/lease.h"

// The text that `zeus node` and `zeus lease` show to people.
namespace zeus::cli {

// The devices behind the daemon with their power, limit and the knobs that this user may turn.
std::string ToText(const client::NodeView& node, const std::vector<client::ReadingView>& readings,
                   const Json& identity);

// One row per lease and knob; a sentence when there is none.
std::string ToText(const std::vector<wire::LeaseView>& leases);

// "200 W, at most 180 W by lease_7 (site)": a knob of a lease as it was asked for, and what holds.
std::string KnobText(const wire::KnobView& knob);

}  // namespace zeus::cli
