#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/profile/output_tap.h"
#include "apps/zeus/profile/progress_series.h"
#include "apps/zeus/run/child.h"
#include "apps/zeus/train/epoch_report.h"
#include "apps/zeus/train/metric_file.h"
#include "apps/zeus/train/report_socket.h"
#include "apps/zeus/train/train_options.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Everything through which a command tells how it is getting on: its output, a file, or a socket.
// What is no report is said once and skipped. It never blocks. One owner.
class MetricSources {
 public:
  struct Listener {
    // An epoch was completed. What it returns is the answer to reports on the socket.
    std::function<Json(const EpochReport&)> epoch;
  };
  enum class Output { kPassThrough, kTap };

  // Options and clock must outlive it. With Output::kTap the command's output comes through here
  // even where nobody looks for anything in it.
  static Result<std::unique_ptr<MetricSources>> Open(const TrainOptions& options, Clock& clock,
                                                     const Placeholders& placeholders,
                                                     Listener listener, Output output);

  // What the command is to be started with.
  void Equip(ChildOptions& child) const;
  void CommandStarted();

  // What to wait for; files besides must be looked at now and then.
  std::vector<::pollfd> WaitFor() const;
  void Pump();
  // The command has ended: what is there is the rest.
  void Finish();

  // Null when nobody asked for steps.
  ProgressSeries* progress() { return series_ ? &*series_ : nullptr; }
  // There is something to pass on.
  bool OutputWaits() const;
  // The command is in the middle of a line.
  bool LineIsOpen() const { return tap_ != nullptr && tap_->LineIsOpen(); }

 private:
  MetricSources(const TrainOptions& options, Listener listener)
      : options_(options), listener_(std::move(listener)) {}

  void Look(const LineCutter::Line& line);
  void ReadLines(const std::vector<std::string>& lines);
  Json Take(const std::string& text);

  const TrainOptions& options_;
  Listener listener_;
  std::unique_ptr<OutputTap> tap_;
  std::optional<MetricFile> file_;
  std::unique_ptr<ReportSocket> socket_;
  std::optional<ProgressSeries> series_;
  double steps_ = 0;
  bool complained_ = false;
};

}  // namespace zeus::cli
