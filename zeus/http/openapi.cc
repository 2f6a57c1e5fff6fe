#include "zeus/http/openapi.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/text.h"

namespace zeus::http {
namespace {

Json SchemaReference(std::string_view name) {
  return {{"$ref", fmt::format("#/components/schemas/{}", name)}};
}

Json JsonContent(std::string_view schema) {
  return {{"application/json", {{"schema", SchemaReference(schema)}}}};
}

Json Parameters(const Route& route) {
  Json parameters = Json::array();
  const Target target = ParseTarget(route.pattern).value();
  for (const std::string& segment : target.segments)
    if (segment.starts_with('{'))
      parameters.push_back({{"name", segment.substr(1, segment.size() - 2)},
                            {"in", "path"},
                            {"required", true},
                            {"schema", {{"type", "string"}}}});
  for (const std::string_view name : route.query)
    parameters.push_back({{"name", name},
                          {"in", "query"},
                          {"required", route.dialect == Dialect::kReference},
                          {"schema", {{"type", "string"}}}});
  return parameters;
}

Json AnswerObject(const Route& route, int status, const OpenApiFrame& frame) {
  Json answer = {{"description", frame.meaning(status)}};
  if (status >= 400) {
    answer["content"] = JsonContent(route.dialect == Dialect::kOurs ? "Error" : "ReferenceError");
  } else if (!route.answer_schema.empty() && status != 204) {
    answer["content"] = JsonContent(route.answer_schema);
  } else if (status == 200) {
    answer["content"] = {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  }
  return answer;
}

Json Operation(const Route& route, const OpenApiFrame& frame) {
  Json answers = Json::object();
  for (const int status : route.statuses)
    answers[std::to_string(status)] = AnswerObject(route, status, frame);
  Json operation = {{"summary", route.summary}, {"parameters", Parameters(route)}};
  if (!route.request_schema.empty())
    operation["requestBody"] = {{"content", JsonContent(route.request_schema)}};
  if (route.access != Access::kOpen) {
    for (const int status : {401, 403, 429})
      answers[std::to_string(status)] = AnswerObject(route, status, frame);
    operation["security"] = Json::array({{{"token", Json::array()}}, Json::object()});
  }
  operation["responses"] = std::move(answers);
  return operation;
}

}  // namespace

Json OpenApiDocument(const std::vector<Route>& routes, OpenApiFrame frame) {
  Json paths = Json::object();
  for (const Route& route : routes)
    paths[std::string(route.pattern)][LowerCase(route.method)] = Operation(route, frame);
  return {{"openapi", "3.1.0"},
          {"info", {{"title", frame.title}, {"version", frame.version}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", std::move(frame.schemas)},
            {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace zeus::http
