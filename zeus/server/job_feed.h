#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/job/job_service.h"
#include "zeus/server/tenants.h"

namespace zeus::server {

// The events of all jobs of a name space in one sequence, for pages that show many jobs. The latest
// kMostEvents are kept in memory while somebody follows, so that any number of viewers costs one
// look at the database. Changes that NoteChange() names are noticed at the next look, all others,
// as of other servers on the same database, within kSweepPeriod. Ids are "epoch-number"; a viewer
// that comes back with one that is not in memory any more is told to load everything again.
// Thread-safe; the referenced objects must outlive it.
class JobFeed {
 public:
  static constexpr std::size_t kMostEvents = 2000;
  static constexpr Seconds kLookPeriod{0.2};
  static constexpr Seconds kSweepPeriod{5};
  // Name spaces that nobody follows any more are forgotten after this time.
  static constexpr Seconds kForgottenAfter{60};

  JobFeed(JobService& service, const Clock& clock) : JobFeed(service, clock, SystemEntropy) {}
  JobFeed(JobService& service, const Clock& clock, Entropy entropy)
      : service_(service), clock_(clock), entropy_(std::move(entropy)) {}

  // Notes that the job with this id, name space included, has changed.
  void NoteChange(const std::string& inner_id);

  // Returns the events of a name space after the one with the id `seen` as the text of a stream,
  // and puts the id of the last one into it. For an empty `seen`, the text is an event "current",
  // which has nothing but an id; for one that is unknown or too old, it is an event "reset".
  Result<std::string> After(const std::string& name_space, std::string& seen);

 private:
  struct Known {
    WallTime created_at{};
    std::int64_t events = 0;
  };
  // The part of a name space that is in memory.
  struct Space {
    std::mutex mutex{};  // Guards everything but `changed`.
    std::string epoch{};
    std::map<std::string, Known> jobs{};  // Ids without the name space.
    std::deque<std::string> events{};     // Texts of the latest events.
    std::int64_t last = 0;                // Number of the last event.
    TimePoint looked_at{};
    TimePoint swept_at{};
    std::set<std::string> changed{};  // Guarded by JobFeed::mutex_, as is followed_at.
    TimePoint followed_at{};
  };

  std::shared_ptr<Space> Find(const std::string& name_space);
  Status Look(ScopedJobService& service, Space& space);
  Status LookAt(ScopedJobService& service, const Job& job, Space& space);
  Status Sweep(ScopedJobService& service, Space& space);
  std::set<std::string> TakeChanged(Space& space);
  static void Forget(const std::string& job_id, Space& space);
  static void Append(std::string_view kind, const std::string& data, Space& space);

  JobService& service_;
  const Clock& clock_;
  const Entropy entropy_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Space>> spaces_{};  // Guarded by mutex_.
};

}  // namespace zeus::server
