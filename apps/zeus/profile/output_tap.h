#pragma once

#include <poll.h>

#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/zeus/profile/line_cutter.h"
#include "apps/zeus/run/child.h"
#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Stands between a command's output and ours: passes every byte on as it is, and shows each line to
// a listener. It never blocks: while our own reader does not read, neither does it; when that one
// is gone, the listener still gets its lines. One owner.
class OutputTap {
 public:
  using Listener = std::function<void(const LineCutter::Line&)>;

  static Result<std::unique_ptr<OutputTap>> Open(Clock& clock, Listener listener);

  // What the command gets.
  ChildStreams streams() const;
  // Once the command has them: the end of its output shows when nobody else has.
  void CloseCommandEnds();

  // What to wait for.
  std::vector<::pollfd> WaitFor() const;
  // Passes on what is there.
  void Pump();
  // Nobody needs the lines any more; output is still passed on.
  void StopListening() { listening_ = false; }
  // The last line that was passed on has no end yet.
  bool LineIsOpen() const { return line_is_open_; }
  // The command has ended: what is there is the rest.
  void Finish();

 private:
  struct Stream {
    int target;
    std::unique_ptr<FileDescriptor> source;       // Null after its end.
    std::unique_ptr<FileDescriptor> command_end;  // Null once the command has it.
    bool blocked = false;                         // Our reader does not read.
    bool reader_gone = false;                     // Nor will it ever.
    LineCutter lines{};
  };

  OutputTap(Clock& clock, Listener listener) : clock_(clock), listener_(std::move(listener)) {}

  // False when there is nothing more to pass on now.
  bool Pass(Stream& stream);

  Clock& clock_;
  Listener listener_;
  bool listening_ = true;
  bool line_is_open_ = false;
  std::array<Stream, 2> streams_{};
};

}  // namespace zeus::cli
