#include "zeus/store/testing/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"

namespace zeus::testing {
namespace {

using namespace std::chrono_literals;
constexpr Seconds kAnswerTimeout = 30s;

// The newest of /usr/lib/postgresql/<version>/bin, where Debian has it.
Result<std::filesystem::path> Programs() {
  std::filesystem::path newest;
  std::error_code ignored;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored))
    if (::access((version.path() / "bin/initdb").c_str(), X_OK) == 0 && version.path() > newest)
      newest = version.path();
  if (newest.empty())
    return Error{ErrorCode::kNotFound, "PostgreSQL is not here: apt-get install postgresql-15"};
  return newest / "bin";
}

// In the child: what it starts must not survive this process, nor be root.
void BecomeTheServersUser(const passwd* user) {
  if (user != nullptr &&
      (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0))
    ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
}

pid_t Run(const std::vector<std::string>& command, const std::filesystem::path& folder) {
  const passwd* user = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::string log = folder / "log";
  const pid_t child = ::fork();
  if (child != 0) return child;
  BecomeTheServersUser(user);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (::chdir("/") == 0) ::execv(arguments.front(), arguments.data());
  ::_exit(127);
}

int Wait(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

Error Failed(const std::string& what, const std::filesystem::path& folder) {
  return Error{ErrorCode::kInternal, what + ": " + ReadSmallFile(folder / "log").value()};
}

}  // namespace

PostgresServer::PostgresServer(std::filesystem::path programs, std::filesystem::path folder,
                               Sync sync)
    : programs_(std::move(programs)), folder_(std::move(folder)), sync_(sync) {}

PostgresServer::~PostgresServer() {
  Crash();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Result<std::unique_ptr<PostgresServer>> PostgresServer::Start(Sync sync) {
  ZEUS_TRY(std::filesystem::path programs, Programs());
  std::string folder = "/tmp/zeus-postgres-XXXXXX";  // A socket's path must be short.
  if (::mkdtemp(folder.data()) == nullptr) return FileError(folder, errno);
  std::unique_ptr<PostgresServer> server(
      new PostgresServer(std::move(programs), std::move(folder), sync));
  ZEUS_RETURN_IF_ERROR(server->Initialise());
  ZEUS_RETURN_IF_ERROR(server->Launch());
  return server;
}

Status PostgresServer::Initialise() {
  if (::geteuid() == 0) {
    const passwd* user = ::getpwnam("postgres");
    if (user == nullptr || ::chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0)
      return Error{ErrorCode::kNotFound, "there is no user postgres: install postgresql-15"};
  }
  const pid_t initdb =
      Run({programs_ / "initdb", "-D", folder_ / "data", "-A", "trust", "-U", "postgres", "-E",
           "UTF8", "--no-sync", "--locale=C", "--no-instructions"},
          folder_);
  return Wait(initdb) == 0 ? Ok() : Failed("initdb", folder_);
}

Status PostgresServer::Launch() {
  server_ = Run({programs_ / "postgres", "-D", folder_ / "data", "-k", folder_, "-c",
                 "listen_addresses=", "-c", sync_ == Sync::kYes ? "fsync=on" : "fsync=off", "-c",
                 "max_connections=200"},
                folder_);
  SystemClock clock;
  const TimePoint deadline = clock.Now() + kAnswerTimeout;
  while (PQping(Url("postgres").c_str()) != PQPING_OK) {
    if (clock.Now() > deadline || ::waitpid(server_, nullptr, WNOHANG) != 0)
      return Failed("postgres", folder_);
    clock.SleepFor(10ms);
  }
  return Ok();
}

void PostgresServer::Crash() {
  if (server_ <= 0) return;
  ::kill(server_, SIGQUIT);  // pg_ctl stop -m immediate
  Wait(std::exchange(server_, -1));
}

Status PostgresServer::Restart() {
  Crash();
  return Launch();
}

std::string PostgresServer::Url(const std::string& database) const {
  return "postgresql:///" + database + "?user=postgres&host=" + folder_.string();
}

Result<std::string> PostgresServer::Database(const std::string& name) {
  const std::unique_ptr<PGconn, void (*)(PGconn*)> connection(PQconnectdb(Url("postgres").c_str()),
                                                              PQfinish);
  const std::unique_ptr<PGresult, void (*)(PGresult*)> made(
      PQexec(connection.get(), ("CREATE DATABASE " + name).c_str()), PQclear);
  if (PQresultStatus(made.get()) == PGRES_COMMAND_OK) return Url(name);
  return Error{ErrorCode::kInternal, PQerrorMessage(connection.get())};
}

}  // namespace zeus::testing
