#include "zeus/store/sql_database.h"

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <utility>

#include "zeus/base/random.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_job_transaction.h"

namespace zeus {
namespace {

// In a larger group the first caller would wait for the others' work rather than for the disk.
constexpr std::size_t kMostInGroup = 128;
constexpr int kAttempts = 4;

// Catches exceptions: the change runs on a thread that has other callers to serve.
Status Call(const GroupCommitter::Change& change, StoreTransaction& transaction) {
  try {
    return change(transaction);
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, std::string("a change threw: ") + exception.what()};
  }
}

struct Attempt {
  Status outcome;
  bool again = false;  // The database rolled it back, and may accept it the next time.
};

using Failure = StoreTransaction::Failure;

Attempt RunAlone(SqlConnection& connection, ParsedJobs& parsed,
                 const GroupCommitter::Change& change) {
  StoreTransaction transaction(connection, parsed);
  Status outcome = Call(change, transaction);
  auto failure = transaction.FetchFailure();
  if (outcome.ok() && !failure) {
    outcome = transaction.Keep();
    if (outcome.ok()) outcome = transaction.WriteHeld();
    failure = transaction.FetchFailure();
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

constexpr std::size_t kProbeSize = 8192;

}  // namespace

// --- connections ---

ConnectionPool::Loan::Loan(ConnectionPool& pool, std::unique_ptr<SqlConnection> connection)
    : pool_(&pool), connection_(std::move(connection)) {}

ConnectionPool::Loan::~Loan() {
  if (connection_) pool_->Return(std::move(connection_));
}

ConnectionPool::ConnectionPool(Opener open, int most) : open_(std::move(open)), most_(most) {}

void ConnectionPool::Add(std::unique_ptr<SqlConnection> connection) {
  const std::lock_guard lock(mutex_);
  ++open_connections_;
  idle_.push_back(std::move(connection));
}

Result<ConnectionPool::Loan> ConnectionPool::Borrow() {
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty() || open_connections_ < most_; });
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return Loan(*this, std::move(connection));
    }
    ++open_connections_;
  }
  auto opened = open_();  // Opening may take long, so mutex_ is not held.
  if (opened.ok()) return Loan(*this, std::move(opened).value());
  Forget();
  return std::move(opened).error();
}

void ConnectionPool::Return(std::unique_ptr<SqlConnection> connection) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  returned_.notify_one();
}

void ConnectionPool::Forget() {
  {
    const std::lock_guard lock(mutex_);
    --open_connections_;
  }
  returned_.notify_one();
}

// --- groups of changes ---

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
  Deliver(Lead(self));
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

void GroupCommitter::Deliver(const Group& group) {
  const std::lock_guard lock(mutex_);
  for (const Answered& answered : group.answered) {
    answered.caller->outcome = answered.outcome;
    answered.caller->wake.notify_one();
  }
  // They keep their order, ahead of all others. The first of them will lead and wait for its lock.
  line_.insert(line_.begin(), group.put_back.begin(), group.put_back.end());
  --groups_;
  WakeFirst();
}

GroupCommitter::Group GroupCommitter::Lead(Waiting& first) {
  auto connection = connections_.Borrow();
  Status begun = connection.ok() ? (*connection.value()).Begin() : connection.error();
  if (begun.ok()) return RunTogether(*connection.value(), first);
  // Without a connection no caller can succeed now, so all of them fail at once.
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
    std::vector<Waiting*> again = Callers(group);
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
  const auto failure = transaction.FetchFailure();
  if (failure && failure->kind != Failure::Kind::kBusy) return Part::kTransactionLost;
  const bool keep = outcome.ok() && !failure;
  const Status ended = keep ? transaction.Keep() : transaction.Undo();
  if (!ended.ok()) return Part::kTransactionLost;
  if (failure) {
    // The first change holds no lock of another, so it needs two locks itself.
    if (!group.answered.empty()) return Part::kBusy;
    outcome = failure->error;
  }
  group.answered.push_back({&caller, std::move(outcome)});
  return Part::kDone;
}

// Callers whose change failed wait for the commit, too: their error may be due to other changes of
// the group.
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
  group.answered = RunOneByOne(connection, Callers(group)).answered;
}

std::vector<GroupCommitter::Waiting*> GroupCommitter::Callers(const Group& group) {
  std::vector<Waiting*> callers;
  for (const Answered& answered : group.answered) callers.push_back(answered.caller);
  return callers;
}

// Runs the changes of a group that was rolled back, so that one bad change does not fail the
// others.
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

// --- the database ---

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
  for (const char* table : {"jobs", "trials", "events", "plans", "duels", "duel_votes"})
    ZEUS_RETURN_IF_ERROR(Read(fmt::format("SELECT 1 FROM {} LIMIT 1", table), {}));
  // Several pages of new content, about as much as a change of a job writes.
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
