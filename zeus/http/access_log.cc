#include "zeus/http/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLargestBuffer = std::size_t{8} << 20;
constexpr Seconds kPeriod = 200ms;
constexpr Seconds kFlushTimeoutAtTheEnd = 200ms;

// A JSON string. Bytes that are not UTF-8 are replaced.
std::string Quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::unique_ptr<FileDescriptor>> OpenFile(const std::string& path) {
  const int descriptor =
      path == "-"
          ? ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
          : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
  if (descriptor < 0 && errno == EISDIR)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is a folder: name a file for the access log", Printable(path))};
  if (descriptor < 0) return FileError(path, errno);
  return std::make_unique<FileDescriptor>(descriptor);
}

// Standard error is shared with other processes, so O_NONBLOCK must not be set on it; but a file
// that poll() reports as ready accepts PIPE_BUF bytes without blocking (pipe(7)).
bool IsReady(int descriptor, Seconds timeout) {
  pollfd file{.fd = descriptor, .events = POLLOUT, .revents = 0};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  return ::poll(&file, 1, static_cast<int>(wait.count())) > 0;
}

// The start of `text` that one write() may carry: whole lines where they fit.
std::string_view Piece(std::string_view text) {
  if (text.size() <= PIPE_BUF) return text;
  const std::string_view piece = text.substr(0, PIPE_BUF);
  const auto end = piece.rfind('\n');
  return end == std::string_view::npos ? piece : piece.substr(0, end + 1);
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& path, const Clock& clock) {
  ZEUS_TRY(std::unique_ptr<FileDescriptor> file, OpenFile(path));
  return std::unique_ptr<AccessLog>(new AccessLog(path, std::move(file), clock));
}

AccessLog::AccessLog(std::string path, std::unique_ptr<FileDescriptor> file, const Clock& clock)
    : path_(std::move(path)), clock_(clock), file_(std::move(file)) {
  writer_.emplace("zeus-log", [this] { return Step(); });
}

AccessLog::~AccessLog() {
  writer_.reset();
  Flush(kFlushTimeoutAtTheEnd);
}

void AccessLog::Add(const FinishedRequest& request) {
  // Formatted by hand, since every request pays for it; only texts of clients need escaping.
  AddLine(fmt::format(
      R"({{"time":"{}","remote":"{}","user":{},"method":{},"path":{},"status":{},"bytes":{},)"
      R"("duration_seconds":{:.6f},"request_id":"{}"}})",
      ToExactText(clock_.WallNow()), request.remote, Quoted(request.user), Quoted(request.method),
      Quoted(request.target), request.status, request.bytes, request.duration.count(), request.id));
}

void AccessLog::AddLine(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (lines_.size() + line.size() >= kLargestBuffer) {
    ++dropped_;
    return;
  }
  lines_.append(line).push_back('\n');
}

TimePoint AccessLog::Step() {
  Flush(Seconds(0));
  if (reopen_.exchange(false) && path_ != "-") OpenAgain();
  return clock_.Now() + kPeriod;
}

void AccessLog::OpenAgain() {
  Result<std::unique_ptr<FileDescriptor>> file = OpenFile(path_);
  if (!file.ok()) {
    log::Warning("the access log stays in the old file: {}", file.error().message);
    return;
  }
  file_ = std::move(file).value();
  in_line_ = false;
}

void AccessLog::Flush(Seconds timeout) {
  const TimePoint end = clock_.Now() + timeout;
  while (true) {
    if (written_ == text_.size()) FetchLines();
    if (text_.empty()) return;
    if (!IsReady(file_->get(), std::max(end - clock_.Now(), Seconds(0)))) return;
    if (!WriteSome()) return;
  }
}

void AccessLog::FetchLines() {
  std::string lines;
  {
    const std::lock_guard lock(mutex_);
    lines = std::exchange(lines_, {});
  }
  written_ = 0;
  // Ends a line that an earlier failure cut short.
  text_ = in_line_ && !lines.empty() ? "\n" + lines : std::move(lines);
}

bool AccessLog::WriteSome() {
  const std::string_view piece = Piece(std::string_view(text_).substr(written_));
  const ssize_t size = ::write(file_->get(), piece.data(), piece.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (size < 0) {
    DropRest(errno);
    return true;
  }
  written_ += static_cast<std::size_t>(size);
  if (written_ > 0) in_line_ = text_[written_ - 1] != '\n';
  if (written_ == text_.size()) ReportRecovery();
  return true;
}

// Everything is written again: logs how many lines are missing, once.
void AccessLog::ReportRecovery() {
  failing_ = false;
  const std::uint64_t dropped = dropped_;
  if (dropped == dropped_logged_ || !IsReady(STDERR_FILENO, Seconds(0))) return;
  log::Warning("the access log is written again: {} lines are missing", dropped - dropped_logged_);
  dropped_logged_ = dropped;
}

// A full disk must not end the server, so lines that cannot be written are dropped.
void AccessLog::DropRest(int error_number) {
  const std::string_view rest = std::string_view(text_).substr(written_);
  dropped_ += static_cast<std::uint64_t>(std::ranges::count(rest, '\n')) -
              (rest.starts_with('\n') && written_ == 0 ? 1U : 0U);
  written_ = text_.size();
  if (failing_ || !IsReady(STDERR_FILENO, Seconds(0))) return;
  failing_ = true;
  log::Warning("the access log loses lines: {}", FileError(path_, error_number).message);
}

}  // namespace zeus::http
