#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/http/router.h"

namespace zeus::colosseum {

// Returns the OpenAPI 3.1 document of the Colosseum's routes.
Json OpenApiDocument(const std::vector<http::Route>& routes, std::string_view version);

}  // namespace zeus::colosseum
