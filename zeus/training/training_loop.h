#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/collective.h"
#include "zeus/training/callback.h"
#include "zeus/training/training_summary.h"

namespace zeus {

struct TrainingOptions {
  int max_epochs = 100;
  // Training ends with the epoch whose metric is as good as this.
  std::optional<double> target_metric{};
  bool higher_is_better = true;
  // Training ends when it has cost more than this, in joules as eta weighs them: with one process
  // also within an epoch, with several at the end of one.
  std::optional<Joules> cost_bound{};
  double eta = 0.5;  // Between 0, time is what counts, and 1, energy is.
  // MAXPOWER of the cost: of the devices of this process; ranks add theirs up. A NodeMonitor knows
  // that of its GPUs.
  std::optional<Watts> max_power{};
  // Told in this order. One that throws is said once and told no more than the end of training.
  std::vector<TrainingCallback*> callbacks{};
  Collective* collective = nullptr;  // Of the ranks that train together; null for one process.
  std::string window = "epoch";      // Name of the monitor's windows, one per epoch.
};

// The loop around training: epochs that may end early, any source of batches, cost (Zeus §5,
// Listing 1).
//
//   TrainingLoop loop(monitor, {.max_epochs = 100, .target_metric = 0.65});
//   for (const int epoch : loop.Epochs()) {  // May stop early.
//     for (const Batch& batch : loop.Batches(train_set)) { … }
//     for (const Batch& batch : eval_set) { … }
//     loop.ReportMetric(validation_metric);
//   }
//
// Leaving either loop by break, return or exception ends what is open. With several ranks, all
// make the same calls, and all stop after the same epoch: energy summed, time of the slowest,
// metric of rank 0. One owner, but for Stop(). What it is given must outlive it.
class TrainingLoop {
 public:
  class EpochRange;
  template <class Source>
  class BatchRange;

  explicit TrainingLoop(NodeMonitor& monitor, TrainingOptions options = {});
  explicit TrainingLoop(EnergyMonitor& monitor, TrainingOptions options = {});
  ~TrainingLoop();
  TrainingLoop(const TrainingLoop&) = delete;
  TrainingLoop& operator=(const TrainingLoop&) = delete;

  // Epochs from 0, as long as training should go on. Asked again after a break, it goes on with the
  // next epoch.
  EpochRange Epochs();

  // The batches of anything that a range-based for takes; each is a step. What is passed as a
  // temporary is kept alive meanwhile. Callbacks see the end of the epoch when the batches end, so
  // that evaluation is no part of it, and its begin again should the epoch have more batches.
  template <class Source>
  BatchRange<Source> Batches(Source&& source);

  // The validation metric of this epoch; of several the last one counts. Not a number is never as
  // good as the target. At the end of the epoch, callbacks are told, and training stops if it
  // should. With several ranks only rank 0's counts; the others need not have one.
  void ReportMetric(double metric) { metric_ = metric; }

  // Ends training: after this batch, or with several ranks after the epoch. From any thread, and
  // from handlers of signals.
  void Stop() { stop_.store(true, std::memory_order_relaxed); }

  // --- what Epochs() and Batches() do, for batches that no range-based for takes ---
  // BeginTraining(), and NextEpoch() after each epoch, as long as they return true; LeaveTraining()
  // when the epochs are left before that. Within an epoch BeginBatches(), then, for each batch and
  // while MayStep(), BeginStep() and EndStep(), then EndBatches().
  bool BeginTraining();
  bool NextEpoch();
  void LeaveTraining(bool by_exception);
  void BeginBatches();
  void EndBatches();
  bool MayStep() const { return !stop_within_epoch_ || !stop_.load(std::memory_order_relaxed); }
  void BeginStep() {
    if (has_callbacks_) TellStepBegin();
  }
  void EndStep() {
    ++steps_;
    if (has_callbacks_) TellStepEnd();
    if (--steps_until_check_ <= 0) CheckCost();
  }
  int epoch() const { return epoch_; }  // That is under way, or the last one; -1 before the first.

