#include "zeus/server/json_answer.h"

#include "zeus/base/json.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/error.h"
#include "zeus/wire/reference.h"

namespace zeus::server {

HttpAnswer JsonAnswer(int status, const Json& json) {
  return {.status = status, .body = wire::Text(json)};
}

HttpAnswer ErrorAnswer(const Error& error, Dialect dialect) {
  const int status = wire::StatusOf(error.code);
  HttpAnswer answer =
      JsonAnswer(status, dialect == Dialect::kOurs ? wire::ToJson(error)
                                                   : wire::reference::ErrorToJson(error, "body"));
  if (error.retryable()) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

HttpAnswer RefusalAnswer(int status, std::string_view code, const std::string& message,
                         Dialect dialect) {
  if (dialect == Dialect::kReference) return JsonAnswer(status, {{"detail", message}});
  return JsonAnswer(status,
                    {{"error", {{"code", code}, {"message", message}, {"field", nullptr}}}});
}

}  // namespace zeus::server
