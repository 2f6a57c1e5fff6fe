#include "zeus/store/sql_database.h"

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <utility>

#include "zeus/base/random.h"
#include "zeus/store/sql_values.h"
#include "zeus/store/store_transaction.h"

namespace zeus {
namespace {

// More would keep the first one waiting for the work of the others rather than for the disk.
constexpr std::size_t kMostInGroup = 128;
constexpr int kAttempts = 4;

// The caller's function runs in a thread that has others to answer, too.
Status Call(const GroupCommitter::Change& change, StoreTransaction& transaction) {
  try {
    return change(transaction);
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, std::string("a change threw: ") + exception.what()};
  }
}

struct Attempt {
  Status outcome;
  bool again = false;  // The database took it back, and may take it the next time.
};

using Failure = StoreTransaction::Failure;

Attempt RunAlone(SqlConnection& connection, ParsedJobs& parsed,
                 const GroupCommitter::Change& change) {
  StoreTransaction transaction(connection, parsed);
  Status outcome = Call(change, transaction);
  auto failure = transaction.TakeFailure();
  if (outcome.ok() && !failure) {
    outcome = transaction.Keep();
    if (outcome.ok()) outcome = transaction.WriteHeld();
    failure = transaction.TakeFailure();
  }
  if (failure || !outcome.ok()) {
    connection.Rollback();
    const bool again = failure && failure->kind == Failure::Kind::kRunAgain;
    return {failure ? std::move(failure->error) : std::move(outcome), again};
  }
  Status committed = connection.Commit();
  const bool again = !committed.ok() && connection.trouble() == SqlTrouble::kTransactionLost;
  return {std::move(committed), again};
}

}  // namespace

GroupCommitter::GroupCommitter(ConnectionPool& connections, int groups, ParsedJobs& parsed)
    : connections_(connections), parsed_(parsed), most_groups_(groups) {}

Status GroupCommitter::Write(const Change& change) {
  Waiting self{change};
  {
    std::unique_lock lock(mutex_);
    line_.push_back(&self);
    self.wake.wait(lock, [&] {
      return self.outcome || (!line_.empty() && line_.front() == &self && groups_ < most_groups_);
    });
    if (self.outcome) return *std::move(self.outcome);
    line_.pop_front();
    ++groups_;
    WakeFirst();
  }
  Tell(Lead(self));
  return *std::move(self.outcome);
}

void GroupCommitter::WakeFirst() {
  if (!line_.empty() && groups_ < most_groups_) line_.front()->wake.notify_one();
}

GroupCommitter::Waiting* GroupCommitter::NextInLine() {
  const std::lock_guard lock(mutex_);
  if (line_.empty()) return nullptr;
  Waiting* next = line_.front();
  line_.pop_front();
  WakeFirst();
  return next;
}

std::vector<GroupCommitter::Waiting*> GroupCommitter::WholeLine() {
  const std::lock_guard lock(mutex_);
  std::vector<Waiting*> all(line_.begin(), line_.end());
  line_.clear();
  return all;
}

void GroupCommitter::Tell(const Group& group) {
  const std::lock_guard lock(mutex_);
  for (const Answered& answered : group.answered) {
    answered.caller->outcome = answered.outcome;
    answered.caller->wake.notify_one();
  }
  // In their old order, before everybody else: the first of them will wait for its job.
  line_.insert(line_.begin(), group.put_back.begin(), group.put_back.end());
  --groups_;
  WakeFirst();
}

GroupCommitter::Group GroupCommitter::Lead(Waiting& first) {
  auto connection = connections_.Borrow();
  Status begun = connection.ok() ? (*connection.value()).Begin() : connection.error();
  if (begun.ok()) return RunTogether(*connection.value(), first);
  // Nobody else would fare better now; each trying for himself would only take longer.
  Group group{{{&first, begun}}};
  for (Waiting* caller : WholeLine()) group.answered.push_back({caller, begun});
  return group;
}

GroupCommitter::Group GroupCommitter::RunTogether(SqlConnection& connection, Waiting& first) {
  Group group;
  StoreTransaction transaction(connection, parsed_);
  for (Waiting* next = &first; next != nullptr;
       next = group.answered.size() < kMostInGroup ? NextInLine() : nullptr) {
    const Part part = RunPart(transaction, *next, group);
    if (part == Part::kBusy) group.put_back.push_back(next);
    if (part != Part::kTransactionLost) continue;
    connection.Rollback();
    std::vector<Waiting*> again = CallersOf(group);
    again.push_back(next);
    Group alone = RunOneByOne(connection, again);
    alone.put_back = std::move(group.put_back);
    return alone;
  }
  Commit(connection, transaction, group);
  return group;
}

