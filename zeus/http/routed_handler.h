#pragma once

#include <optional>
#include <string>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/http/access_control.h"
#include "zeus/http/message.h"
#include "zeus/http/router.h"

namespace zeus::http {

// Answers requests by a table of routes: finds the route, checks the caller, and calls it. Derived
// classes fill table() in their constructors. Thread-safe after that.
class RoutedHandler : public RequestHandler {
 public:
  Work Classify(const Request& request) const override;
  // Checks the caller by the header alone, so that strangers cannot fill the memory with bodies.
  Admission Admit(const Request& header) override;
  Answer Handle(Request& request) override;
  Answer Refusal(int status, const std::string& why) override;

  const Router& router() const { return router_; }

 protected:
  explicit RoutedHandler(AccessControl::Options access) : access_(std::move(access)) {}

  // The answer to an error of a route's handler.
  virtual Answer ErrorAnswer(const Error& error, Dialect dialect) const = 0;
  // Whether the request is answered by PageAnswer() instead of a route, for all callers.
  virtual bool IsForPage(const Request& /*request*/) const { return false; }
  virtual Answer PageAnswer(const Request& request) const;

  // Called when an answer has changed a topic, after its name space was put before it.
  virtual void NoteChange(const std::string& /*topic*/) {}

  Router& table() { return router_; }
  const AccessControl& access() const { return access_; }

 private:
  Answer AnswerByRoute(Request& request);

  AccessControl access_;
  Router router_{};
};

}  // namespace zeus::http
