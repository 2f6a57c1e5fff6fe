#include "zeus/server/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/wire/answers.h"

namespace zeus::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestBacklog = std::size_t{8} << 20;
constexpr Seconds kPeriod = 200ms;
constexpr Seconds kPatienceAtTheEnd = 200ms;

constexpr MetricDescription kLost{"zeus_server_log_lines_dropped_total", MetricType::kCounter, "",
                                  "Lines of the access log that could not be written."};

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

// Standard error is shared with others, so it cannot be made one that does not wait; but what is
// ready takes this many bytes at once (pipe(7)).
bool IsReady(int descriptor, Seconds patience) {
  pollfd file{.fd = descriptor, .events = POLLOUT, .revents = 0};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(patience);
  return ::poll(&file, 1, static_cast<int>(wait.count())) > 0;
}

// The start of `text` that is written at once: whole lines, where they fit.
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
  Flush(kPatienceAtTheEnd);
}

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

void AccessLog::AddTo(MetricSet& metrics) const {
  metrics.Add(kLost, {}, static_cast<double>(lost_.load()));
}

TimePoint AccessLog::Step() {
  Flush(Seconds(0));
  if (reopen_.exchange(false) && path_ != "-") OpenAnew();
  return clock_.Now() + kPeriod;
}

void AccessLog::OpenAnew() {
  Result<std::unique_ptr<FileDescriptor>> file = OpenFile(path_);
  if (!file.ok()) {
    log::Warning("the access log stays in the old file: {}", file.error().message);
    return;
  }
  file_ = std::move(file).value();
  in_line_ = false;
}

void AccessLog::Flush(Seconds patience) {
  const TimePoint end = clock_.Now() + patience;
  while (true) {
    if (written_ == text_.size()) TakeLines();
    if (text_.empty()) return;
    if (!IsReady(file_->get(), std::max(end - clock_.Now(), Seconds(0)))) return;
    if (!WriteSome()) return;
  }
}

void AccessLog::TakeLines() {
  std::string lines;
  {
    const std::lock_guard lock(mutex_);
    lines = std::exchange(lines_, {});
  }
  written_ = 0;
  // A line that was cut short must not spoil the one after it.
  text_ = in_line_ && !lines.empty() ? "\n" + lines : std::move(lines);
}

bool AccessLog::WriteSome() {
  const std::string_view piece = Piece(std::string_view(text_).substr(written_));
  const ssize_t size = ::write(file_->get(), piece.data(), piece.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (size < 0) {
    Lose(errno);
    return true;
  }
  written_ += static_cast<std::size_t>(size);
  if (written_ > 0) in_line_ = text_[written_ - 1] != '\n';
  if (written_ == text_.size()) TellLoss();
  return true;
}

// Everything could be written, so there is an end to what was lost.
void AccessLog::TellLoss() {
  failing_ = false;
  const std::uint64_t lost = lost_;
  if (lost == lost_said_ || !IsReady(STDERR_FILENO, Seconds(0))) return;
  log::Warning("the access log is written again: {} lines are missing", lost - lost_said_);
  lost_said_ = lost;
}

// A full disk must not end the server, and must not be asked for the same lines for ever.
void AccessLog::Lose(int error_number) {
  const std::string_view rest = std::string_view(text_).substr(written_);
  lost_ += static_cast<std::uint64_t>(std::ranges::count(rest, '\n')) -
           (rest.starts_with('\n') && written_ == 0 ? 1U : 0U);
  written_ = text_.size();
  if (failing_ || !IsReady(STDERR_FILENO, Seconds(0))) return;
  failing_ = true;
  log::Warning("the access log loses lines: {}", FileError(path_, error_number).message);
}

}  // namespace zeus::server
