#include "zeus/http/routed_handler.h"

#include <exception>

#include "zeus/base/identifier.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus::http {
namespace {

Answer MalformedTarget(const Error& error) {
  return RefusalAnswer(400, "bad_request", error.message);
}

}  // namespace

Answer RoutedHandler::PageAnswer(const Request& request) const {
  return NoRouteAnswer(request, {});
}

Work RoutedHandler::Classify(const Request& request) const {
  if (IsForPage(request)) return Work::kImmediate;
  const auto target = ParseTarget(request.target);
  if (!target.ok()) return Work::kImmediate;
  return RouteWork(router_.Find(request.method, target.value().segments).route);
}

Admission RoutedHandler::Admit(const Request& header) {
  if (IsForPage(header)) return {};
  const Result<Target> target = ParseTarget(header.target);
  if (!target.ok()) return {.refusal = MalformedTarget(target.error())};
  const RouteMatch match = router_.Find(header.method, target.value().segments);
  if (match.route == nullptr) return {.refusal = NoRouteAnswer(header, match)};
  Visitor visitor;
  Admission admission{.refusal = access_.Refuse(header, *match.route, visitor),
                      .large_body = match.route->large_body,
                      .vital = match.route->vital};
  if (admission.refusal) admission.refusal->route = match.route->pattern;
  return admission;
}

Answer RoutedHandler::AnswerByRoute(Request& request) {
  if (IsForPage(request)) return PageAnswer(request);
  Result<Target> target = ParseTarget(request.target);
  if (!target.ok()) return MalformedTarget(target.error());
  RouteMatch match = router_.Find(request.method, target.value().segments);
  if (match.route == nullptr) return NoRouteAnswer(request, match);
  const Route& route = *match.route;
  request.parameters = std::move(match.parameters);
  request.query = std::move(target.value().query);
  Answer answer;
  Visitor visitor;
  auto refusal = access_.Refuse(request, route, visitor);
  request.user = visitor.user;
  request.name_space = visitor.name_space;
  request.may_change = visitor.role != Role::kRead;
  if (refusal) {
    answer = *std::move(refusal);
  } else if (const Status known = CheckQuery(route, request); !known.ok()) {
    answer = ErrorAnswer(known.error(), route.dialect);
  } else {
    Result<Answer> handled = route.handler(request);
    answer =
        handled.ok() ? std::move(handled).value() : ErrorAnswer(handled.error(), route.dialect);
  }
  answer.route = route.pattern;
  if (!answer.changed_topic.empty()) {
    answer.changed_topic = ScopedId(request.name_space, answer.changed_topic);
    NoteChange(answer.changed_topic);
  }
  return answer;
}

Answer RoutedHandler::Handle(Request& request) {
  try {
    return AnswerByRoute(request);
  } catch (const std::exception& error) {
    log::Failure("{} {}: {}", request.method, Printable(request.target), error.what());
    return RefusalAnswer(500, "internal", "the server failed to answer: its log says why");
  }
}

Answer RoutedHandler::Refusal(int status, const std::string& why) {
  const char* code = status == 408                    ? "timeout"
                     : status == 413 || status == 431 ? "too_large"
                     : status == 501                  ? "not_supported"
                     : status == 503                  ? "unavailable"
                                                      : "bad_request";
  Answer answer = RefusalAnswer(status, code, why);
  if (status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

}  // namespace zeus::http
