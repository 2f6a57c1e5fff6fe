#include "zeus/base/process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

std::atomic<unsigned> fork_generation{0};

}  // namespace

void WatchForks() {
  static const int kRegistered = ::pthread_atfork(
      nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  (void)kRegistered;  // Fails only without memory.
}

unsigned ForkGeneration() { return fork_generation.load(std::memory_order_relaxed); }

namespace {

constexpr const char* kUsualPath = "/bin:/usr/bin";  // As execvp() has it where PATH is not set.

// The errno with which exec() would fail; 0 when it would not.
int ReasonAgainst(const std::filesystem::path& file) {
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (!std::filesystem::exists(status)) return failure ? failure.value() : ENOENT;
  if (std::filesystem::is_directory(status)) return EACCES;
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

Result<std::filesystem::path> FindExecutable(const std::string& command,
                                             const Environment& environment) {
  if (command.find('/') != std::string::npos) {
    const int reason = ReasonAgainst(command);
    if (reason != 0) return CannotExecute(command, reason);
    return std::filesystem::path(command);
  }
  int reason = ENOENT;
  const std::string path = environment("PATH").value_or(kUsualPath);
  for (std::string_view folders = path; !command.empty();) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);  // An empty one is the present one.
    auto file = std::filesystem::path(folder.empty() ? "." : folder) / command;
    const int against = ReasonAgainst(file);
    if (against == 0) return file;
    if (against == EACCES) reason = EACCES;  // exec() goes on searching, and remembers.
    if (colon == std::string_view::npos) break;
    folders.remove_prefix(colon + 1);
  }
  return CannotExecute(command, reason);
}

Error CannotExecute(const std::string& command, int reason) {
  const bool missing = reason == ENOENT || reason == ENOTDIR;
  if (missing && command.find('/') == std::string::npos)
    return {ErrorCode::kNotFound, fmt::format("{}: no such command in PATH", Printable(command))};
  return {missing ? ErrorCode::kNotFound : ErrorCode::kNotSupported,
          fmt::format("{}: {}", Printable(command),
                      LowerCase(std::generic_category().message(reason)))};
}

namespace {

struct Stat {
  std::int64_t pid = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;
};

Result<Stat> ReadStat(const std::filesystem::path& path) {
  ZEUS_TRY(const std::string text, ReadSmallFile(path));
  const auto malformed = [&path] {
    return Error{ErrorCode::kInternal, path.string() + " does not describe a process"};
  };
  // The name of the program, in parentheses, may itself hold blanks and parentheses.
  const auto end_of_name = text.rfind(')');
  const auto begin_of_name = text.find('(');
  if (end_of_name == std::string::npos || begin_of_name == std::string::npos) return malformed();
  const auto pid = ParseInteger(Trim(std::string_view(text).substr(0, begin_of_name)));
  std::istringstream fields(text.substr(end_of_name + 1));
  constexpr int kFieldsBetween = 18;  // 4 (ppid) to 21 (itrealvalue)
  Stat stat;
  fields >> stat.state;
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> stat.start_ticks;
  if (!pid.ok() || fields.fail()) return malformed();
  stat.pid = pid.value();
  return stat;
}

Result<std::string> Namespace(const std::filesystem::path& procfs) {
  std::error_code failure;
  const auto link = std::filesystem::read_symlink(procfs / "self/ns/pid", failure);
  if (failure) return FileError(procfs / "self/ns/pid", failure.value());
  return link.string();
}

}  // namespace

namespace {

Result<ProcessIdentity> IdentityIn(const std::string& folder, const std::filesystem::path& procfs) {
  ZEUS_TRY(const Stat stat, ReadStat(procfs / folder / "stat"));
  ZEUS_TRY(std::string pid_namespace, Namespace(procfs));
  return ProcessIdentity{
      .pid = stat.pid, .start_ticks = stat.start_ticks, .pid_namespace = std::move(pid_namespace)};
}

}  // namespace

Result<ProcessIdentity> ThisProcess(const std::filesystem::path& procfs) {
  return IdentityIn("self", procfs);
}

Result<ProcessIdentity> ProcessWithPid(std::int64_t pid, const std::filesystem::path& procfs) {
  return IdentityIn(std::to_string(pid), procfs);
}

bool IsRunning(const ProcessIdentity& process, const std::filesystem::path& procfs) {
  const auto here = Namespace(procfs);
  if (!here.ok() || here.value() != process.pid_namespace) return true;
  const auto stat = ReadStat(procfs / fmt::format("{}/stat", process.pid));
  // A process may end between open() and read(): ESRCH.
  if (!stat.ok()) return std::filesystem::exists(procfs / std::to_string(process.pid));
  const bool ended = stat.value().state == 'Z' || stat.value().state == 'X';
  return !ended && stat.value().start_ticks == process.start_ticks;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "localhost";
  return name.data();
}

}  // namespace zeus
