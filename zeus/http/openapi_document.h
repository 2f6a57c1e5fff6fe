#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/http/router.h"

namespace zeus::http {

// The parts of an OpenAPI document that its table of routes does not tell.
struct OpenApiFrame {
  std::string title{};
  std::string version{};
  Json schemas{};  // JSON Schemas by name, "Error" and "ReferenceError" among them.
  std::function<std::string_view(int status)> meaning{};  // The description of a status.
};

// Returns the OpenAPI 3.1 document of a table of routes, with the JSON Schemas that they name.
Json OpenApiDocument(const std::vector<Route>& routes, OpenApiFrame frame);

}  // namespace zeus::http
