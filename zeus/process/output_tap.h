#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/process/child.h"

namespace zeus {

// Cuts a stream into lines, which end with a newline or, as in progress bars, with a carriage
// return. A line carries the time at which its last byte arrived, not that of its end: progress
// bars that print the carriage return first end a line only when the next one is due. One owner.
class LineCutter {
 public:
  struct Line {
    std::string text;
    TimePoint when;
  };

  void Feed(TimePoint when, std::string_view bytes);
  // Returns the next complete line.
  std::optional<Line> Next();
  // Returns what follows the last line end, at the end of the stream.
  std::optional<Line> Rest();

 private:
  std::string pending_;       // Bytes that are not cut yet.
  TimePoint pending_when_{};  // Arrival of the bytes before the last Feed().
  TimePoint fed_when_{};
  std::size_t fed_at_ = 0;  // Position in `pending_` of the bytes of the last Feed().
};

// Stands between a command's output and that of this process: passes every byte on unchanged, and
// shows each line to a listener. It never blocks: while the reader of this process' output does not
// read, neither does the tap; when that reader has gone, the listener still gets its lines. One
// owner.
class OutputTap {
 public:
  using Listener = std::function<void(const LineCutter::Line&)>;

  static Result<std::unique_ptr<OutputTap>> Open(Clock& clock, Listener listener);

  // The streams to start the command with.
  ChildStreams streams() const;
  // Call it once the command has its streams: otherwise the tap never sees the end of the output.
  void CloseCommandEnds();

  // The descriptors to wait for.
  std::vector<::pollfd> WaitFor() const;
  // Passes on what has arrived.
  void Pump();
  // Stops calling the listener; output is still passed on.
  void StopListening() { listening_ = false; }
  // Whether the last line that was passed on has no end yet.
  bool LineIsOpen() const { return line_is_open_; }
  // Call it when the command has ended: passes on the rest.
  void Finish();

 private:
  struct Stream {
    int target;
    std::unique_ptr<FileDescriptor> source;       // Null after the end of the stream.
    std::unique_ptr<FileDescriptor> command_end;  // Null once the command has it.
    bool blocked = false;                         // The reader of this process does not read now.
    bool reader_gone = false;                     // The reader of this process has gone.
    LineCutter lines{};
  };

  OutputTap(Clock& clock, Listener listener) : clock_(clock), listener_(std::move(listener)) {}

  // Returns false when nothing more can be passed on now.
  bool Pass(Stream& stream);

  Clock& clock_;
  Listener listener_;
  bool listening_ = true;
  bool line_is_open_ = false;
  std::array<Stream, 2> streams_{};
};

}  // namespace zeus
