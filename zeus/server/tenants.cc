#include "zeus/server/tenants.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"

namespace zeus::server {
namespace {

constexpr std::string_view kEveryOther = "*";

Error MalformedQuota(std::string_view text) {
  return InvalidArgument(
      fmt::format("{} is no quota: write NAMESPACE:jobs=10,trials=1000,plans=5", Quote(text)));
}

Result<std::int64_t> Number(std::string_view text) {
  ZEUS_TRY(const std::uint64_t number, ParseUnsigned(text));
  if (number > std::uint64_t{1} << 60) return InvalidArgument("too large");
  return static_cast<std::int64_t>(number);
}

constexpr char kBehindAllIds = '\x7f';  // Sorts after every character of an id.

// Lists one page of a name space's own items, in the order of their ids, although items of other
// name spaces lie between them. `next` lists the items after an id; `id_of` returns an item's id.
template <class Item, class Next, class IdOf>
Result<std::vector<Item>> ListOwn(const std::string& name_space, const std::string& first,
                                  int limit, const Next& next, const IdOf& id_of) {
  const std::string start = ScopedId(name_space, "");
  std::vector<Item> own;
  std::string after = ScopedId(name_space, first);
  while (std::ssize(own) < limit) {
    const int wanted = limit - static_cast<int>(own.size());
    Result<std::vector<Item>> page = next(after, wanted);
    if (!page.ok()) return std::move(page).error();
    bool goes_on = std::ssize(page.value()) == wanted;
    for (Item& item : page.value()) {
      after = id_of(item);
      if (!after.starts_with(start)) return own;
      const std::size_t tenant = after.find(kNameSpaceEnd);
      if (name_space.empty() && tenant != std::string::npos) {
        after = after.substr(0, tenant + 1) + kBehindAllIds;
        goes_on = true;
        break;
      }
      own.push_back(std::move(item));
    }
    if (!goes_on) break;
  }
  return own;
}

// Remove the name space from all ids of an answer.
void Strip(JobSpec& spec) {
  spec.id = std::string(WithoutNameSpace(spec.id));
  spec.prefix = std::string(WithoutNameSpace(spec.prefix));
}
void Strip(Job& job) { Strip(job.spec); }
void Strip(Trial& trial) { trial.job_id = std::string(WithoutNameSpace(trial.job_id)); }
void Strip(RegisteredJob& registered) { Strip(registered.job); }
void Strip(StartedTrial& started) { Strip(started.trial); }
void Strip(ReportAnswer& answer) { Strip(answer.trial); }
void Strip(CurrentPlan& plan) { plan.id = std::string(WithoutNameSpace(plan.id)); }
void Strip(JobEvent& event) {
  event.job_id = std::string(WithoutNameSpace(event.job_id));
  const auto spec = event.detail.find("spec");
  if (spec == event.detail.end() || !spec->is_object()) return;
  for (const char* field : {"id", "prefix"})
    if (const auto id = spec->find(field); id != spec->end() && id->is_string())
      *id = WithoutNameSpace(id->get_ref<const std::string&>());
}

template <class T>
Result<T> Stripped(Result<T> result) {
  if (result.ok()) Strip(result.value());
  return result;
}
template <class T>
Result<std::vector<T>> Stripped(Result<std::vector<T>> result) {
  if (result.ok())
    for (T& item : result.value()) Strip(item);
  return result;
}

}  // namespace

// --- quotas ---

Status Quotas::Add(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return MalformedQuota(text);
  const std::string_view name = text.substr(0, colon);
  if (name != kEveryOther) ZEUS_RETURN_IF_ERROR(CheckIdentifier("--quota", name));
  Quota quota;
  for (std::string_view rest = text.substr(colon + 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const std::string_view what = part.substr(0, equals);
    const auto number = equals == std::string_view::npos
                            ? Result<std::int64_t>(MalformedQuota(text))
                            : Number(part.substr(equals + 1));
    if (!number.ok()) return MalformedQuota(text);
    if (what == "jobs")
      quota.jobs = number.value();
    else if (what == "trials")
      quota.trials = number.value();
    else if (what == "plans")
      quota.plans = number.value();
    else
      return MalformedQuota(text);
  }
  quotas_.insert_or_assign(std::string(name), quota);
  return Ok();
}

std::set<std::string> Quotas::name_spaces() const {
  std::set<std::string> names;
  for (const auto& [name, quota] : quotas_)
    if (name != kEveryOther) names.insert(name);
  return names;
}

Result<Quotas::Guard> Quotas::Before(const std::string& name_space, Limit limit, Held held,
                                     std::string_view things) {
  auto quota = quotas_.find(name_space);
  if (quota == quotas_.end()) quota = quotas_.find(kEveryOther);
  if (quota == quotas_.end() || !(quota->second.*limit)) return Guard();
  Guard guard(mutex_);
  ZEUS_TRY(const Usage usage, count_(name_space));
  const std::int64_t most = *(quota->second.*limit);
  if (usage.*held < most) return guard;
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("quota: {} may have {} {} and has {}: delete what is not needed, or ask "
                           "who runs the server for more",
                           name_space.empty() ? std::string("the default name space")
                                              : "the name space " + Quote(name_space),
                           most, things, usage.*held)};
}

Result<Quotas::Guard> Quotas::BeforeJob(const std::string& name_space) {
  return Before(name_space, &Quota::jobs, &Usage::jobs, "jobs");
}

Result<Quotas::Guard> Quotas::BeforeTrial(const std::string& name_space) {
  return Before(name_space, &Quota::trials, &Usage::trials, "trials");
}

Status Quotas::CheckPlan(const std::string& name_space) {
  ZEUS_TRY(const Guard guard, Before(name_space, &Quota::plans, &Usage::plans, "plans"));
  return Ok();
}

// --- views ---

Result<std::string> InnerId(const std::string& name_space, const std::string& id) {
  if (id.find(kNameSpaceEnd) != std::string::npos)
    return Error{ErrorCode::kNotFound, "id: there is no " + Quote(id)};
  return ScopedId(name_space, id);
}

// --- jobs ---

Result<RegisteredJob> ScopedJobService::Register(const JobSpec& spec) {
  ZEUS_RETURN_IF_ERROR(CheckIdentifier("id", spec.id));
  ZEUS_RETURN_IF_ERROR(CheckIdentifier("prefix", spec.prefix));
  JobSpec inner = spec;
  if (!spec.id.empty()) inner.id = ScopedId(name_space_, spec.id);
  if (!spec.prefix.empty()) inner.prefix = ScopedId(name_space_, spec.prefix);
  Quotas::Guard guard;
  // The quota does not apply to a job that exists already.
  if (quotas_ != nullptr && (inner.id.empty() || !inner_.GetJob(inner.id).ok())) {
    ZEUS_TRY(guard, quotas_->BeforeJob(name_space_));
  }
  return Stripped(inner_.Register(inner));
}

Status ScopedJobService::Delete(const std::string& job_id) {
  ZEUS_TRY(const std::string id, InnerId(name_space_, job_id));
  return inner_.Delete(id);
}

Result<StartedTrial> ScopedJobService::StartTrial(const TrialRequest& request) {
  TrialRequest inner = request;
  ZEUS_TRY(inner.job_id, InnerId(name_space_, request.job_id));
  Quotas::Guard guard;
  if (quotas_ != nullptr) {
    ZEUS_TRY(guard, quotas_->BeforeTrial(name_space_));
  }
  return Stripped(inner_.StartTrial(inner));
}

Result<ReportAnswer> ScopedJobService::Report(const TrialReport& report) {
  TrialReport inner = report;
  ZEUS_TRY(inner.job_id, InnerId(name_space_, report.job_id));
  return Stripped(inner_.Report(inner));
}

Result<Trial> ScopedJobService::Heartbeat(const std::string& job_id, std::int64_t trial) {
  ZEUS_TRY(const std::string id, InnerId(name_space_, job_id));
  return Stripped(inner_.Heartbeat(id, trial));
}

Result<Trial> ScopedJobService::EndTrial(const TrialEnd& end) {
  TrialEnd inner = end;
  ZEUS_TRY(inner.job_id, InnerId(name_space_, end.job_id));
  return Stripped(inner_.EndTrial(inner));
}

Status ScopedJobService::LearnEpochCost(const EpochCostReport& report) {
  EpochCostReport inner = report;
  ZEUS_TRY(inner.job_id, InnerId(name_space_, report.job_id));
  return inner_.LearnEpochCost(inner);
}

Result<Job> ScopedJobService::GetJob(const std::string& job_id) {
  ZEUS_TRY(const std::string id, InnerId(name_space_, job_id));
  return Stripped(inner_.GetJob(id));
}

Result<std::vector<Job>> ScopedJobService::ListJobs(const JobQuery& query) {
  const auto next = [&](const std::string& after, int limit) {
    JobQuery inner = query;
    inner.after = after;
    inner.limit = limit;
    return inner_.ListJobs(inner);
  };
  return Stripped(ListOwn<Job>(name_space_, query.after, query.limit, next,
                               [](const Job& job) { return job.spec.id; }));
}

Result<Trial> ScopedJobService::GetTrial(const std::string& job_id, std::int64_t trial) {
  ZEUS_TRY(const std::string id, InnerId(name_space_, job_id));
  return Stripped(inner_.GetTrial(id, trial));
}

Result<std::vector<Trial>> ScopedJobService::ListTrials(const std::string& job_id,
                                                        const TrialQuery& query) {
  ZEUS_TRY(const std::string id, InnerId(name_space_, job_id));
  return Stripped(inner_.ListTrials(id, query));
}

Result<JobArms> ScopedJobService::GetArms(const std::string& job_id, const std::string& gpu_model) {
  ZEUS_TRY(const std::string id, InnerId(name_space_, job_id));
  return inner_.GetArms(id, gpu_model);
}

Result<JobSavings> ScopedJobService::GetSavings(const SavingsQuery& query) {
  SavingsQuery inner = query;
  ZEUS_TRY(inner.job_id, InnerId(name_space_, query.job_id));
  if (!query.baseline_job.empty()) {
    ZEUS_TRY(inner.baseline_job, InnerId(name_space_, query.baseline_job));
  }
  ZEUS_TRY(JobSavings savings, inner_.GetSavings(inner));
  savings.job_id = query.job_id;
  savings.baseline_job = query.baseline_job.empty() ? query.job_id : query.baseline_job;
  return savings;
}

Result<std::vector<JobEvent>> ScopedJobService::ListEvents(const std::string& job_id,
                                                           std::int64_t after, int limit) {
  ZEUS_TRY(const std::string id, InnerId(name_space_, job_id));
  return Stripped(inner_.ListEvents(id, after, limit));
}

// --- plans ---

Result<CurrentPlan> ScopedPlanService::Submit(const PlanSpec& spec) {
  ZEUS_RETURN_IF_ERROR(CheckIdentifier("id", spec.id));
  PlanSpec inner = spec;
  if (!spec.id.empty())
    inner.id = ScopedId(name_space_, spec.id);
  else if (!name_space_.empty())
    inner.id = ScopedId(name_space_, fmt::format("plan-{:014x}", SystemEntropy()));
  // The quota does not apply to a plan that exists already.
  if (quotas_ != nullptr) {
    ZEUS_TRY(const bool exists, inner_.Exists(inner.id));
    if (!exists) ZEUS_RETURN_IF_ERROR(quotas_->CheckPlan(name_space_));
  }
  return Stripped(inner_.Submit(inner));
}

Result<CurrentPlan> ScopedPlanService::Get(const std::string& id) {
  ZEUS_TRY(const std::string inner, InnerId(name_space_, id));
  return Stripped(inner_.Get(inner));
}

Result<std::optional<CurrentPlan>> ScopedPlanService::GetNewer(const std::string& id,
                                                               std::int64_t version) {
  ZEUS_TRY(const std::string inner, InnerId(name_space_, id));
  Result<std::optional<CurrentPlan>> newer = inner_.GetNewer(inner, version);
  if (newer.ok() && newer.value()) Strip(*newer.value());
  return newer;
}

Result<PlanFrontier> ScopedPlanService::GetFrontier(const std::string& id) {
  ZEUS_TRY(const std::string inner, InnerId(name_space_, id));
  return inner_.GetFrontier(inner);
}

Result<pipeline::PipelinePlan> ScopedPlanService::PlanFor(const std::string& id, Seconds deadline) {
  ZEUS_TRY(const std::string inner, InnerId(name_space_, id));
  return inner_.PlanFor(inner, deadline);
}

Result<CurrentPlan> ScopedPlanService::ReportPace(const std::string& id,
                                                  std::optional<Seconds> pace) {
  ZEUS_TRY(const std::string inner, InnerId(name_space_, id));
  return Stripped(inner_.ReportPace(inner, pace));
}

Result<PlanSummary> ScopedPlanService::Summarize(const std::string& id) {
  ZEUS_TRY(const std::string inner, InnerId(name_space_, id));
  ZEUS_TRY(PlanSummary summary, inner_.Summarize(inner));
  summary.id = id;
  return summary;
}

Result<std::vector<std::string>> ScopedPlanService::List(const std::string& after, int limit) {
  const auto next = [&](const std::string& from, int most) { return inner_.List(from, most); };
  ZEUS_TRY(std::vector<std::string> ids,
           ListOwn<std::string>(name_space_, after, limit, next,
                                [](const std::string& id) { return id; }));
  for (std::string& id : ids) id = std::string(WithoutNameSpace(id));
  return ids;
}

Status ScopedPlanService::Delete(const std::string& id) {
  ZEUS_TRY(const std::string inner, InnerId(name_space_, id));
  return inner_.Delete(inner);
}

}  // namespace zeus::server
