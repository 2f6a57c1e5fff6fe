#include "zeus/server/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/wire/answers.h"

namespace zeus::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestBacklog = std::size_t{8} << 20;
constexpr Seconds kPatience = 200ms;

void WriteWhole(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // A full disk must not end the server; the next lines may fit.
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& path, const Clock& clock) {
  const int descriptor =
      path == "-" ? ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
                  : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (descriptor < 0) return FileError(path, errno);
  return std::unique_ptr<AccessLog>(new AccessLog(descriptor, clock));
}

AccessLog::AccessLog(int descriptor, const Clock& clock)
    : clock_(clock), file_(descriptor), writer_("zeus-log", [this] { return Step(); }) {}

AccessLog::~AccessLog() { Flush(); }

void AccessLog::Add(const FinishedRequest& request) {
  // By hand: this is on the way of every request, and only texts of clients need care.
  std::string text = fmt::format(
      R"({{"time":"{}","remote":"{}","user":{},"method":{},"path":{},"status":{},"bytes":{},)"
      R"("duration_seconds":{:.6f},"request_id":"{}"}})"
      "\n",
      ToExactText(clock_.WallNow()), request.remote, wire::Text(request.user),
      wire::Text(request.method), wire::Text(request.target), request.status, request.bytes,
      request.duration.count(), request.id);
  const std::lock_guard lock(mutex_);
  if (lines_.size() + text.size() > kLongestBacklog) {
    ++lost_;
    return;
  }
  lines_ += text;
}

void AccessLog::Flush() {
  std::string lines;
  std::uint64_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    lines = std::exchange(lines_, {});
    lost = std::exchange(lost_, 0);
  }
  WriteWhole(file_.get(), lines);
  if (lost > 0) log::Warning("the access log could not keep up: {} lines are missing", lost);
}

TimePoint AccessLog::Step() {
  Flush();
  return clock_.Now() + kPatience;
}

}  // namespace zeus::server
