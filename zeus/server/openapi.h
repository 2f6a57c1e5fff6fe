#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/http/router.h"

namespace zeus::server {

// Returns the OpenAPI 3.1 document of a table of routes, with the JSON Schemas that they name.
Json OpenApiDocument(const std::vector<http::Route>& routes, std::string_view version);

}  // namespace zeus::server
