#include "zeus/store/parsed_jobs.h"

#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/store/job_rows.h"

namespace zeus {
namespace {

// A parsed text takes some ten times its size in memory.
constexpr std::size_t kMostBytes = 8'000'000;

}  // namespace

ParsedJobs::Entry ParsedJobs::Find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? Entry{} : found->second;
}

// Whoever is in use comes back at once, so all may go when they have become too many.
void ParsedJobs::Keep(const std::string& id, Entry entry) {
  const std::lock_guard lock(mutex_);
  bytes_ +=
      (entry.spec ? entry.spec->text.size() : 0) + (entry.state ? entry.state->text.size() : 0);
  if (bytes_ > kMostBytes) {
    entries_.clear();
    bytes_ = 0;
  }
  Entry& kept = entries_[id];
  if (entry.spec) kept.spec = std::move(entry.spec);
  if (entry.state) kept.state = std::move(entry.state);
}

void ParsedJobs::Expect(const std::string& id, std::string state_text, const Json& state) {
  Keep(id,
       {.state = std::make_shared<const Parsed<Json>>(Parsed<Json>{std::move(state_text), state})});
}

Result<Job> ParsedJobs::JobFrom(SqlRow row) {
  ZEUS_TRY(JobTexts texts, JobTexts::From(std::move(row)));
  const std::string id = texts.job.spec.id;
  const Entry known = Find(id);
  Entry fresh;
  if (known.spec && known.spec->text == texts.spec) {
    texts.job.spec = known.spec->value;
  } else {
    auto spec = SpecFrom(texts.spec);
    if (!spec.ok()) return std::move(spec).error().While("job " + Quote(id));
    texts.job.spec = std::move(spec).value();
    fresh.spec = std::make_shared<const Parsed<JobSpec>>(
        Parsed<JobSpec>{std::move(texts.spec), texts.job.spec});
  }
  if (known.state && known.state->text == texts.state) {
    texts.job.policy_state = known.state->value;
  } else {
    auto state = StateFrom(texts.state);
    if (!state.ok()) return std::move(state).error().While("job " + Quote(id));
    texts.job.policy_state = std::move(state).value();
    fresh.state = std::make_shared<const Parsed<Json>>(
        Parsed<Json>{std::move(texts.state), texts.job.policy_state});
  }
  if (fresh.spec || fresh.state) Keep(id, std::move(fresh));
  return std::move(texts.job);
}

}  // namespace zeus
