#include "zeus/server/event_stream.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "zeus/wire/answers.h"

namespace zeus::server {
namespace {

constexpr int kEventsAtOnce = 200;

}  // namespace

Result<std::string> JobEventStream::Next() {
  ZEUS_TRY(const std::vector<JobEvent> events, service_.ListEvents(job_id_, seen_, kEventsAtOnce));
  std::string text;
  for (const JobEvent& event : events) {
    fmt::format_to(std::back_inserter(text), "id: {}\nevent: {}\ndata: {}\n\n", event.sequence,
                   Name(event.kind), wire::Text(wire::ToJson(event)));
    seen_ = event.sequence;
  }
  // A job without anything new may be a job that is gone.
  if (events.empty()) {
    if (const auto job = service_.GetJob(job_id_); !job.ok()) return job.error();
  }
  return text;
}

}  // namespace zeus::server
