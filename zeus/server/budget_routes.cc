#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/budget/budget_server.h"
#include "zeus/server/routes.h"
#include "zeus/wire/requests.h"

// The routes of a power budget: what people ask and set, and the reports of nodes.
namespace zeus::server {
namespace {

using budget::BudgetServer;

// A node reports with a token of its own, called "node:" and its name, and no other one does.
Result<http::Answer> Report(BudgetServer& budget, const http::Request& request) {
  const std::string& node = request.parameters[0];
  if (const Status name = budget::CheckNodeName(node); !name.ok())
    return FieldError("name", name.error().message);
  if (!request.user.empty() && request.user != "node:" + node)
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("the token is called {0}, but only the token that is called node:{1} "
                             "may report for {1}: zeus serve --new-token node:{1} makes it",
                             Printable(request.user), node)};
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(budget::NodeReport report, budget::ParseNodeReport(body));
  report.node = node;
  ZEUS_TRY(const budget::Grant grant, budget.Report(report));
  return http::JsonAnswer(200, ToJson(grant));
}

Result<http::Answer> PutBudget(BudgetServer& budget, const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  BudgetServer::Wish wish;
  double watts = 0;
  bool look_only = false;
  FieldReader reader("a budget", body);
  reader.Require("watts", watts);
  reader.ReadUnlessNull("domain", wish.domain);
  reader.Read("confirm", wish.confirmed);
  reader.Read("look_only", look_only);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  wish.watts = Watts(watts);
  ZEUS_TRY(const std::vector<std::string> effect, budget.Effect(wish));
  if (!look_only) ZEUS_RETURN_IF_ERROR(budget.SetWatts(wish));
  Json answer = budget.Show();
  answer["effect"] = effect;
  return http::JsonAnswer(200, answer);
}

Result<http::Answer> PostTarget(BudgetServer& budget, const http::Request& request) {
  ZEUS_TRY(Json body, wire::ParseBody(request.body));
  bool confirmed = false;
  if (body.is_object() && body.contains("confirm")) {
    ZEUS_TRY(confirmed, GetField<bool>(body, "confirm"));
    body.erase("confirm");
  }
  ZEUS_TRY(budget::Target target, budget::ParseTarget(body));
  ZEUS_TRY(target, budget.AddTarget(std::move(target), confirmed));
  return http::JsonAnswer(201, ToJson(target));
}

// The events of the budget. The server must outlive the stream.
class BudgetEventStream final : public http::EventSource {
 public:
  BudgetEventStream(BudgetServer& budget, std::uint64_t seen) : budget_(budget), seen_(seen) {}

  // The budget is looked at once a second, whatever changes.
  const std::string& topic() const override { return topic_; }
  Result<std::string> Next() override {
    std::string text;
    for (const BudgetServer::Event& event : budget_.EventsAfter(seen_)) {
      seen_ = event.number;
      text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.number, event.kind,
                          JsonText({{"at", event.at}, {"message", event.text}}));
    }
    return text;
  }

 private:
  BudgetServer& budget_;
  const std::string topic_{};
  std::uint64_t seen_;
};

Result<http::Answer> FollowEvents(BudgetServer& budget, const http::Request& request) {
  const auto seen = ParseUnsigned(request.last_event_id);
  return http::Answer{
      .content_type = "text/event-stream",
      .events = std::make_shared<BudgetEventStream>(budget, seen.ok() ? seen.value() : 0)};
}

void AddReadingRoutes(BudgetServer& budget, http::Router& router) {
  const auto add = [&](std::string_view pattern, std::string_view schema, std::string_view summary,
                       auto handle) {
    router.Add({.method = "GET",
                .pattern = pattern,
                .handler = [&budget, handle](const http::Request& request) -> Result<http::Answer> {
                  return handle(budget, request);
                },
                .summary = summary,
                .answer_schema = schema,
                .statuses = {200}});
  };
  add("/v1/budget", "Budget", "The power budget: what is committed, drawn and free in every domain",
      [](BudgetServer& b, const http::Request&) { return http::JsonAnswer(200, b.Show()); });
  add("/v1/budget/schedule", "BudgetSchedule",
      "Targets of the power budget, in the order of their rank",
      [](BudgetServer& b, const http::Request&) {
        return http::JsonAnswer(200, b.ShowSchedule());
      });
  add("/v1/budget/jobs", "BudgetJobs",
      "Power limit and slowdown of every job, and what a watt more would save",
      [](BudgetServer& b, const http::Request&) { return http::JsonAnswer(200, b.ShowJobs()); });
  add("/v1/budget/events", "BudgetEvent",
      "The events of the power budget, live, as server-sent events", FollowEvents);
}

}  // namespace

void AddBudgetRoutes(BudgetServer& budget, http::Router& router) {
  AddReadingRoutes(budget, router);
  const auto add = [&](http::Route route, auto handle) {
    route.handler = [&budget, handle](const http::Request& request) {
      return handle(budget, request);
    };
    router.Add(std::move(route));
  };
  add({.method = "POST",
       .pattern = "/v1/nodes/{name}/report",
       .access = http::Access::kWrite,
       .summary = "A node's devices and what holds on them; the answer is its next grant of watts",
       .request_schema = "NodeReport",
       .answer_schema = "Grant",
       .statuses = {200, 403, 422, 503}},
      Report);
  add({.method = "PUT",
       .pattern = "/v1/budget",
       .access = http::Access::kAdmin,
       .summary = "Set the power budget of a domain, or look at the effect",
       .request_schema = "BudgetWish",
       .answer_schema = "Budget",
       .statuses = {200, 404, 409, 422}},
      PutBudget);
  add({.method = "POST",
       .pattern = "/v1/budget/targets",
       .access = http::Access::kAdmin,
       .summary = "Change the power budget of a domain for some time",
       .request_schema = "BudgetTarget",
       .answer_schema = "BudgetTarget",
       .statuses = {201, 404, 409, 422}},
      PostTarget);
  add({.method = "DELETE",
       .pattern = "/v1/budget/targets/{id}",
       .access = http::Access::kAdmin,
       .summary = "Remove a target of the power budget",
       .statuses = {204, 404}},
      [](BudgetServer& b, const http::Request& request) -> Result<http::Answer> {
        ZEUS_RETURN_IF_ERROR(b.RemoveTarget(request.parameters[0]));
        return http::Answer{.status = 204};
      });
  add({.method = "DELETE",
       .pattern = "/v1/nodes/{name}",
       .access = http::Access::kAdmin,
       .summary = "Commit no watts any more for a node that is switched off",
       .statuses = {204, 404, 409}},
      [](BudgetServer& b, const http::Request& request) -> Result<http::Answer> {
        ZEUS_RETURN_IF_ERROR(b.Forget(request.parameters[0]));
        return http::Answer{.status = 204};
      });
}

}  // namespace zeus::server
