#include "zeus/server/openapi.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/server/target.h"

namespace zeus::server {
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

std::string_view Meaning(int status) {
  switch (status) {
    case 200:
      return "Done";
    case 201:
      return "Created";
    case 204:
      return "Done; there is nothing to say";
    case 400:
      return "There is no such job";
    case 401:
      return "The token is missing or wrong";
    case 403:
      return "The token may not do this, a quota is full, or a foreign page asked for it";
    case 404:
      return "There is no such job, trial or plan";
    case 409:
      return "At odds with what is already there";
    case 422:
      return "The request makes no sense; the error names the field";
    case 429:
      return "Too many wrong tokens came from this address";
    default:
      return "Try again later";
  }
}

Json AnswerOf(const Route& route, int status) {
  Json answer = {{"description", Meaning(status)}};
  if (status >= 400) {
    answer["content"] = JsonContent(route.dialect == Dialect::kOurs ? "Error" : "ReferenceError");
  } else if (!route.answer_schema.empty() && status != 204) {
    answer["content"] = JsonContent(route.answer_schema);
  } else if (status == 200) {
    answer["content"] = {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  }
  return answer;
}

Json Operation(const Route& route) {
  Json answers = Json::object();
  for (const int status : route.statuses) answers[std::to_string(status)] = AnswerOf(route, status);
  Json operation = {{"summary", route.summary}, {"parameters", Parameters(route)}};
  if (!route.request_schema.empty())
    operation["requestBody"] = {{"content", JsonContent(route.request_schema)}};
  if (route.access != Access::kOpen) {
    for (const int status : {401, 403, 429})
      answers[std::to_string(status)] = AnswerOf(route, status);
    operation["security"] = Json::array({{{"token", Json::array()}}, Json::object()});
  }
  operation["responses"] = std::move(answers);
  return operation;
}

}  // namespace

Json OpenApiDocument(const std::vector<Route>& routes, std::string_view version) {
  Json paths = Json::object();
  for (const Route& route : routes)
    paths[std::string(route.pattern)][LowerCase(route.method)] = Operation(route);
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "Zeus job server"}, {"version", version}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", OpenApiSchemas()},
            {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace zeus::server
