#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/daemon/api/call.h"

namespace zeus::daemon {

// The OpenAPI 3.1 description of the routes.
Json OpenApiDocument(const std::vector<NodeRoute>& routes, std::string_view version);

}  // namespace zeus::daemon
