#pragma once

#include <memory>
#include <string>
#include <utility>

#include "apps/zeus/command.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/retry_policy.h"
#include "zeus/job/job_repository.h"
#include "zeus/job/job_service.h"
#include "zeus/store/open_repository.h"

namespace zeus::cli {

// Where recurring jobs live, as typed.
struct JobSourceFlags {
  std::string server{};
  std::string database{};
  std::string token_file{};
  std::string ca_file{};
  RetryPolicy retry = kRetryForAPerson;
};

// Declares --server, --database, --token-file and --ca-file on `verb`.
void AddJobSourceFlags(Verb verb, JobSourceFlags& flags);

// A server, or a database that this process serves itself: the same code. One owner.
class JobSource {
 public:
  // The clock must outlive it. kInvalidArgument when flags contradict each other.
  static Result<std::unique_ptr<JobSource>> Open(
      const JobSourceFlags& flags, Clock& clock,
      RepositoryAccess access = RepositoryAccess::kWrite);

  JobService& service() { return *service_; }
  // Null when a server has it.
  JobRepository* repository() { return repository_.get(); }
  // The address of the server or the database, without secrets; that of a file is absolute.
  const std::string& where() const { return where_; }

 private:
  JobSource(std::unique_ptr<JobRepository> repository, std::unique_ptr<JobService> service,
            std::string where)
      : repository_(std::move(repository)),
        service_(std::move(service)),
        where_(std::move(where)) {}

  std::unique_ptr<JobRepository> repository_;
  std::unique_ptr<JobService> service_;
  std::string where_;
};

}  // namespace zeus::cli
