#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/server/routes.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/overviews.h"
#include "zeus/wire/reference.h"
#include "zeus/wire/requests.h"

namespace zeus::server {
namespace {

// Frees the parsed body, which may be large, before the solver runs for long.
Result<PlanSpec> ParseSpec(const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  return PlanSpecFromJson(body);
}

Result<http::Answer> Submit(PlanService& service, ServerMetrics& metrics,
                            const http::Request& request) {
  ZEUS_TRY(const PlanSpec spec, ParseSpec(request));
  ZEUS_TRY(const CurrentPlan current, service.Submit(spec));
  http::Answer answer = http::JsonAnswer(current.created ? 201 : 200, wire::ToJson(current));
  if (!current.created) return answer;
  metrics.CountPlan();
  answer.headers.emplace_back("Location", "/v1/plans/" + current.id);
  return answer;
}

Result<http::Answer> ListPlans(PlanService& service, const http::Request& request) {
  ZEUS_TRY(const int limit, PageSize(request.query));
  ZEUS_TRY(const std::vector<std::string> ids,
           service.List(FindParameter(request.query, "after").value_or(""), limit));
  const bool full = ids.size() == static_cast<std::size_t>(limit);
  return http::JsonAnswer(200, {{"plans", ids}, {"next", full ? Json(ids.back()) : Json()}});
}

Result<http::Answer> SummarizePlans(PlanService& service, const http::Request& request) {
  ZEUS_TRY(const int limit, PageSize(request.query));
  ZEUS_TRY(const std::vector<std::string> ids,
           service.List(FindParameter(request.query, "after").value_or(""), limit));
  Json list = Json::array();
  for (const std::string& id : ids) {
    const Result<PlanSummary> summary = service.Summarize(id);
    if (summary.ok())
      list.push_back(wire::ToJson(summary.value()));
    else if (summary.error().code != ErrorCode::kNotFound)  // It was deleted meanwhile.
      return summary.error();
  }
  const bool full = ids.size() == static_cast<std::size_t>(limit);
  return http::JsonAnswer(200,
                          {{"plans", std::move(list)}, {"next", full ? Json(ids.back()) : Json()}});
}

// A caller that already has the latest version gets 204 at once, and no plan is made.
Result<http::Answer> GetPlan(PlanService& service, const http::Request& request) {
  ZEUS_TRY(const std::int64_t known, IntegerParameter(request.query, "after_version", 0));
  ZEUS_TRY(const std::optional<CurrentPlan> newer, service.GetNewer(request.parameters[0], known));
  if (!newer) return http::Answer{.status = 204};
  return http::JsonAnswer(200, wire::ToJson(*newer));
}

Result<http::Answer> GetFrontier(PlanService& service, const http::Request& request) {
  ZEUS_TRY(const PlanFrontier frontier, service.GetFrontier(request.parameters[0]));
  return http::JsonAnswer(200, wire::ToJson(frontier));
}

Result<Seconds> ReadDeadline(PlanService& service, const http::Request& request) {
  const bool relative = request.query.contains("slowdown");
  if (relative == request.query.contains("deadline_seconds"))
    return Error{ErrorCode::kInvalidArgument,
                 "deadline_seconds: give this, or slowdown (1.05 is 5 % over the baseline), but "
                 "not both"};
  ZEUS_TRY(const double number,
           PositiveParameter(request.query, relative ? "slowdown" : "deadline_seconds"));
  if (!relative) return Seconds(number);
  ZEUS_TRY(const PlanFrontier frontier, service.GetFrontier(request.parameters[0]));
  return number * frontier.baseline_time;
}

Result<http::Answer> GetPlanFor(PlanService& service, const http::Request& request) {
  ZEUS_TRY(const Seconds deadline, ReadDeadline(service, request));
  ZEUS_TRY(const pipeline::PipelinePlan plan, service.PlanFor(request.parameters[0], deadline));
  return http::JsonAnswer(200, pipeline::ToJson(plan));
}

Result<http::Answer> ReportPace(PlanService& service, ServerMetrics& metrics,
                                const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const wire::PaceReport report, wire::PaceFromJson(body));
  if (report.rank) {
    ZEUS_TRY(const CurrentPlan present, service.Get(request.parameters[0]));
    if (*report.rank < 0 || *report.rank >= present.ranks)
      return FieldError("rank", fmt::format("must be between 0 and {}", present.ranks - 1));
  }
  ZEUS_TRY(const CurrentPlan current, service.ReportPace(request.parameters[0], report.pace));
  metrics.CountPaceReport();
  return http::JsonAnswer(200, wire::ToJson(current));
}

Result<http::Answer> DeletePlan(PlanService& service, const http::Request& request) {
  ZEUS_RETURN_IF_ERROR(service.Delete(request.parameters[0]));
  return http::Answer{.status = 204};
}

void AddReadingRoutes(const PlanTenants& tenants, http::Router& router) {
  router.Add({.method = "GET",
              .pattern = "/v1/plans",
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return ListPlans(service, r);
              }),
              .summary = "List the ids of plans",
              .answer_schema = "PlanPage",
              .statuses = {200, 422},
              .query = {"after", "limit"}});
  router.Add({.method = "GET",
              .pattern = "/v1/plan-summaries",
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return SummarizePlans(service, r);
              }),
              .summary = "List plans with their shape, without solving any",
              .answer_schema = "PlanSummaryPage",
              .statuses = {200, 422},
              .query = {"after", "limit"}});
  router.Add({.method = "GET",
              .pattern = "/v1/plans/{id}",
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return GetPlan(service, r);
              }),
              .summary = "The plan that holds now; 204 when after_version is the latest",
              .answer_schema = "CurrentPlan",
              .statuses = {200, 204, 404, 422},
              .query = {"after_version"},
              .slow = true});
  router.Add({.method = "GET",
              .pattern = "/v1/plans/{id}/frontier",
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return GetFrontier(service, r);
              }),
              .summary = "The least energy of an iteration for every time that it may take",
              .answer_schema = "PlanFrontier",
              .statuses = {200, 404},
              .slow = true});
  router.Add({.method = "GET",
              .pattern = "/v1/plans/{id}/plan",
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return GetPlanFor(service, r);
              }),
              .summary = "A plan for any deadline; the one that holds stays",
              .answer_schema = "Plan",
              .statuses = {200, 404, 422},
              .query = {"deadline_seconds", "slowdown"},
              .slow = true});
}

}  // namespace

