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
  // Training ends after the epoch whose metric is at least as good as this.
  std::optional<double> target_metric{};
  bool higher_is_better = true;
  // Training ends when its cost (see TrainingAmounts::cost) exceeds this: with one process also
  // within an epoch, with several at the end of an epoch.
  std::optional<Joules> cost_bound{};
  double eta = 0.5;  // From 0 (only time counts) to 1 (only energy counts).
  // MAXPOWER of the cost for the devices of this process; it is summed over ranks. A NodeMonitor
  // knows that of its GPUs.
  std::optional<Watts> max_power{};
  // Called in this order. The first exception of a callback is logged; after that only its
  // OnTrainEnd() is called.
  std::vector<TrainingCallback*> callbacks{};
  Collective* collective = nullptr;  // The ranks that train together; null for one process.
  std::string window = "epoch";      // Name of the monitor's windows, one per epoch.
};

// The loop of a training, which measures time, energy and cost of its epochs and may end it early
// (Zeus §5, Listing 1).
//
//   TrainingLoop loop(monitor, {.max_epochs = 100, .target_metric = 0.65});
//   for (const int epoch : loop.Epochs()) {  // May stop early.
//     for (const Batch& batch : loop.Batches(train_set)) { … }
//     for (const Batch& batch : eval_set) { … }
//     loop.ReportMetric(validation_metric);
//   }
//
// Leaving either loop by break, return or exception ends the open step, epoch and training. With
// several ranks, all make the same calls and all stop after the same epoch; energy is summed, the
// slowest rank determines the time, and rank 0 the metric. One owner, except for Stop(). Monitor,
// callbacks and collective must outlive it.
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

  // Returns the epochs from 0 until training should end. Called again after a break, it continues
  // with the next epoch.
  EpochRange Epochs();

  // Returns the batches of a source, which is anything that a range-based for accepts; each batch
  // is a step. A temporary is kept alive. Callbacks get OnEpochEnd() when the batches end, so that
  // evaluation is not part of the epoch, and OnEpochBegin() again if the epoch has more batches.
  template <class Source>
  BatchRange<Source> Batches(Source&& source);

  // Reports the validation metric of this epoch; the last call counts, and NaN never reaches the
  // target. At the end of the epoch, callbacks get the metric, and training ends if the target is
  // reached. With several ranks, only rank 0 has to report one.
  void ReportMetric(double metric) { metric_ = metric; }

  // Ends training after this batch, or with several ranks after this epoch. May be called from any
  // thread and from signal handlers.
  void Stop() { stop_.store(true, std::memory_order_relaxed); }

  // --- the steps of Epochs() and Batches(), for programs without a range-based for ---
  // Call BeginTraining(), then NextEpoch() after each epoch while they return true, and
  // LeaveTraining() to leave the epochs before that. Within an epoch call BeginBatches(), then
  // BeginStep() and EndStep() for each batch while MayStep(), then EndBatches().
  bool BeginTraining();
  bool NextEpoch();
  void LeaveTraining(bool by_exception);
  void BeginBatches();
  void EndBatches();
  bool MayStep() const { return !stop_within_epoch_ || !stop_.load(std::memory_order_relaxed); }
  void BeginStep() {
    if (has_callbacks_) CallStepBegin();
  }
  void EndStep() {
    ++steps_;
    if (has_callbacks_) CallStepEnd();
    if (--steps_until_check_ <= 0) CheckCost();
  }
  // The present epoch, or the last one; -1 before the first.
  int epoch() const { return epoch_; }

  // Returns time, energy and cost so far. Waits at most `timeout` until the sensors have shown the
  // end of the last epoch.
  TrainingSummary Summary(Seconds timeout = Seconds(2));

 private:
  class Session;

  void EnterEpoch();
  void CallStepBegin();
  void CallStepEnd();
  void CheckCost();

  bool checks_cost_;
  std::unique_ptr<Session> session_;
  int epoch_ = -1;
  bool in_epoch_ = false;
  bool has_callbacks_ = false;  // False also outside epochs, where steps are not reported.
  bool stop_within_epoch_;
  std::atomic<bool> stop_ = false;
  std::int64_t steps_ = 0;  // Steps of this epoch.
  std::int64_t steps_until_check_ = std::numeric_limits<std::int64_t>::max();
  std::optional<double> metric_{};  // Metric of this epoch.
};

// The range of a `for` over epochs; it lives as long as the statement.
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
// Find begin() and end() as a range-based for does, which accepts more sources than std::ranges.
template <class Source>
auto Begin(Source& source) {
  return begin(source);
}
template <class Source>
auto End(Source& source) {
  return end(source);
}
}  // namespace internal

// The range of a `for` over batches; it lives as long as the statement. `Source` is a reference to
// the caller's source, or the type of a temporary that was moved into the range.
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
      current_.emplace(internal::Begin(source_));
      last_.emplace(internal::End(source_));
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
  std::optional<decltype(internal::Begin(std::declval<Source&>()))> current_{};
  std::optional<decltype(internal::End(std::declval<Source&>()))> last_{};
  bool begun_ = false;
  bool in_step_ = false;
};

inline TrainingLoop::EpochRange TrainingLoop::Epochs() { return EpochRange(*this); }

template <class Source>
TrainingLoop::BatchRange<Source> TrainingLoop::Batches(Source&& source) {
  return BatchRange<Source>(*this, std::forward<Source>(source));
}

}  // namespace zeus