  // As well as known by now: the sensors need `patience` to show the end of the last epoch.
  TrainingSummary Summary(Seconds patience = Seconds(2));

 private:
  class Session;

  void EnterEpoch();
  void TellStepBegin();
  void TellStepEnd();
  void CheckCost();

  bool checks_cost_;
  std::unique_ptr<Session> session_;
  int epoch_ = -1;
  bool in_epoch_ = false;
  bool has_callbacks_ = false;  // False also outside epochs, where there are no steps to tell.
  bool stop_within_epoch_;
  std::atomic<bool> stop_ = false;
  std::int64_t steps_ = 0;  // Of this epoch.
  std::int64_t steps_until_check_ = std::numeric_limits<std::int64_t>::max();
  std::optional<double> metric_{};  // Of this epoch.
};

// Lives as long as the for statement.
class TrainingLoop::EpochRange {
 public:
  class Iterator {
   public:
    int operator*() const { return range_->loop_.epoch_; }
    Iterator& operator++() {
      range_->open_ = range_->loop_.NextEpoch();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !range_->open_; }

   private:
    friend class EpochRange;
    explicit Iterator(EpochRange* range) : range_(range) {}
    EpochRange* range_;
  };

  ~EpochRange() {
    if (open_) loop_.LeaveTraining(std::uncaught_exceptions() > exceptions_);
  }
  EpochRange(const EpochRange&) = delete;
  EpochRange& operator=(const EpochRange&) = delete;

  Iterator begin() {
    open_ = loop_.BeginTraining();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class TrainingLoop;
  explicit EpochRange(TrainingLoop& loop) : loop_(loop) {}

  TrainingLoop& loop_;
  const int exceptions_ = std::uncaught_exceptions();
  bool open_ = false;
};

namespace internal {
using std::begin;
using std::end;
// As a range-based for looks for them: more is a source than std::ranges knows.
template <class Source>
auto FirstOf(Source& source) {
  return begin(source);
}
template <class Source>
auto LastOf(Source& source) {
  return end(source);
}
}  // namespace internal

// Lives as long as the for statement. `Source` is a reference to what the caller keeps, or the type
// of what he gave away.
template <class Source>
class TrainingLoop::BatchRange {
 public:
  class Iterator {
   public:
    decltype(auto) operator*() const { return **range_->current_; }
    Iterator& operator++() {
      range_->Advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !range_->in_step_; }

   private:
    friend class BatchRange;
    explicit Iterator(BatchRange* range) : range_(range) {}
    BatchRange* range_;
  };

  ~BatchRange() {
    EndStep();
    if (begun_) loop_.EndBatches();
  }
  BatchRange(const BatchRange&) = delete;
  BatchRange& operator=(const BatchRange&) = delete;

  Iterator begin() {
    loop_.BeginBatches();
    begun_ = true;
    if (loop_.MayStep()) {
      current_.emplace(internal::FirstOf(source_));
      last_.emplace(internal::LastOf(source_));
      BeginStepIfAny();
    }
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class TrainingLoop;
  BatchRange(TrainingLoop& loop, Source&& source)
      : loop_(loop), source_(std::forward<Source>(source)) {}

  void BeginStepIfAny() {
    if (!(*current_ != *last_)) return;
    loop_.BeginStep();
    in_step_ = true;
  }
  void EndStep() {
    if (!in_step_) return;
    in_step_ = false;
    loop_.EndStep();
  }
  void Advance() {
    EndStep();
    if (!loop_.MayStep()) return;
    ++*current_;
    BeginStepIfAny();
  }

  TrainingLoop& loop_;
  Source source_;
  std::optional<decltype(internal::FirstOf(std::declval<Source&>()))> current_{};
  std::optional<decltype(internal::LastOf(std::declval<Source&>()))> last_{};
  bool begun_ = false;
  bool in_step_ = false;
};

inline TrainingLoop::EpochRange TrainingLoop::Epochs() { return EpochRange(*this); }

template <class Source>
TrainingLoop::BatchRange<Source> TrainingLoop::Batches(Source&& source) {
  return BatchRange<Source>(*this, std::forward<Source>(source));
}

}  // namespace zeus
