#include "zeus/process/service_manager.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::uint64_t kMostDescriptors = 256;   // Far more than any unit passes.
constexpr std::string_view kUnnamed = "unknown";  // As sd_listen_fds_with_names(3) has it.

std::optional<std::string> Take(const ServiceEnvironment& environment, const char* variable) {
  std::optional<std::string> value = environment.read(variable);
  environment.remove(variable);
  return value;
}

bool IsForThisProcess(const ServiceEnvironment& environment, std::string_view process) {
  const auto wanted = ParseUnsigned(process);
  const ::pid_t own = environment.process.value_or(::getpid());
  return wanted.ok() && wanted.value() == static_cast<std::uint64_t>(own);
}

std::vector<std::string> SplitAtColons(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// One line for one assignment: a line feed in a text would begin another assignment.
std::string OneLine(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

Result<std::uint64_t> CountOfDescriptors(const std::string& text) {
  const auto count = ParseUnsigned(text);
  if (!count.ok() || count.value() > kMostDescriptors)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("LISTEN_FDS is {}: expected a number up to {}", Quote(text), kMostDescriptors)};
  return count.value();
}

}  // namespace

void ServiceEnvironment::RemoveVariable(const char* variable) { ::unsetenv(variable); }

Result<std::vector<ActivatedSocket>> TakeActivatedSockets(const ServiceEnvironment& environment) {
  const auto process = Take(environment, "LISTEN_PID");
  const auto count_text = Take(environment, "LISTEN_FDS");
  const auto names_text = Take(environment, "LISTEN_FDNAMES");
  std::vector<ActivatedSocket> sockets;
  if (!process || !count_text || !IsForThisProcess(environment, *process)) return sockets;
  ZEUS_TRY(const std::uint64_t count, CountOfDescriptors(*count_text));
  std::vector<std::string> names(count, std::string(kUnnamed));
  if (names_text && count > 0) names = SplitAtColons(*names_text);
  if (names.size() != count)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("LISTEN_FDS is {}, but LISTEN_FDNAMES has {} names", count, names.size())};
  for (std::uint64_t i = 0; i < count; ++i) {
    const int descriptor = environment.first_descriptor + static_cast<int>(i);
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("LISTEN_FDS is {}, but descriptor {} is not open", count, descriptor)};
    sockets.push_back(
        {.name = std::move(names[i]), .descriptor = std::make_shared<FileDescriptor>(descriptor)});
  }
  return sockets;
}

ServiceNotifier::ServiceNotifier(const ServiceEnvironment& environment)
    : address_(Take(environment, "NOTIFY_SOCKET").value_or("")) {
  const auto period = Take(environment, "WATCHDOG_USEC");
  const auto process = Take(environment, "WATCHDOG_PID");
  if (!period || (process && !IsForThisProcess(environment, *process))) return;
  const auto microseconds = ParseUnsigned(*period);
  if (microseconds.ok() && microseconds.value() > 0)
    watchdog_timeout_ = Seconds(static_cast<double>(microseconds.value()) * 1e-6);
}

Status ServiceNotifier::Ready(std::string_view status) const {
  return Send(status.empty() ? "READY=1\n" : fmt::format("READY=1\nSTATUS={}\n", OneLine(status)));
}

Status ServiceNotifier::Report(std::string_view status) const {
  return Send(fmt::format("STATUS={}\n", OneLine(status)));
}

Status ServiceNotifier::Watchdog() const { return Send("WATCHDOG=1\n"); }

Status ServiceNotifier::Reloading(TimePoint now) const {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
  return Send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\n", since.count()));
}

Status ServiceNotifier::Stopping() const { return Send("STOPPING=1\n"); }

Status ServiceNotifier::Send(const std::string& state) const {
  if (address_.empty()) return Ok();
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool known = address_.front() == '/' || address_.front() == '@';
  if (!known || address_.size() < 2 || address_.size() >= sizeof address.sun_path)
    return Error{ErrorCode::kNotSupported,
                 fmt::format("NOTIFY_SOCKET is {}: expected a path or @name", Quote(address_))};
  address_.copy(address.sun_path, address_.size());
  if (address_.front() == '@') address.sun_path[0] = '\0';
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // The manager may be busy, but a service must not hang because of that.
  const ::timeval timeout{.tv_sec = 1, .tv_usec = 0};
  if (socket.valid()) ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  const auto size = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + address_.size());
  const auto sent = ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const ::sockaddr*>(&address), size);
  if (sent < 0) return FileError(address_, errno).While("notify the service manager");
  return Ok();
}

}  // namespace zeus
