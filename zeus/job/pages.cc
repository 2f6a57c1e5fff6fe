#include "zeus/job/pages.h"

#include <iterator>
#include <utility>

namespace zeus {
namespace {

constexpr int kPage = 500;

// Calls `next` with all elements so far until a page is not full.
template <class T, class Next>
Result<std::vector<T>> Everything(const Next& next) {
  std::vector<T> all;
  for (;;) {
    ZEUS_TRY(std::vector<T> page, next(all));
    const bool full = static_cast<int>(page.size()) >= kPage;
    all.insert(all.end(), std::make_move_iterator(page.begin()),
               std::make_move_iterator(page.end()));
    if (!full) return all;
  }
}

}  // namespace

Result<std::vector<Job>> AllJobs(JobService& service, JobQuery query) {
  query.limit = kPage;
  return Everything<Job>([&](const std::vector<Job>& so_far) {
    if (!so_far.empty()) query.after = so_far.back().spec.id;
    return service.ListJobs(query);
  });
}

Result<std::vector<Trial>> AllTrials(JobService& service, const std::string& job_id) {
  return Everything<Trial>([&](const std::vector<Trial>& so_far) {
    return service.ListTrials(job_id,
                              {.after = so_far.empty() ? 0 : so_far.back().number, .limit = kPage});
  });
}

Result<std::vector<JobEvent>> AllEvents(JobService& service, const std::string& job_id) {
  return Everything<JobEvent>([&](const std::vector<JobEvent>& so_far) {
    return service.ListEvents(job_id, so_far.empty() ? 0 : so_far.back().sequence, kPage);
  });
}

}  // namespace zeus