void AddPlanRoutes(const PlanTenants& tenants, ServerMetrics& metrics, http::Router& router) {
  AddReadingRoutes(tenants, router);
  router.Add({.method = "POST",
              .pattern = "/v1/plans",
              .access = http::Access::kWrite,
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return Submit(service, metrics, r);
              }),
              .summary = "Submit a pipeline's profile and schedule, and get the plan for it",
              .request_schema = "PlanSpec",
              .answer_schema = "CurrentPlan",
              .statuses = {200, 201, 409, 422},
              .slow = true,
              .large_body = true});
  router.Add({.method = "POST",
              .pattern = "/v1/plans/{id}/pace",
              .access = http::Access::kWrite,
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return ReportPace(service, metrics, r);
              }),
              .summary = "Tell how long iterations take because of a straggler; null: it is gone",
              .request_schema = "PaceReport",
              .answer_schema = "CurrentPlan",
              .statuses = {200, 404, 422},
              .slow = true});
  router.Add({.method = "DELETE",
              .pattern = "/v1/plans/{id}",
              .access = http::Access::kWrite,
              .handler = tenants.Plans([&](ScopedPlanService& service, const http::Request& r) {
                return DeletePlan(service, r);
              }),
              .summary = "Delete a plan",
              .statuses = {204, 404}});
}

namespace {

namespace reference = wire::reference;

// The reference answers null to requests that only inform it.
http::Answer NullAnswer() { return http::JsonAnswer(200, Json()); }

Result<http::Answer> RegisterJob(PipelineSessions& sessions, Quotas* quotas,
                                 const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const PipelineSession asked, reference::PipelineFromJson(body));
  // A registered pipeline gets a plan, so the quota of plans applies.
  if (quotas != nullptr) ZEUS_RETURN_IF_ERROR(quotas->CheckPlan(request.name_space));
  ZEUS_TRY(const PipelineSession session, sessions.Register(asked, request.name_space));
  return http::JsonAnswer(200, WithoutNameSpace(session.id));
}

Result<http::Answer> RegisterRank(PipelineSessions& sessions, const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const SessionRank rank, reference::RankFromJson(body));
  ZEUS_TRY(const std::string id, InnerId(request.name_space, request.parameters[0]));
  ZEUS_TRY(const bool complete, sessions.AddRank(id, rank));
  http::Answer answer = NullAnswer();
  // The ranks that wait have something to see only when all have registered.
  if (complete) answer.changed_topic = request.parameters[0];
  return answer;
}

