#include "zeus/session/job_source.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/process.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/client/remote_job_service.h"
#include "zeus/job/local_job_service.h"

namespace zeus {
namespace {

Result<std::string> FindToken(const JobSourceOptions& options) {
  if (!options.token_file.empty()) {
    ZEUS_TRY(const std::string text, ReadSmallFile(options.token_file));
    return std::string(Trim(text));
  }
  return ProcessEnvironment()("ZEUS_TOKEN").value_or("");
}

// Empty means those that the system trusts.
std::string Authorities(const JobSourceOptions& options) {
  if (!options.ca_file.empty()) return options.ca_file;
  return ProcessEnvironment()("ZEUS_CA_FILE").value_or("");
}

// Returns the URL without the user and the password before its '@'.
std::string WithoutSecrets(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t at = url.find('@');
  if (scheme == std::string::npos || at == std::string::npos || url.starts_with("sqlite:"))
    return url;
  return url.substr(0, scheme + 3) + url.substr(at + 1);
}

// Makes the path of a database absolute, so that one file has one name.
std::string Absolute(const std::string& url) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (!url.starts_with(kSqlite) || url == "sqlite::memory:") return url;
  std::string_view path = std::string_view(url).substr(kSqlite.size());
  if (path.starts_with("///")) path.remove_prefix(2);
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  return error ? url : "sqlite://" + whole.string();
}

}  // namespace

Result<std::unique_ptr<JobSource>> JobSource::Open(const JobSourceOptions& options, Clock& clock,
                                                   RepositoryAccess access) {
  if (!options.server.empty() && !options.database.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "server and database both say where jobs are: give one of them"};
  std::string server = options.server;
  if (server.empty() && options.database.empty())
    server = ProcessEnvironment()("ZEUS_SERVER").value_or("");
  if (!server.empty()) {
    ZEUS_TRY(std::string token, FindToken(options));
    ZEUS_TRY(std::unique_ptr<RemoteJobService> remote,
             RemoteJobService::Connect({.url = server,
                                        .token = std::move(token),
                                        .authorities = Authorities(options),
                                        .retry = options.retry},
                                       clock));
    return std::unique_ptr<JobSource>(
        new JobSource(nullptr, std::move(remote), WithoutSecrets(server)));
  }
  std::string url = options.database;
  if (url.empty()) {
    ZEUS_TRY(url, DefaultDatabaseUrl(ProcessEnvironment()));
  }
  ZEUS_TRY(std::unique_ptr<JobRepository> repository, OpenRepository(url, {.access = access}));
  auto service = std::make_unique<LocalJobService>(
      *repository, clock, SystemEntropy,
      LocalJobService::LeaseOptions{.boot_clock = CurrentBootTime});
  return std::unique_ptr<JobSource>(
      new JobSource(std::move(repository), std::move(service), WithoutSecrets(Absolute(url))));
}

}  // namespace zeus
