#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/job_overview.h"
#include "zeus/job/memory_repository.h"
#include "zeus/server/job_feed.h"
#include "zeus/server/routes.h"
#include "zeus/wire/overviews.h"

// The routes of pages: sums over a job or over all jobs of a name space, in one request.
namespace zeus::server {
namespace {

constexpr std::size_t kLargestExport = 32'000'000;
constexpr std::size_t kMostBounds = 105;  // Two years of weeks.

Result<JobOverviews::Overview> FindOverview(JobOverviews& overviews, ScopedJobService& service,
                                            const Job& job) {
  return overviews.Of(service, job, ScopedId(service.name_space(), job.spec.id));
}

Result<http::Answer> ListOverviews(JobOverviews& overviews, ScopedJobService& service,
                                   const http::Request& request) {
  ZEUS_TRY(const JobQuery query, ReadJobQuery(request.query));
  ZEUS_TRY(const std::vector<Job> jobs, service.ListJobs(query));
  Json list = Json::array();
  for (const Job& job : jobs) {
    ZEUS_TRY(const JobOverviews::Overview overview, FindOverview(overviews, service, job));
    list.push_back(wire::ToJson(*overview));
  }
  const bool full = jobs.size() == static_cast<std::size_t>(query.limit);
  return http::JsonAnswer(
      200, {{"jobs", std::move(list)}, {"next", full ? Json(jobs.back().spec.id) : Json()}});
}

Result<http::Answer> GetOverview(JobOverviews& overviews, ScopedJobService& service,
                                 const http::Request& request) {
  ZEUS_TRY(const Job job, service.GetJob(request.parameters[0]));
  ZEUS_TRY(const JobOverviews::Overview overview, FindOverview(overviews, service, job));
  return http::JsonAnswer(200, wire::ToJson(*overview));
}

Result<http::Answer> ListRecurrences(JobOverviews& overviews, ScopedJobService& service,
                                     const http::Request& request) {
  ZEUS_TRY(const int limit, PageSize(request.query));
  ZEUS_TRY(const std::int64_t after, IntegerParameter(request.query, "after", -1, {.min = -1}));
  ZEUS_TRY(const Job job, service.GetJob(request.parameters[0]));
  ZEUS_TRY(const JobOverviews::Overview overview, FindOverview(overviews, service, job));
  const std::vector<RecurrenceAmounts>& all = overview->recurrences;
  auto next = std::ranges::upper_bound(all, after, {}, &RecurrenceAmounts::recurrence);
  Json list = Json::array();
  for (; next != all.end() && std::ssize(list) < limit; ++next) list.push_back(wire::ToJson(*next));
  const Json last = next == all.end() ? Json() : Json((next - 1)->recurrence);
  return http::JsonAnswer(200, {{"recurrences", std::move(list)}, {"next", last}});
}

// Times that are separated by commas, ascending.
Result<std::vector<WallTime>> ReadBounds(const Query& query) {
  ZEUS_TRY(const std::string text, RequireParameter(query, "bounds"));
  std::vector<WallTime> bounds;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const Result<WallTime> time = ParseWallTime(part);
    if (!time.ok()) return InvalidArgument("bounds: " + time.error().message);
    if (!bounds.empty() && time.value() <= bounds.back())
      return InvalidArgument(
          fmt::format("bounds: {} is not after the time before it", Quote(part)));
    bounds.push_back(time.value());
  }
  if (bounds.size() < 2 || bounds.size() > kMostBounds)
    return InvalidArgument(
        fmt::format("bounds: give 2 to {} times, separated by commas, between "
                    "which savings are summed up",
                    kMostBounds));
  return bounds;
}

Result<http::Answer> GetSpanSavings(JobOverviews& overviews, ScopedJobService& service,
                                    const http::Request& request) {
  ZEUS_TRY(const std::vector<WallTime> bounds, ReadBounds(request.query));
  ZEUS_TRY(const JobQuery wanted, ReadJobQuery(request.query));
  ZEUS_TRY(const std::vector<Job> jobs, AllJobs(service, wanted));
  std::vector<JobOverviews::Overview> all;
  for (const Job& job : jobs) {
    ZEUS_TRY(JobOverviews::Overview overview, FindOverview(overviews, service, job));
    all.push_back(std::move(overview));
  }
  Json list = Json::array();
  for (const SpanSavings& span : SavingsBetween(all, bounds)) list.push_back(wire::ToJson(span));
  return http::JsonAnswer(200, {{"spans", std::move(list)}});
}

Result<http::Answer> Export(ScopedJobService& service, const http::Request& request) {
  const std::string& id = request.parameters[0];
  ZEUS_TRY(std::string text, wire::ExportText(service, id, kLargestExport));
  return http::Answer{
      .body = std::move(text),
      .content_type = "application/x-ndjson",
      // Ids have no characters that would need quoting here.
      .headers = {{"Content-Disposition",
                   fmt::format("attachment; filename=\"{}.jsonl\"", Printable(id))}}};
}

// The events of all jobs of a name space. The feed must outlive the stream.
class NameSpaceEventStream final : public http::EventSource {
 public:
  NameSpaceEventStream(JobFeed& feed, std::string name_space, std::string seen)
      : feed_(feed), name_space_(std::move(name_space)), seen_(std::move(seen)) {}

