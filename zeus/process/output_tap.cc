#include "zeus/process/output_tap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace zeus {
namespace {

// Longer lines are cut: no line that carries progress or a metric is longer.
constexpr std::size_t kLongestLine = 4096;

// A pipe that poll() calls writable accepts this many bytes without blocking (PIPE_BUF).
constexpr std::size_t kPipeWrite = 4096;

bool Ready(int descriptor, short events) {
  ::pollfd one{.fd = descriptor, .events = events, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

bool WriteAll(int target, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(target, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// A process whose standard output is closed gets its number for the next file: the command, whose
// standard streams are made from these pipes, would close one of them.
int AboveStandardStreams(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int above = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(descriptor);
  return above;
}

}  // namespace

void LineCutter::Feed(TimePoint when, std::string_view bytes) {
  if (bytes.empty()) return;
  if (!pending_.empty()) pending_when_ = fed_when_;
  fed_when_ = when;
  fed_at_ = pending_.size();
  pending_ += bytes;
}

std::optional<LineCutter::Line> LineCutter::Next() {
  for (;;) {
    const std::size_t end = pending_.find_first_of("\r\n");
    if (end == std::string::npos) {
      // Only the end of an endless line is kept.
      if (pending_.size() > kLongestLine) pending_.erase(0, pending_.size() - kLongestLine);
      return std::nullopt;
    }
    const bool all_before = end <= fed_at_ && fed_at_ > 0;
    Line line{pending_.substr(0, end), all_before ? pending_when_ : fed_when_};
    pending_.erase(0, end + 1);
    fed_at_ = 0;
    if (line.text.size() > kLongestLine) line.text.erase(0, line.text.size() - kLongestLine);
    if (!line.text.empty()) return line;
  }
}

std::optional<LineCutter::Line> LineCutter::Rest() {
  if (pending_.empty()) return std::nullopt;
  return Line{std::exchange(pending_, {}), fed_when_};
}

Result<std::unique_ptr<OutputTap>> OutputTap::Open(Clock& clock, Listener listener) {
  std::unique_ptr<OutputTap> tap(new OutputTap(clock, std::move(listener)));
  for (std::size_t i = 0; i < tap->streams_.size(); ++i) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return Error{ErrorCode::kUnavailable, fmt::format("cannot read the command's output: {}",
                                                        std::generic_category().message(errno))};
    }
    Stream& stream = tap->streams_[i];
    stream.target = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
    stream.source = std::make_unique<FileDescriptor>(AboveStandardStreams(ends[0]));
    stream.command_end = std::make_unique<FileDescriptor>(AboveStandardStreams(ends[1]));
  }
  return tap;
}

ChildStreams OutputTap::streams() const {
  return {.output = streams_[0].command_end->get(), .error = streams_[1].command_end->get()};
}

void OutputTap::CloseCommandEnds() {
  for (Stream& stream : streams_) stream.command_end.reset();
}

std::vector<::pollfd> OutputTap::WaitFor() const {
  std::vector<::pollfd> events;
  for (const Stream& stream : streams_) {
    if (stream.source == nullptr) continue;
    if (stream.blocked) {
      events.push_back({.fd = stream.target, .events = POLLOUT, .revents = 0});
    } else {
      events.push_back({.fd = stream.source->get(), .events = POLLIN, .revents = 0});
    }
  }
  return events;
}

void OutputTap::Pump() {
  // A command that never stops writing must not keep the caller from its other work.
  constexpr int kPieces = 64;
  for (Stream& stream : streams_)
    for (int i = 0; i < kPieces && Pass(stream); ++i) continue;
}

void OutputTap::Finish() {
  // Bounded to what fits into a pipe: processes that outlive the command may never stop writing.
  constexpr int kPieces = (1 << 20) / kPipeWrite;
  for (Stream& stream : streams_) {
    for (int i = 0; i < kPieces && Pass(stream); ++i) continue;
    if (const auto line = stream.lines.Rest(); line && listening_) listener_(*line);
  }
}

bool OutputTap::Pass(Stream& stream) {
  if (stream.source == nullptr || !Ready(stream.source->get(), POLLIN)) return false;
  stream.blocked = !stream.reader_gone && !Ready(stream.target, POLLOUT);
  if (stream.blocked) return false;
  std::array<char, kPipeWrite> piece{};
  const ssize_t got = ::read(stream.source->get(), piece.data(), piece.size());
  if (got < 0 && errno == EINTR) return true;
  const std::string_view bytes(piece.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (got > 0 && !stream.reader_gone) stream.reader_gone = !WriteAll(stream.target, bytes);
  // When the last reader has gone, the command gets SIGPIPE as it would without the tap.
  if (got <= 0 || (stream.reader_gone && !listening_)) {
    stream.source.reset();
    return false;
  }
  if (!stream.reader_gone) line_is_open_ = bytes.back() != '\n';
  if (!listening_) return true;
  stream.lines.Feed(clock_.Now(), bytes);
  while (const auto line = stream.lines.Next()) listener_(*line);
  return true;
}

}  // namespace zeus
