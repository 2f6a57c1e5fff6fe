#include "zeus/daemon/api/call.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

struct ErrorForm {
  int status;
  std::string_view code;
};

ErrorForm FormOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return {400, "invalid_argument"};
    case ErrorCode::kNotFound:
      return {404, "not_found"};
    case ErrorCode::kConflict:
      return {409, "conflict"};
    case ErrorCode::kNotSupported:
      return {422, "not_supported"};
    case ErrorCode::kPermissionDenied:
      return {403, "permission_denied"};
    case ErrorCode::kUnavailable:
      return {503, "unavailable"};
    case ErrorCode::kInternal:
      break;
  }
  return {500, "internal"};
}

}  // namespace

std::optional<std::string> Call::Query(const std::string& name) const {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::nullopt;
  return found->second;
}

void RouteTable::Add(NodeRoute route) {
  router_.Add({.method = route.method, .pattern = route.pattern, .query = route.query});
  routes_.push_back(std::move(route));
}

RouteTable::Match RouteTable::Find(std::string_view method,
                                   const std::vector<std::string>& segments) const {
  Match match{.match = router_.Find(method, segments)};
  if (match.match.route != nullptr)
    match.route = &routes_[static_cast<std::size_t>(match.match.route - router_.routes().data())];
  return match;
}

http::Answer ToAnswer(const wire::LeaseRefusal& refusal) {
  http::Answer answer = http::JsonAnswer(wire::StatusOf(refusal.kind), wire::ToJson(refusal));
  if (refusal.retry_after)
    answer.headers.emplace_back("Retry-After",
                                fmt::format("{:.0f}", std::ceil(refusal.retry_after->count())));
  else if (answer.status == 503)
    answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

http::Answer ToAnswer(const Error& error) {
  const ErrorForm form = FormOf(error.code);
  http::Answer answer =
      http::JsonAnswer(form.status, {{"error", {{"code", form.code}, {"message", error.message}}}});
  if (form.status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

Result<Json> BodyOf(const http::Request& request) {
  if (request.body.empty()) return Json::object();
  ZEUS_TRY(Json body, ParseJson(request.body));
  if (!body.is_object())
    return Error{ErrorCode::kInvalidArgument, "the body must be a JSON object"};
  return body;
}

Result<std::optional<double>> NumberParameter(const Call& call, const std::string& name) {
  const auto text = call.Query(name);
  if (!text) return std::optional<double>();
  const auto number = ParseDouble(*text);
  if (!number.ok() || !std::isfinite(number.value()))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: must be a number: {}", name, Quote(*text))};
  return std::optional<double>(number.value());
}

Result<std::optional<bool>> BoolParameter(const Call& call, const std::string& name) {
  const auto text = call.Query(name);
  if (!text) return std::optional<bool>();
  if (*text == "true") return std::optional<bool>(true);
  if (*text == "false") return std::optional<bool>(false);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: must be true or false: {}", name, Quote(*text))};
}

Result<std::uint64_t> WholeParameter(const Call& call, const std::string& name,
                                     std::uint64_t otherwise, std::uint64_t highest) {
  const auto text = call.Query(name);
  if (!text) return otherwise;
  const auto number = ParseUnsigned(*text);
  if (!number.ok() || number.value() > highest)
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: must be a whole number up to {}: {}",
                                                          name, highest, Quote(*text))};
  return number.value();
}

}  // namespace zeus::daemon