  // The feed is looked at once a second, whatever changes.
  const std::string& topic() const override { return topic_; }
  Result<std::string> Next() override { return feed_.After(name_space_, seen_); }

 private:
  JobFeed& feed_;
  const std::string name_space_;
  const std::string topic_{};
  std::string seen_;
};

}  // namespace

void AddOverviewRoutes(const JobTenants& tenants, JobOverviews& overviews, http::Router& router) {
  const auto add = [&](http::Route route, auto handle) {
    route.handler =
        tenants.Jobs([&overviews, handle](ScopedJobService& service, const http::Request& r) {
          return handle(overviews, service, r);
        });
    router.Add(std::move(route));
  };
  add({.method = "GET",
       .pattern = "/v1/job-overviews",
       .summary = "List jobs with savings, stage, and the runs under way",
       .answer_schema = "JobOverviewPage",
       .statuses = {200, 422},
       .query = {"after", "limit", "label"}},
      ListOverviews);
  add({.method = "GET",
       .pattern = "/v1/jobs/{id}/overview",
       .summary = "A job with savings, stage, and the runs under way",
       .answer_schema = "JobOverview",
       .statuses = {200, 404}},
      GetOverview);
  add({.method = "GET",
       .pattern = "/v1/jobs/{id}/recurrences",
       .summary = "What every recurrence took, with all its tries",
       .answer_schema = "RecurrencePage",
       .statuses = {200, 404, 422},
       .query = {"after", "limit"}},
      ListRecurrences);
  add({.method = "GET",
       .pattern = "/v1/savings",
       .summary = "What all jobs, or those with a label, saved between given times: one sum for "
                  "each span",
       .answer_schema = "SpanSavingsList",
       .statuses = {200, 422},
       .query = {"bounds", "label"}},
      GetSpanSavings);
  add({.method = "GET",
       .pattern = "/v1/jobs/{id}/export",
       .summary = "The job, its trials and its events as JSON lines",
       .statuses = {200, 404}},
      [](JobOverviews&, ScopedJobService& service, const http::Request& r) {
        return Export(service, r);
      });
}

void AddFeedRoute(JobFeed& feed, http::Router& router) {
  router.Add({.method = "GET",
              .pattern = "/v1/events",
              .handler = [&feed](const http::Request& request) -> Result<http::Answer> {
                return http::Answer{.content_type = "text/event-stream",
                                    .events = std::make_shared<NameSpaceEventStream>(
                                        feed, request.name_space, request.last_event_id)};
              },
              .summary = "The events of all jobs, live, as server-sent events",
              .statuses = {200}});
}

}  // namespace zeus::server
