#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/server/request_io.h"
#include "zeus/server/routes.h"
#include "zeus/wire/body.h"
#include "zeus/wire/reference.h"

namespace zeus::server {
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
