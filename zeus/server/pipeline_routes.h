#pragma once

#include "zeus/base/units.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/server/quotas.h"
#include "zeus/server/router.h"

namespace zeus::server {

// The four endpoints of the reference implementation's pipeline optimizer, for its clients. A rank
// that asks for its schedule waits, without a thread, until the others are there; at most
// `patience`. `quotas` may be null. What it is given must outlive the router.
void AddPipelineRoutes(PipelineSessions& sessions, Quotas* quotas, Seconds patience,
                       Router& router);

}  // namespace zeus::server