GroupCommitter::Part GroupCommitter::RunPart(StoreTransaction& transaction, Waiting& caller,
                                             Group& group) {
  Status outcome = Call(caller.change, transaction);
  const auto failure = transaction.TakeFailure();
  if (failure && failure->kind != Failure::Kind::kBusy) return Part::kTransactionLost;
  const bool keep = outcome.ok() && !failure;
  const Status settled = keep ? transaction.Keep() : transaction.TakeBack();
  if (!settled.ok()) return Part::kTransactionLost;
  if (failure) {
    // The first had nobody's lock but its own to wait for: it wants two of them.
    if (!group.answered.empty()) return Part::kBusy;
    outcome = failure->error;
  }
  group.answered.push_back({&caller, std::move(outcome)});
  return Part::kDone;
}

// Also who gets an error waits for this: it may be due to what others of the group did.
void GroupCommitter::Commit(SqlConnection& connection, StoreTransaction& transaction,
                            Group& group) {
  Status committed = transaction.WriteHeld();
  if (committed.ok()) {
    committed = connection.Commit();
    if (committed.ok()) return;
    if (connection.trouble() == SqlTrouble::kCommitUnknown) {
      for (Answered& answered : group.answered) answered.outcome = committed;
      return;
    }
  }
  connection.Rollback();
  group.answered = RunOneByOne(connection, CallersOf(group)).answered;
}

std::vector<GroupCommitter::Waiting*> GroupCommitter::CallersOf(const Group& group) {
  std::vector<Waiting*> callers;
  for (const Answered& answered : group.answered) callers.push_back(answered.caller);
  return callers;
}

// After a group was taken back: whatever was the matter with one of them, the others get through.
GroupCommitter::Group GroupCommitter::RunOneByOne(SqlConnection& connection,
                                                  const std::vector<Waiting*>& callers) {
  Group group;
  std::optional<Error> down;
  for (Waiting* caller : callers) {
    Attempt attempt{Ok(), true};
    for (int i = 0; i < kAttempts && attempt.again && !down; ++i) {
      if (auto begun = connection.Begin(); begun.ok())
        attempt = RunAlone(connection, parsed_, caller->change);
      else
        down = begun.error();
    }
    if (down) attempt.outcome = *down;
    group.answered.push_back({caller, std::move(attempt.outcome)});
  }
  return group;
}

namespace {

constexpr std::size_t kProbeSize = 8192;

}  // namespace

SqlDatabase::SqlDatabase(Connections connections)
    : connections_(std::move(connections)),
      committer_(*connections_.writers, connections_.most_writers, parsed_jobs_) {}

Result<SqlAnswer> SqlDatabase::ReadOnce(const std::string& sql, const SqlRow& values) {
  ZEUS_RETURN_IF_ERROR(CheckValues(values, "a question"));
  ConnectionPool& pool = connections_.readers ? *connections_.readers : *connections_.writers;
  ZEUS_TRY(const ConnectionPool::Loan connection, pool.Borrow());
  return connection->Run(sql, values);
}

Result<SqlAnswer> SqlDatabase::Read(const std::string& sql, const SqlRow& values) {
  Result<SqlAnswer> answer = ReadOnce(sql, values);
  if (!answer.ok()) NoteDamage(answer.error());
  return answer;
}

Status SqlDatabase::Write(const GroupCommitter::Change& change) {
  Status written = committer_.Write(change);
  if (!written.ok()) NoteDamage(written.error());
  return written;
}

void SqlDatabase::NoteDamage(const Error& error) {
  if (error.code != ErrorCode::kInternal) return;
  const std::lock_guard lock(mutex_);
  damage_ = error;
}

Status SqlDatabase::Ping() {
  for (const char* table : {"jobs", "trials", "events", "plans"})
    ZEUS_RETURN_IF_ERROR(Read(fmt::format("SELECT 1 FROM {} LIMIT 1", table), {}));
  // Several pages, and never the same: what a change of a job writes, more or less.
  std::string filler;
  while (filler.size() < kProbeSize)
    fmt::format_to(std::back_inserter(filler), "{:016x}", SystemEntropy());
  const auto write = [&](StoreTransaction& transaction) -> Status {
    ZEUS_RETURN_IF_ERROR(
        transaction.rows().Change("INSERT INTO zeus_probe (id, filler) VALUES (1, $1)"
                                  " ON CONFLICT (id) DO UPDATE SET filler = excluded.filler",
                                  Values(filler)));
    return Ok();
  };
  ZEUS_RETURN_IF_ERROR(Write(write));
  const std::lock_guard lock(mutex_);
  if (!damage_) return Ok();
  return *std::exchange(damage_, std::nullopt);
}

}  // namespace zeus
