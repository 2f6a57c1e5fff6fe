#pragma once

#include <span>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"

namespace zeus {

// The state of a job's policy as its events, one after the other, make it. Equal, byte for byte, to
// what is stored with the job if no result was lost or counted twice. kInternal, naming the event,
// when an event could not have happened.
Result<Json> ReplayPolicy(const Job& job, std::span<const JobEvent> events);

}  // namespace zeus
