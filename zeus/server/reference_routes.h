#pragma once

#include "zeus/server/router.h"
#include "zeus/server/scoped_services.h"
#include "zeus/server/server_metrics.h"

namespace zeus::server {

// The five endpoints of the reference implementation's batch-size server, for its clients. What it
// is given must outlive the router.
void AddReferenceRoutes(const JobTenants& tenants, ServerMetrics& metrics, Router& router);

}  // namespace zeus::server
