#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/session/progress.h"

namespace zeus {

// Which setting is tried when. Every other round goes back the way the one before it came, so that
// a program that gets slower or faster all the time does so equally at every setting.
struct SweepPlan {
  std::size_t settings = 0;
  std::optional<unsigned> rounds = 1;  // nullopt: without end.
  Seconds warmup{1};                   // Not measured after each change.
  Seconds slice{5};

  struct Position {
    unsigned round;
    std::size_t setting;
  };
  // nullopt after the last slice.
  std::optional<Position> At(std::size_t slice_number) const;

  // How long one round takes, and all of them (one, when there is no end).
  Seconds RoundTime() const { return static_cast<double>(settings) * (warmup + slice); }
  Seconds TotalTime() const { return rounds.value_or(1) * RoundTime(); }
};

// What was measured in one slice.
struct MeasuredSlice {
  unsigned round;
  std::size_t setting;  // Position in the settings of the sweep.
  SliceReading reading;
  std::optional<StepRate> rate;  // Where the progress of the program is known.
};

// A setting that could not be measured in a round, and why.
struct SkippedSlice {
  std::size_t setting;  // Position in the settings of the sweep.
  std::string reason;
};

// Turns a knob while a program runs and measures a slice of time at each setting. Step() does what
// is due. A slice whose setting was not in force all the time (a cap from outside, a reload of the
// driver) is measured once more, and then skipped. Whatever ends it, the knob is put back. One
// owner; the parts must outlive it.
class Sweep {
 public:
  struct Parts {
    Clock& clock;
    Knob& knob;
    SliceMeter& meter;
    ProgressSeries* progress;  // Null when nothing tells how far the program is.
  };

  // With `progress` the first slice waits for the first sign of it: programs take a while to start.
  Sweep(const Parts& parts, std::vector<Setting> settings, const SweepPlan& plan);
  ~Sweep();
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  // Returns when to come again.
  TimePoint Step();

  // The program has ended, or somebody wants it to: drops the open slice, restores the knob.
  void Stop();

  bool done() const { return std::holds_alternative<Done>(state_); }
  // The program has not shown any progress yet.
  bool waiting() const { return std::holds_alternative<Waiting>(state_); }
  // The plan was carried out, and every setting was measured at least once.
  bool complete() const;
  const std::vector<SkippedSlice>& skipped() const { return skipped_; }
  // Why it stopped early, or could not put the knob back.
  const std::optional<Error>& trouble() const { return trouble_; }

  // Final once done().
  const std::vector<MeasuredSlice>& slices() const { return slices_; }
  const std::vector<Setting>& settings() const { return settings_; }
  const SweepPlan& plan() const { return plan_; }

 private:
  struct Waiting {};
  struct Warmup {
    SweepPlan::Position position;
    TimePoint end;
  };
  struct Measuring {
    SweepPlan::Position position;
    TimePoint begin;
    TimePoint end;
    std::optional<Error> disturbed{};  // Why the slice tells nothing.
  };
  // The last slices are measured; the sensors have yet to show their ends.
  struct Settling {
    TimePoint end;
  };
  struct Done {};

  // A slice whose sensors, or whose lines of progress, may still be under way.
  struct Unsettled {
    std::size_t slice;
    SliceMeter::Ticket ticket;
    TimePoint begin;
    TimePoint end;
  };

  Result<TimePoint> Advance();
  Result<TimePoint> BeginNext();
  Result<TimePoint> Try(const SweepPlan::Position& position);
  Result<TimePoint> BeginSlice(const SweepPlan::Position& position);
  TimePoint Look(Measuring& measuring);
  Result<TimePoint> TryAgainOrSkip(const SweepPlan::Position& position, const Error& reason);
  Result<TimePoint> EndSlice(const Measuring& measuring);
  Status Settle();
  void Finish(std::optional<Error> trouble);

  Parts parts_;
  std::vector<Setting> settings_;
  SweepPlan plan_;
  std::variant<Waiting, Warmup, Measuring, Settling, Done> state_;
  std::size_t next_ = 0;  // Number of the slice.
  std::vector<MeasuredSlice> slices_;
  std::vector<Unsettled> unsettled_;
  int tries_ = 0;                     // Tries of the slice under way.
  std::size_t skipped_in_a_row_ = 0;  // Settings.
  std::vector<SkippedSlice> skipped_;
  bool complete_ = false;
  std::optional<Error> trouble_;
};

}  // namespace zeus
