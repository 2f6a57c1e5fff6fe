#include "zeus/http/openapi_document.h"

#include <utility>

#include "zeus/base/text.h"
#include "zeus/http/openapi.h"

namespace zeus::http {
namespace {

Json AnswerObject(const Route& route, int status, const OpenApiFrame& frame) {
  Json answer = {{"description", frame.meaning(status)}};
  if (status >= 400) {
    answer["content"] = SchemaContent(route.dialect == Dialect::kOurs ? "Error" : "ReferenceError");
  } else if (!route.answer_schema.empty() && status != 204) {
    answer["content"] = SchemaContent(route.answer_schema);
  } else if (status == 200) {
    answer["content"] = {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  }
  return answer;
}

Json Operation(const Route& route, const OpenApiFrame& frame) {
  Json answers = Json::object();
  for (const int status : route.statuses)
    answers[std::to_string(status)] = AnswerObject(route, status, frame);
  Json operation = {
      {"summary", route.summary},
      {"parameters", ParameterList(route.pattern, route.query,
                                   route.dialect == Dialect::kReference ? QueryFields::kRequired
                                                                        : QueryFields::kOptional)}};
  if (!route.request_schema.empty())
    operation["requestBody"] = {{"content", SchemaContent(route.request_schema)}};
  if (route.access != Access::kOpen) {
    for (const int status : {401, 403, 429})
      answers[std::to_string(status)] = AnswerObject(route, status, frame);
    operation["security"] = TokenSecurity();
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
           {{"schemas", std::move(frame.schemas)}, {"securitySchemes", TokenSecuritySchemes()}}}};
}

}  // namespace zeus::http
