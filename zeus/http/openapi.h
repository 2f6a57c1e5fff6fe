#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"

// The parts of an OpenAPI document that do not depend on the server that it describes.
namespace zeus::http {

// {"$ref": "#/components/schemas/NAME"}
Json SchemaReference(std::string_view name);
// The "content" of a body of this schema.
Json SchemaContent(std::string_view name, std::string_view type = "application/json");

// The "parameters" of a route: those in its path ("/v1/jobs/{id}"), and those of its query.
enum class QueryFields { kOptional, kRequired };
Json ParameterList(std::string_view pattern, const std::vector<std::string_view>& query,
                   QueryFields fields);

// The "security" of a route that a token opens, where callers without one are known by other means
// as well; and the "securitySchemes" that it names.
Json TokenSecurity();
Json TokenSecuritySchemes();

}  // namespace zeus::http
