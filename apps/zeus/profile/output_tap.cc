#include "apps/zeus/profile/output_tap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace zeus::cli {
namespace {

// A pipe that is ready to be written to takes as much without blocking.
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

}  // namespace

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
    stream.source = std::make_unique<FileDescriptor>(ends[0]);
    stream.command_end = std::make_unique<FileDescriptor>(ends[1]);
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
  // A command that never stops writing must not keep us from the rest of our work.
  constexpr int kPieces = 64;
  for (Stream& stream : streams_)
    for (int i = 0; i < kPieces && Pass(stream); ++i) continue;
}

void OutputTap::Finish() {
  // What the command itself left in a pipe; processes that outlive it may never stop.
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
  // When nobody reads any more, the command learns so as it would without us.
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

}  // namespace zeus::cli