// Frees the parsed body, which may be large, before the solver runs for long.
Result<RankReport> ParseReport(const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  return reference::RankReportFromJson(body);
}

Result<http::Answer> AcceptResult(PipelineSessions& sessions, const http::Request& request) {
  ZEUS_TRY(const RankReport report, ParseReport(request));
  ZEUS_TRY(const std::string id, InnerId(request.name_space, request.parameters[0]));
  ZEUS_TRY(const bool ended, sessions.Report(id, report));
  http::Answer answer = NullAnswer();
  if (ended) answer.changed_topic = request.parameters[0];
  return answer;
}

// Waits for the clocks of one rank.
class AwaitedSchedule final : public http::AwaitedAnswer {
 public:
  AwaitedSchedule(PipelineSessions& sessions, std::string id, int rank, Seconds timeout)
      : sessions_(sessions), id_(std::move(id)), rank_(rank), timeout_(timeout) {}

  const std::string& topic() const override { return id_; }
  Seconds timeout() const override { return timeout_; }

  std::optional<http::Answer> Next() override {
    const auto clocks = sessions_.ClocksFor(id_, rank_);
    if (!clocks.ok()) return ErrorAnswer(clocks.error(), http::Dialect::kReference);
    if (clocks.value()) return http::JsonAnswer(200, reference::ToJson(rank_, *clocks.value()));
    const auto registered = sessions_.RegisteredRanks(id_);
    if (registered.ok()) registered_ = registered.value();
    return std::nullopt;
  }

  http::Answer TimeoutAnswer() override {
    return ErrorAnswer(
        {ErrorCode::kUnavailable,
         fmt::format("the other ranks of {} did not come in time ({} have registered): ask again",
                     id_, registered_)},
        http::Dialect::kReference);
  }

 private:
  PipelineSessions& sessions_;
  const std::string id_;
  const int rank_;
  const Seconds timeout_;
  int registered_ = 0;
};

Result<http::Answer> GetSchedule(PipelineSessions& sessions, Seconds timeout,
                                 const http::Request& request) {
  const auto rank = RequireParameter(request.query, "rank");
  const auto number = rank.ok()
                          ? IntegerParameter(request.query, "rank", 0, {.min = 0, .max = 1 << 20})
                          : rank.error();
  if (!number.ok()) return http::JsonAnswer(422, reference::ErrorToJson(number.error(), "query"));
  ZEUS_TRY(std::string id, InnerId(request.name_space, request.parameters[0]));
  auto awaited = std::make_shared<AwaitedSchedule>(sessions, std::move(id),
                                                   static_cast<int>(number.value()), timeout);
  if (auto answer = awaited->Next()) return *std::move(answer);
  return http::Answer{.awaited = std::move(awaited)};
}

}  // namespace

void AddPipelineRoutes(PipelineSessions& sessions, Quotas* quotas, Seconds timeout,
                       http::Router& router) {
  router.Add({.method = "POST",
              .pattern = "/register_job",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = [&sessions, quotas](
                             const http::Request& r) { return RegisterJob(sessions, quotas, r); },
              .summary = "Reference: register a pipeline",
              .request_schema = "ReferenceJobInfo",
              .answer_schema = "ReferencePipelineId",
              .statuses = {200, 404, 422},
              .slow = true});
  router.Add({.method = "POST",
              .pattern = "/register_rank/{job_id}",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = [&](const http::Request& r) { return RegisterRank(sessions, r); },
              .summary = "Reference: register a rank of a pipeline",
              .request_schema = "ReferenceRankInfo",
              .answer_schema = "ReferenceNothing",
              .statuses = {200, 404, 409, 422}});
  router.Add({.method = "GET",
              .pattern = "/schedule/{job_id}",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = [&sessions, timeout](
                             const http::Request& r) { return GetSchedule(sessions, timeout, r); },
              .summary = "Reference: the clocks of a rank, once every rank has registered",
              .answer_schema = "ReferenceFrequencySchedule",
              .statuses = {200, 404, 409, 422, 503},
              .query = {"rank"},
              .slow = true});
  router.Add({.method = "POST",
              .pattern = "/result/{job_id}",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = [&](const http::Request& r) { return AcceptResult(sessions, r); },
              .summary = "Reference: what a rank measured",
              .request_schema = "ReferenceProfilingResult",
              .answer_schema = "ReferenceNothing",
              .statuses = {200, 404, 409, 422},
              .slow = true,
              .large_body = true});
}

}  // namespace zeus::server
