// Measures how many changes and reads per second the stores achieve, next to how often the disk
// syncs in a second: a change of a job is durable when it is answered, so without shared commits
// nothing could be faster than the disk. Prints the tables of docs/performance.md.
//   store_benchmark [SECONDS [sqlite|postgresql]]   seconds per figure (3); only this store
// TMPDIR decides which disk is used.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/store/open_repository.h"
#include "zeus/store/testing/postgres_server.h"
#include "zeus/store/testing/repository_harness.h"

namespace {

using namespace zeus;
using zeus::testing::AJob;
using zeus::testing::AnEvent;
using zeus::testing::ATrial;
using zeus::testing::PostgresServer;

constexpr int kManyThreads = 64;

struct Bench {
  SystemClock clock{};
  Seconds time{3.0};
  double syncs_per_second = 0.0;

  // Returns how often per second `threads` threads complete `work(thread, round)`. A thread ends
  // when `work` returns false.
  double Rate(int threads, const std::function<bool(int, int)>& work) {
    std::atomic<std::int64_t> done = 0;
    const TimePoint start = clock.Now();
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread)
      running.emplace_back([&, thread] {
        for (int round = 0; clock.Now() - start < time; ++round) {
          if (!work(thread, round)) return;
          ++done;
        }
      });
    for (std::thread& thread : running) thread.join();
    return static_cast<double>(done) / (clock.Now() - start).count();
  }
};

// Appends a block to a file and syncs it, as the log of a database does.
double SyncsPerSecond(Bench& bench, const std::filesystem::path& folder) {
  const FileDescriptor file(::open((folder / "sync").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  std::array<char, 4096> block{};
  const auto write_and_sync = [&](int, int round) {
    block.fill(static_cast<char>(round));
    return ::pwrite(file.get(), block.data(), block.size(),
                    static_cast<off_t>(round) * std::ssize(block)) == std::ssize(block) &&
           ::fdatasync(file.get()) == 0;
  };
  return bench.Rate(1, write_and_sync);
}

std::string JobName(int thread, int jobs) { return fmt::format("job{}", thread % jobs); }

// Makes the same change in the store as beginning a trial.
Status BeginTrial(JobRepository& repository, const std::string& id, const std::string& request) {
  return repository.Write([&](JobTransaction& change) -> Status {
    ZEUS_TRY(Job job, change.LockJob(id));
    ZEUS_TRY(const auto known, change.FindTrialByRequest(id, request));
    ZEUS_TRY(const bool exploring, change.HasActiveTrial(id, RunRole::kExploring));
    Trial trial = ATrial(id, ++job.trials);
    trial.request_id = request;
    trial.status = known || exploring ? TrialStatus::kReporting : TrialStatus::kConverged;
    ZEUS_RETURN_IF_ERROR(change.InsertTrial(trial));
    ZEUS_RETURN_IF_ERROR(change.AppendEvent(AnEvent(id, ++job.events)));
    return change.UpdateJob(job);
  });
}

// Makes the same change in the store as a report of a trial.
Status Report(JobRepository& repository, const std::string& id, std::int64_t number) {
  return repository.Write([&](JobTransaction& change) -> Status {
    ZEUS_TRY(Job job, change.LockJob(id));
    ZEUS_TRY(auto trial, change.FindTrial(id, number));
    if (!trial) return Error{ErrorCode::kInternal, "no trial"};
    ++trial->epochs;
    ZEUS_RETURN_IF_ERROR(change.UpdateTrial(*trial));
    ZEUS_RETURN_IF_ERROR(change.AppendEvent(AnEvent(id, ++job.events)));
    return change.UpdateJob(job);
  });
}

void AddJobs(JobRepository& repository, int jobs) {
  for (int i = 0; i < jobs; ++i) {
    Job job = AJob(fmt::format("job{}", i));
    job.trials = kManyThreads;
    job.events = 1;
    for (int b = 0; b < 50; ++b)
      job.policy_state["arms"].push_back({{"batch_size", b}, {"mean", 1.0 / (b + 1)}});
    const Status added = repository.Write([&](JobTransaction& change) -> Status {
      ZEUS_RETURN_IF_ERROR(change.InsertJob(job));
      for (int number = 1; number <= kManyThreads; ++number)
        ZEUS_RETURN_IF_ERROR(change.InsertTrial(ATrial(job.spec.id, number)));
      return Ok();
    });
    if (!added.ok()) fmt::print(stderr, "store_benchmark: {}\n", added.error().message);
  }
}

void PrintWrites(Bench& bench, const std::string& what, int threads,
                 const std::function<Status(int, int)>& write) {
  const double rate = bench.Rate(threads, [&](int thread, int round) {
    const Status written = write(thread, round);
    if (!written.ok()) fmt::print(stderr, "store_benchmark: {}\n", written.error().message);
    return written.ok();
  });
  fmt::print("| {} | {} | {:.0f} | {:.1f} |\n", what, threads, rate, rate / bench.syncs_per_second);
}

void Measure(Bench& bench, const std::string& name, const std::string& url) {
  auto opened = OpenRepository(url);
  if (!opened.ok()) {
    fmt::print(stderr, "store_benchmark: {}\n", opened.error().message);
    return;
  }
  JobRepository& repository = *opened.value();
  AddJobs(repository, kManyThreads);
  for (const int threads : {1, kManyThreads}) {
    for (const int jobs : {1, kManyThreads}) {
      if (jobs > threads) continue;
      const std::string where =
          fmt::format("{}, {}", name, jobs == 1 ? "one job" : "a job for each");
      PrintWrites(bench, where + ", begin a trial", threads, [&](int thread, int round) {
        return BeginTrial(repository, JobName(thread, jobs),
                          fmt::format("{}-{}-{}-{}", threads, jobs, thread, round));
      });
      PrintWrites(bench, where + ", report", threads, [&](int thread, int) {
        return Report(repository, JobName(thread, jobs), thread + 1);
      });
    }
    const double reads = bench.Rate(threads, [&](int thread, int) {
      return repository.FindJob(JobName(thread, kManyThreads)).ok();
    });
    fmt::print("| {}, read a job | {} | {:.0f} | |\n", name, threads, reads);
  }
}

}  // namespace

int main(int count, char** arguments) {
  Bench bench;
  if (count > 1) bench.time = Seconds(std::strtod(arguments[1], nullptr));
  const std::string only = count > 2 ? arguments[2] : "";
  const zeus::testing::TemporaryDirectory folder;
  bench.syncs_per_second = SyncsPerSecond(bench, folder.path());
  fmt::print("| | callers | per second | per sync of the disk |\n|---|---|---|---|\n");
  fmt::print("| append 4 kB and sync | 1 | {:.0f} | 1 |\n", bench.syncs_per_second);
  if (only != "postgresql")
    Measure(bench, "SQLite", "sqlite://" + (folder.path() / "zeus.db").string());
  if (only == "sqlite") return 0;
  const auto server = PostgresServer::Start(PostgresServer::Sync::kYes);
  if (!server.ok()) {
    fmt::print(stderr, "store_benchmark: {}\n", server.error().message);
    return 1;
  }
  Measure(bench, "PostgreSQL", server.value()->Database("bench").value());
  return 0;
}
