#include "zeus/http/openapi.h"

#include <fmt/format.h>

#include <string>

#include "zeus/base/json.h"
#include "zeus/http/router.h"

namespace zeus::http {

Json SchemaReference(std::string_view name) {
  return {{"$ref", fmt::format("#/components/schemas/{}", name)}};
}

Json SchemaContent(std::string_view name, std::string_view type) {
  return {{type, {{"schema", SchemaReference(name)}}}};
}

Json ParameterList(std::string_view pattern, const std::vector<std::string_view>& query,
                   QueryFields fields) {
  Json parameters = Json::array();
  const auto add = [&parameters](std::string_view name, const char* place, bool required) {
    parameters.push_back(
        {{"name", name}, {"in", place}, {"required", required}, {"schema", {{"type", "string"}}}});
  };
  const Target target = ParseTarget(std::string(pattern)).value();
  for (const std::string& segment : target.segments)
    if (segment.starts_with('{')) add(segment.substr(1, segment.size() - 2), "path", true);
  for (const std::string_view name : query) add(name, "query", fields == QueryFields::kRequired);
  return parameters;
}

Json TokenSecurity() { return Json::array({{{"token", Json::array()}}, Json::object()}); }

Json TokenSecuritySchemes() { return {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}; }

}  // namespace zeus::http
