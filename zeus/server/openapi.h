#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/server/router.h"

namespace zeus::server {

// The OpenAPI 3.1 document of a table of routes.
Json OpenApiDocument(const std::vector<Route>& routes, std::string_view version);

// JSON Schemas by the names that routes use.
Json OpenApiSchemas();
// Those of them that are about pipelines.
Json OpenApiPlanSchemas();

}  // namespace zeus::server
