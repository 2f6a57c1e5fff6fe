#include "zeus/wire/error.h"

#include <fmt/format.h>

#include <array>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/wire/requests.h"

namespace zeus::wire {
namespace {

struct CodeEntry {
  ErrorCode code;
  int status;
  std::string_view name;
};

constexpr std::array kCodes = {
    CodeEntry{ErrorCode::kInvalidArgument, 422, "invalid_argument"},
    CodeEntry{ErrorCode::kNotFound, 404, "not_found"},
    CodeEntry{ErrorCode::kConflict, 409, "conflict"},
    CodeEntry{ErrorCode::kNotSupported, 501, "not_supported"},
    CodeEntry{ErrorCode::kPermissionDenied, 403, "permission_denied"},
    CodeEntry{ErrorCode::kUnavailable, 503, "unavailable"},
    CodeEntry{ErrorCode::kInternal, 500, "internal"},
};

const CodeEntry& FindCode(ErrorCode code) {
  for (const CodeEntry& entry : kCodes)
    if (entry.code == code) return entry;
  return kCodes.back();
}

}  // namespace

std::string_view Name(ErrorCode code) { return FindCode(code).name; }

int StatusOf(ErrorCode code) { return FindCode(code).status; }

ErrorCode ErrorCodeFor(int status) {
  for (const CodeEntry& entry : kCodes)
    if (entry.status == status) return entry.code;
  // Timeouts, rate limits and proxies that cannot reach the server may pass.
  if (status == 408 || status == 429 || status == 502 || status == 504)
    return ErrorCode::kUnavailable;
  if (status == 401) return ErrorCode::kPermissionDenied;
  return status >= 400 && status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kInternal;
}

std::string FieldOf(const Error& error) {
  if (error.code != ErrorCode::kInvalidArgument && error.code != ErrorCode::kConflict &&
      error.code != ErrorCode::kNotFound)
    return "";
  const auto colon = error.message.find(": ");
  if (colon == std::string::npos) return "";
  const std::string_view name = std::string_view(error.message).substr(0, colon);
  return name.find_first_of(" \"'") == std::string_view::npos ? std::string(name) : "";
}

Json ToJson(const Error& error) {
  const std::string field = FieldOf(error);
  return {{"error",
           {{"code", Name(error.code)},
            {"message", error.message},
            {"field", field.empty() ? Json() : Json(field)}}}};
}

Error ErrorFromAnswer(int status, std::string_view body) {
  const Result<Json> json = ParseBody(body);
  if (json.ok()) {
    const Json& object = json.value().contains("error") ? json.value().at("error") : json.value();
    const Result<std::string> message = object.is_object()
                                            ? GetField<std::string>(object, "message")
                                            : Error{ErrorCode::kInvalidArgument, ""};
    if (message.ok()) return {ErrorCodeFor(status), message.value()};
  }
  return {ErrorCodeFor(status), fmt::format("the server answered with status {}: {}", status,
                                            body.empty() ? "nothing" : Quote(body))};
}

}  // namespace zeus::wire
