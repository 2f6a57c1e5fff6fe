#include "zeus/server/event_stream.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/wire/answers.h"

namespace zeus::server {
namespace {

constexpr int kEventsAtOnce = 200;

}  // namespace

Result<std::string> JobEventStream::Next() {
  // Also ends the stream of a job that is gone.
  ZEUS_TRY(const Job job, service_.GetJob(job_id_));
  if (created_at_.value_or(job.created_at) != job.created_at || job.events < seen_) seen_ = 0;
  created_at_ = job.created_at;
  ZEUS_TRY(const std::vector<JobEvent> events, service_.ListEvents(job_id_, seen_, kEventsAtOnce));
  std::string text;
  for (const JobEvent& event : events) {
    fmt::format_to(std::back_inserter(text), "id: {}\nevent: {}\ndata: {}\n\n", event.sequence,
                   Name(event.kind), wire::Text(wire::ToJson(event)));
    seen_ = event.sequence;
  }
  return text;
}

}  // namespace zeus::server
