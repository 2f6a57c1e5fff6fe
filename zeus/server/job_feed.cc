#include "zeus/server/job_feed.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/job/memory_repository.h"
#include "zeus/wire/answers.h"

namespace zeus::server {
namespace {

constexpr int kFeedPage = 200;

// Returns the number in an id of this epoch.
std::optional<std::int64_t> NumberIn(const std::string& id, const std::string& epoch) {
  if (!id.starts_with(epoch + "-")) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = id.data() + id.size();
  const auto [parsed, error] = std::from_chars(id.data() + epoch.size() + 1, end, number);
  if (error != std::errc() || parsed != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace

void JobFeed::NoteChange(const std::string& inner_id) {
  const std::lock_guard lock(mutex_);
  const auto space = spaces_.find(std::string(NameSpaceOf(inner_id)));
  if (space == spaces_.end()) return;
  // A name space without followers collects no more than a sweep would find.
  std::set<std::string>& changed = space->second->changed;
  if (changed.size() < kMostEvents) changed.emplace(WithoutNameSpace(inner_id));
}

std::shared_ptr<JobFeed::Space> JobFeed::Find(const std::string& name_space) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  std::erase_if(spaces_, [&](const auto& entry) {
    return entry.first != name_space && now - entry.second->followed_at > kForgottenAfter;
  });
  std::shared_ptr<Space>& space = spaces_[name_space];
  if (!space || now - space->followed_at > kForgottenAfter) {
    space = std::make_shared<Space>();
    space->epoch = fmt::format("{:016x}", entropy_());
  }
  space->followed_at = now;
  return space;
}

Result<std::string> JobFeed::After(const std::string& name_space, std::string& seen) {
  const std::shared_ptr<Space> space = Find(name_space);
  const std::lock_guard lock(space->mutex);
  ScopedJobService service(service_, name_space, nullptr);
  ZEUS_RETURN_IF_ERROR(Look(service, *space));
  const auto number = NumberIn(seen, space->epoch);
  const std::int64_t first = space->last - std::ssize(space->events) + 1;
  const bool known = number && *number <= space->last && *number + 1 >= first;
  const bool begins = seen.empty();
  seen = fmt::format("{}-{}", space->epoch, space->last);
  if (!known)
    return fmt::format("id: {}\nevent: {}\ndata: {{}}\n\n", seen, begins ? "current" : "reset");
  std::string text;
  for (std::int64_t i = *number + 1; i <= space->last; ++i)
    text += space->events[static_cast<std::size_t>(i - first)];
  return text;
}

Status JobFeed::Look(ScopedJobService& service, Space& space) {
  const TimePoint now = clock_.Now();
  const bool fresh = space.swept_at == TimePoint();
  if (!fresh && now - space.looked_at < kLookPeriod) return Ok();
  space.looked_at = now;
  const std::set<std::string> changed = TakeChanged(space);
  if (fresh || now - space.swept_at >= kSweepPeriod) return Sweep(service, space);
  for (const std::string& id : changed) {
    const Result<Job> job = service.GetJob(id);
    if (job.ok())
      ZEUS_RETURN_IF_ERROR(LookAt(service, job.value(), space));
    else if (job.error().code == ErrorCode::kNotFound)
      Forget(id, space);
    else
      return job.error();
  }
  return Ok();
}

std::set<std::string> JobFeed::TakeChanged(Space& space) {
  const std::lock_guard lock(mutex_);
  return std::exchange(space.changed, {});
}

// Compares all jobs with what is known. The first time everything is new, and nothing is reported.
Status JobFeed::Sweep(ScopedJobService& service, Space& space) {
  const bool fresh = space.swept_at == TimePoint();
  ZEUS_TRY(const std::vector<Job> jobs, AllJobs(service, {}));
  std::set<std::string> gone;
  for (const auto& [id, known] : space.jobs) gone.insert(id);
  for (const Job& job : jobs) {
    gone.erase(job.spec.id);
    if (fresh)
      space.jobs[job.spec.id] = {.created_at = job.created_at, .events = job.events};
    else
      ZEUS_RETURN_IF_ERROR(LookAt(service, job, space));
  }
  for (const std::string& id : gone) Forget(id, space);
  space.swept_at = clock_.Now();
  return Ok();
}

Status JobFeed::LookAt(ScopedJobService& service, const Job& job, Space& space) {
  Known& known = space.jobs[job.spec.id];
  if (known.created_at != job.created_at) known = {.created_at = job.created_at};
  // A job may have moved on by more than is kept; then its latest events are kept, and the gap
  // makes viewers load everything again.
  const std::int64_t skipped = job.events - known.events - static_cast<std::int64_t>(kMostEvents);
  if (skipped > 0) {
    known.events += skipped;
    space.events.clear();
    space.last += skipped;
  }
  while (known.events < job.events) {
    ZEUS_TRY(const std::vector<JobEvent> events,
             service.ListEvents(job.spec.id, known.events, kFeedPage));
    if (events.empty()) break;
    for (const JobEvent& event : events)
      Append(Name(event.kind), JsonText(wire::ToJson(event)), space);
    known.events = events.back().sequence;
  }
  return Ok();
}

void JobFeed::Forget(const std::string& job_id, Space& space) {
  if (space.jobs.erase(job_id) > 0) Append("job_deleted", JsonText({{"job_id", job_id}}), space);
}

void JobFeed::Append(std::string_view kind, const std::string& data, Space& space) {
  ++space.last;
  space.events.push_back(
      fmt::format("id: {}-{}\nevent: {}\ndata: {}\n\n", space.epoch, space.last, kind, data));
  if (space.events.size() > kMostEvents) space.events.pop_front();
}

}  // namespace zeus::server
