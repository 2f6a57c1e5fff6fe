#include "zeus/server/pipeline_routes.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/server/json_answer.h"
#include "zeus/server/query_reader.h"
#include "zeus/server/scoped_services.h"
#include "zeus/wire/body.h"
#include "zeus/wire/reference.h"

namespace zeus::server {
namespace {

namespace reference = wire::reference;

// What it answers to what it only takes note of.
HttpAnswer Noted() { return JsonAnswer(200, Json()); }

Result<HttpAnswer> RegisterJob(PipelineSessions& sessions, Quotas* quotas,
                               const HttpRequest& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const PipelineSession asked, reference::PipelineFromJson(body));
  // It will have a plan, if it has none yet.
  if (quotas != nullptr) ZEUS_RETURN_IF_ERROR(quotas->CheckPlan(request.name_space));
  ZEUS_TRY(const PipelineSession session, sessions.Register(asked, request.name_space));
  return JsonAnswer(200, WithoutNameSpace(session.id));
}

Result<HttpAnswer> RegisterRank(PipelineSessions& sessions, const HttpRequest& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const SessionRank rank, reference::RankFromJson(body));
  ZEUS_TRY(const std::string id, InnerId(request.name_space, request.parameters[0]));
  ZEUS_TRY(const bool complete, sessions.AddRank(id, rank));
  HttpAnswer answer = Noted();
  // Only now is there something to see for those who wait.
  if (complete) answer.changed_job = request.parameters[0];
  return answer;
}

// The parsed body, which may be large, is gone when this returns: solving can take long.
Result<RankReport> ReportOf(const HttpRequest& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  return reference::RankReportFromJson(body);
}

Result<HttpAnswer> TakeResult(PipelineSessions& sessions, const HttpRequest& request) {
  ZEUS_TRY(const RankReport report, ReportOf(request));
  ZEUS_TRY(const std::string id, InnerId(request.name_space, request.parameters[0]));
  ZEUS_TRY(const bool ended, sessions.Report(id, report));
  HttpAnswer answer = Noted();
  if (ended) answer.changed_job = request.parameters[0];
  return answer;
}

// The clocks of one rank, as soon as there are any.
class AwaitedSchedule final : public AwaitedAnswer {
 public:
  AwaitedSchedule(PipelineSessions& sessions, std::string id, int rank, Seconds patience)
      : sessions_(sessions), id_(std::move(id)), rank_(rank), patience_(patience) {}

  const std::string& job_id() const override { return id_; }
  Seconds patience() const override { return patience_; }

  std::optional<HttpAnswer> Next() override {
    const auto clocks = sessions_.ClocksFor(id_, rank_);
    if (!clocks.ok()) return ErrorAnswer(clocks.error(), Dialect::kReference);
    if (clocks.value()) return JsonAnswer(200, reference::ToJson(rank_, *clocks.value()));
    const auto registered = sessions_.RegisteredRanks(id_);
    if (registered.ok()) registered_ = registered.value();
    return std::nullopt;
  }

  HttpAnswer TooLate() override {
    return ErrorAnswer(
        {ErrorCode::kUnavailable,
         fmt::format("the other ranks of {} did not come in time ({} have registered): ask again",
                     id_, registered_)},
        Dialect::kReference);
  }

 private:
  PipelineSessions& sessions_;
  const std::string id_;
  const int rank_;
  const Seconds patience_;
  int registered_ = 0;
};

Result<HttpAnswer> GetSchedule(PipelineSessions& sessions, Seconds patience,
                               const HttpRequest& request) {
  const auto rank = RequireParameter(request.query, "rank");
  const auto number = rank.ok()
                          ? IntegerParameter(request.query, "rank", 0, {.min = 0, .max = 1 << 20})
                          : rank.error();
  if (!number.ok()) return JsonAnswer(422, reference::ErrorToJson(number.error(), "query"));
  ZEUS_TRY(std::string id, InnerId(request.name_space, request.parameters[0]));
  auto awaited = std::make_shared<AwaitedSchedule>(sessions, std::move(id),
                                                   static_cast<int>(number.value()), patience);
  if (auto answer = awaited->Next()) return *std::move(answer);
  return HttpAnswer{.awaited = std::move(awaited)};
}

}  // namespace

void AddPipelineRoutes(PipelineSessions& sessions, Quotas* quotas, Seconds patience,
                       Router& router) {
  router.Add({.method = "POST",
              .pattern = "/register_job",
              .access = Access::kWrite,
              .dialect = Dialect::kReference,
              .handler = [&sessions, quotas](
                             const HttpRequest& r) { return RegisterJob(sessions, quotas, r); },
              .summary = "Reference: register a pipeline",
              .request_schema = "ReferenceJobInfo",
              .answer_schema = "ReferencePipelineId",
              .statuses = {200, 404, 422},
              .plans = true});
  router.Add({.method = "POST",
              .pattern = "/register_rank/{job_id}",
              .access = Access::kWrite,
              .dialect = Dialect::kReference,
              .handler = [&](const HttpRequest& r) { return RegisterRank(sessions, r); },
              .summary = "Reference: register a rank of a pipeline",
              .request_schema = "ReferenceRankInfo",
              .answer_schema = "ReferenceNothing",
              .statuses = {200, 404, 409, 422}});
  router.Add({.method = "GET",
              .pattern = "/schedule/{job_id}",
              .access = Access::kWrite,
              .dialect = Dialect::kReference,
              .handler = [&sessions, patience](
                             const HttpRequest& r) { return GetSchedule(sessions, patience, r); },
              .summary = "Reference: the clocks of a rank, once every rank has registered",
              .answer_schema = "ReferenceFrequencySchedule",
              .statuses = {200, 404, 409, 422, 503},
              .query = {"rank"},
              .plans = true});
  router.Add({.method = "POST",
              .pattern = "/result/{job_id}",
              .access = Access::kWrite,
              .dialect = Dialect::kReference,
              .handler = [&](const HttpRequest& r) { return TakeResult(sessions, r); },
              .summary = "Reference: what a rank measured",
              .request_schema = "ReferenceProfilingResult",
              .answer_schema = "ReferenceNothing",
              .statuses = {200, 404, 409, 422},
              .plans = true,
              .large_body = true});
}

}  // namespace zeus::server
