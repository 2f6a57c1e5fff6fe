#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/store/connection_pool.h"

namespace zeus {

class ParsedJobs;
class StoreTransaction;

// Lets callers that wait at the same time share a commit, which is a wait for the disk. There is no
// thread of its own: the caller who waits longest takes a connection, runs its own change and those
// that come meanwhile, commits once and tells everybody. Who is alone waits
// for nobody. Thread-safe.
class GroupCommitter {
 public:
  // What it does to the database, and nothing else.
  using Change = std::function<Status(StoreTransaction&)>;

  // As many groups as there are connections may be under way at once.
  GroupCommitter(ConnectionPool& connections, int groups, ParsedJobs& parsed);

  // Ok once `change` is on disk. It may be called again, and from another thread than the caller's,
  // who waits here. kUnavailable when it is not known whether it was committed.
  Status Write(const Change& change);

 private:
  struct Waiting {
    const Change& change;
    std::optional<Status> outcome{};  // Guarded by mutex_; once it is there the caller goes.
    std::condition_variable wake{};
  };
  struct Answered {
    Waiting* caller;
    Status outcome;
  };
  // What became of the callers of a group.
  struct Group {
    std::vector<Answered> answered{};
    std::vector<Waiting*> put_back{};  // Another server holds what they lock: again, later.
  };
  enum class Part { kDone, kBusy, kTransactionLost };

  Waiting* NextInLine();
  std::vector<Waiting*> WholeLine();
  void WakeFirst();  // mutex_ is held.

  Group Lead(Waiting& first);
  Group RunTogether(SqlConnection& connection, Waiting& first);
  static Part RunPart(StoreTransaction& transaction, Waiting& caller, Group& group);
  void Commit(SqlConnection& connection, StoreTransaction& transaction, Group& group);
  static std::vector<Waiting*> CallersOf(const Group& group);
  Group RunOneByOne(SqlConnection& connection, const std::vector<Waiting*>& callers);
  void Tell(const Group& group);

  ConnectionPool& connections_;
  ParsedJobs& parsed_;
  const int most_groups_;
  std::mutex mutex_;
  std::deque<Waiting*> line_;  // Guarded by mutex_.
  int groups_ = 0;             // Guarded by mutex_; under way.
};

}  // namespace zeus
