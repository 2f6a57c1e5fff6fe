#include "zeus/client/remote_plan_service.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/wire/answers.h"

namespace zeus {
namespace {

using Method = ServerCalls::Method;
using Reply = ServerCalls::Reply;

constexpr int kPlanCreated = 201;
constexpr int kNoNewerPlan = 204;
constexpr const char* kPlans = "/v1/plans";

std::string PlanPath(const std::string& id) {
  return fmt::format("{}/{}", kPlans, http::PercentEncoded(id));
}

}  // namespace

Result<std::unique_ptr<RemotePlanService>> RemotePlanService::Connect(const CallOptions& options,
                                                                      Clock& clock) {
  CallOptions kept = options;
  kept.keep_connection = true;  // A training asks for a newer plan after every iteration.
  ZEUS_TRY(std::unique_ptr<ServerCalls> calls, ServerCalls::Create(kept, clock));
  kept.retry = kRetryBetweenIterations;
  ZEUS_TRY(std::unique_ptr<ServerCalls> quick_calls, ServerCalls::Create(kept, clock));
  return std::unique_ptr<RemotePlanService>(
      new RemotePlanService(std::move(calls), std::move(quick_calls)));
}

Result<CurrentPlan> RemotePlanService::Submit(const PlanSpec& spec) {
  // Without an id, a repeated request would submit a second plan.
  ZEUS_TRY(const Reply reply, spec.id.empty() ? calls_->AskOnce(Method::kPost, kPlans, ToJson(spec))
                                              : calls_->Ask(Method::kPost, kPlans, ToJson(spec)));
  ZEUS_TRY(CurrentPlan current, calls_->Understood(wire::CurrentPlanFromJson(reply.body)));
  current.created = reply.status == kPlanCreated;
  return current;
}

Result<CurrentPlan> RemotePlanService::Get(const std::string& id) {
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, PlanPath(id)));
  return calls_->Understood(wire::CurrentPlanFromJson(reply.body));
}

Result<std::optional<CurrentPlan>> RemotePlanService::GetNewer(const std::string& id,
                                                               std::int64_t version) {
  ZEUS_TRY(const Reply reply, quick_calls_->Ask(Method::kGet, fmt::format("{}?after_version={}",
                                                                          PlanPath(id), version)));
  if (reply.status == kNoNewerPlan) return std::optional<CurrentPlan>();
  ZEUS_TRY(CurrentPlan current, calls_->Understood(wire::CurrentPlanFromJson(reply.body)));
  return std::optional(std::move(current));
}

Result<PlanFrontier> RemotePlanService::GetFrontier(const std::string& id) {
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, PlanPath(id) + "/frontier"));
  return calls_->Understood(wire::PlanFrontierFromJson(reply.body));
}

Result<pipeline::PipelinePlan> RemotePlanService::PlanFor(const std::string& id, Seconds deadline) {
  ZEUS_TRY(const Reply reply,
           calls_->Ask(Method::kGet,
                       fmt::format("{}/plan?deadline_seconds={}", PlanPath(id), deadline.count())));
  return calls_->Understood(pipeline::PlanFromJson(reply.body));
}

Result<CurrentPlan> RemotePlanService::ReportPace(const std::string& id,
                                                  std::optional<Seconds> pace) {
  ZEUS_TRY(const Reply reply,
           quick_calls_->Ask(Method::kPost, PlanPath(id) + "/pace", wire::PaceToJson(pace)));
  return calls_->Understood(wire::CurrentPlanFromJson(reply.body));
}

Result<std::vector<std::string>> RemotePlanService::List(const std::string& after, int limit) {
  std::string path = fmt::format("{}?limit={}", kPlans, limit);
  if (!after.empty()) path += "&after=" + http::PercentEncoded(after);
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, path));
  return calls_->Understood(wire::PlanIdsFromJson(reply.body));
}

Status RemotePlanService::Delete(const std::string& id) {
  ZEUS_RETURN_IF_ERROR(calls_->Ask(Method::kDelete, PlanPath(id)));
  return Ok();
}

}  // namespace zeus
