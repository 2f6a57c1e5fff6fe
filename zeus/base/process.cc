#include "zeus/base/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus {
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

Result<ProcessIdentity> ThisProcess(const std::filesystem::path& procfs) {
  ZEUS_TRY(const Stat stat, ReadStat(procfs / "self/stat"));
  ZEUS_TRY(std::string pid_namespace, Namespace(procfs));
  return ProcessIdentity{
      .pid = stat.pid, .start_ticks = stat.start_ticks, .pid_namespace = std::move(pid_namespace)};
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
