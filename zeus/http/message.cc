#include "zeus/http/message.h"

#include <fmt/format.h>

#include <iterator>

#include "zeus/base/json.h"

namespace zeus::http {
namespace {

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

Answer JsonAnswer(int status, const Json& json) {
  return {.status = status, .body = JsonText(json)};
}

Answer RefusalAnswer(int status, std::string_view code, const std::string& message,
                     Dialect dialect) {
  if (dialect == Dialect::kReference) return JsonAnswer(status, {{"detail", message}});
  return JsonAnswer(status,
                    {{"error", {{"code", code}, {"message", message}, {"field", nullptr}}}});
}

std::string ResponseText(const Answer& answer, std::string_view request_id, Connection connection,
                         Body body) {
  std::string text;
  text.reserve(256 + answer.body.size());
  const auto out = std::back_inserter(text);
  const bool may_have_body = answer.status != 204 && answer.status != 304;
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nServer: zeus\r\n", answer.status,
                 ReasonPhrase(answer.status));
  if (answer.events || body == Body::kUntilClose) {
    text += "Cache-Control: no-store\r\n";
  } else if (body == Body::kChunked) {
    text += "Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n";
  } else if (may_have_body) {
    fmt::format_to(out, "Content-Length: {}\r\n", answer.body.size());
  }
  if (may_have_body) fmt::format_to(out, "Content-Type: {}\r\n", answer.content_type);
  for (const auto& [name, value] : answer.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  fmt::format_to(out, "X-Request-Id: {}\r\n", request_id);
  text += connection == Connection::kClose ? "Connection: close\r\n\r\n" : "\r\n";
  if (body == Body::kSent) text += answer.body;
  return text;
}

}  // namespace zeus::http
