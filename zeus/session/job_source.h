#pragma once

#include <memory>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/retry_policy.h"
#include "zeus/job/job_repository.h"
#include "zeus/job/job_service.h"
#include "zeus/store/open_repository.h"

namespace zeus {

// Where recurring jobs live: on a server or in a database, not both. Without either it is the
// server that ZEUS_SERVER names, or else a file in the data folder of the user.
struct JobSourceOptions {
  std::string server{};      // http://host:8000, https://… or unix:///path
  std::string database{};    // sqlite:///path/zeus.db or postgresql://…
  std::string token_file{};  // Bearer token of the server; else it is ZEUS_TOKEN.
  std::string ca_file{};     // Certificate authorities; else ZEUS_CA_FILE or those of the system.
  RetryPolicy retry = kRetryForAPerson;  // How calls of a server are repeated.
};

// A job service: a server, or a database that this process serves itself. One owner.
class JobSource {
 public:
  // The clock must outlive it. kInvalidArgument when the options contradict each other.
  static Result<std::unique_ptr<JobSource>> Open(
      const JobSourceOptions& options, Clock& clock,
      RepositoryAccess access = RepositoryAccess::kWrite);

  JobService& service() { return *service_; }
  // Null when a server has the jobs.
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

}  // namespace zeus
