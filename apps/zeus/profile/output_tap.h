#pragma once

#include <poll.h>

#include <array>
#include <memory>
#include <vector>

#include "apps/zeus/profile/progress_pattern.h"
#include "apps/zeus/profile/progress_series.h"
#include "apps/zeus/run/child.h"
#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Stands between a command's output and ours: passes every byte on as it is, and looks for progress
// in it. It never blocks: while our own reader does not read, neither does it. One owner.
class OutputTap {
 public:
  static Result<std::unique_ptr<OutputTap>> Open(Clock& clock, ProgressPattern pattern,
                                                 ProgressSeries& series);

  // What the command gets.
  ChildStreams streams() const;
  // Once the command has them: the end of its output shows when nobody else has.
  void CloseCommandEnds();

  // What to wait for.
  std::vector<::pollfd> WaitFor() const;
  // Passes on what is there.
  void Pump();
  // Nobody needs the progress any more; output is still passed on.
  void StopCounting() { counting_ = false; }
  // The command has ended: what is there is the rest.
  void Finish();

 private:
  struct Stream {
    int target;
    std::unique_ptr<FileDescriptor> source;       // Null after its end.
    std::unique_ptr<FileDescriptor> command_end;  // Null once the command has it.
    bool blocked = false;                         // Our reader does not read.
    LineCutter lines{};
  };

  OutputTap(Clock& clock, ProgressPattern pattern, ProgressSeries& series)
      : clock_(clock), pattern_(std::move(pattern)), series_(series) {}

  // False when there is nothing more to pass on now.
  bool Pass(Stream& stream);
  void Look(const LineCutter::Line& line);

  Clock& clock_;
  ProgressPattern pattern_;
  ProgressSeries& series_;
  double count_ = 0;
  bool counting_ = true;
  std::array<Stream, 2> streams_{};
};

}  // namespace zeus::cli
