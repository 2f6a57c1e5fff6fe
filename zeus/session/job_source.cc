#include "apps/zeus/job/job_source.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "apps/zeus/numbers.h"
#include "zeus/base/boot_time.h"
#include "zeus/base/file.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/base/user_files.h"
#include "zeus/client/remote_job_service.h"
#include "zeus/job/local_job_service.h"

namespace zeus::cli {
namespace {

// Nobody wants to wait longer for a program to end.

Result<std::string> FindToken(const JobSourceFlags& flags) {
  if (!flags.token_file.empty()) {
    ZEUS_TRY(const std::string text, ReadSmallFile(flags.token_file));
    return std::string(Trim(text));
  }
  return ProcessEnvironment()("ZEUS_TOKEN").value_or("");
}

// Empty: those that the system trusts.
std::string Authorities(const JobSourceFlags& flags) {
  if (!flags.ca_file.empty()) return flags.ca_file;
  return ProcessEnvironment()("ZEUS_CA_FILE").value_or("");
}

// Of a URL, without the user and the password before its '@'.
std::string WithoutSecrets(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t at = url.find('@');
  if (scheme == std::string::npos || at == std::string::npos || url.starts_with("sqlite:"))
    return url;
  return url.substr(0, scheme + 3) + url.substr(at + 1);
}

// The same file has the same name wherever it is named from.
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

void AddJobSourceFlags(Verb verb, JobSourceFlags& flags) {
  verb.AddOption("--server", flags.server,
                 "Address of a zeus serve: http://host:8000, https://… or unix:///path; also from "
                 "ZEUS_SERVER")
      .Check(NotEmpty());
  verb.AddOption("--database", flags.database,
                 "Without a server: sqlite:///path/zeus.db or postgresql://…; by default a file "
                 "in the user's data folder")
      .Check(NotEmpty());
  verb.AddOption("--token-file", flags.token_file,
                 "File with the server's bearer token; else it is ZEUS_TOKEN")
      .Check(NotEmpty());
  verb.AddOption("--ca-file", flags.ca_file,
                 "File with certificates (PEM) whose holders may vouch for the server, instead of "
                 "the system's; also from ZEUS_CA_FILE")
      .Check(NotEmpty());
}

Result<std::unique_ptr<JobSource>> JobSource::Open(const JobSourceFlags& flags, Clock& clock,
                                                   RepositoryAccess access) {
  if (!flags.server.empty() && !flags.database.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "--server and --database both say where jobs are: give one of them"};
  std::string server = flags.server;
  if (server.empty() && flags.database.empty())
    server = ProcessEnvironment()("ZEUS_SERVER").value_or("");
  if (!server.empty()) {
    ZEUS_TRY(std::string token, FindToken(flags));
    ZEUS_TRY(std::unique_ptr<RemoteJobService> remote,
             RemoteJobService::Connect({.url = server,
                                        .token = std::move(token),
                                        .authorities = Authorities(flags),
                                        .attempts = flags.attempts,
                                        .answer_timeout = flags.answer_timeout},
                                       clock));
    return std::unique_ptr<JobSource>(
        new JobSource(nullptr, std::move(remote), WithoutSecrets(server)));
  }
  std::string url = flags.database;
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

}  // namespace zeus::cli
