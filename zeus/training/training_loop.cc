#include "zeus/training/training_loop.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "zeus/base/log.h"
#include "zeus/training/callback_list.h"
#include "zeus/training/epoch_meter.h"
#include "zeus/training/training_ledger.h"

namespace zeus {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Looking costs microseconds; how much is spent in between is little beside a training.
constexpr Seconds kBetweenCostChecks{1.0};
constexpr std::int64_t kFewestToMostSteps =
    10;  // From one check to the next: steps may get slower.

constexpr Seconds kPatience{2.0};

// Of all GPUs that the monitor records; nullopt if one of them does not tell, or there is none.
std::optional<Watts> MaxPowerOf(NodeMonitor& monitor) {
  Watts sum(0);
  for (std::size_t i = 0; i < monitor.monitor().device_count(); ++i) {
    Gpu* gpu = monitor.gpu(i);
    if (gpu == nullptr) continue;
    const auto limit = gpu->CurrentPowerLimit();
    if (!limit.ok()) return std::nullopt;
    sum += limit.value().range.max;
  }
  if (sum > Watts(0)) return sum;
  return std::nullopt;
}

TrainingOptions Complete(TrainingOptions options, NodeMonitor& monitor) {
  if (!options.max_power) options.max_power = MaxPowerOf(monitor);
  return options;
}

// A number that means nothing is said and not used.
template <class Number>
void DropUnless(bool sensible, std::optional<Number>& number, const char* name) {
  if (!number || sensible) return;
  log::Warning("{} is no number that makes sense here: training goes on without it", name);
  number.reset();
}

TrainingOptions Sensible(TrainingOptions options) {
  const double power = options.max_power.value_or(Watts(1)).value();
  DropUnless(std::isfinite(power) && power > 0, options.max_power, "max_power");
  DropUnless(!std::isnan(options.cost_bound.value_or(Joules(0)).value()), options.cost_bound,
             "cost_bound");
  DropUnless(!std::isnan(options.target_metric.value_or(0)), options.target_metric,
             "target_metric");
  return options;
}

double EtaOf(const TrainingOptions& options) {
  if (options.eta >= 0 && options.eta <= 1) return options.eta;
  const double eta = std::isnan(options.eta) ? TrainingOptions().eta : options.eta < 0 ? 0 : 1;
  log::Warning("eta must be between 0 and 1 and is {}: training goes on with {}", options.eta, eta);
  return eta;
}

}  // namespace

// What happens between steps.
class TrainingLoop::Session {
 public:
  Session(EnergyMonitor& monitor, TrainingOptions options)
      : options_(Sensible(std::move(options))),
        meter_(monitor, options_.window),
        ledger_(EtaOf(options_), options_.max_power),
        callbacks_(options_.callbacks) {}

  bool alone() const { return options_.collective == nullptr || options_.collective->size() == 1; }
  CallbackList& callbacks() { return callbacks_; }
  const std::optional<StopReason>& reason() const { return reason_; }

  // False if there is no epoch to train.
  bool Begin(int epoch, bool stop);
  void BeginEpoch(int epoch);
  void BeginBatches(int epoch);
  void EndBatches(int epoch);

  struct Ended {
    int epoch;
    std::int64_t steps;
    std::optional<double> metric;
    const std::atomic<bool>& stop;  // A callback may set it.
  };
  enum class Exit { kEpochEnd, kBreak, kException };
  // Whether there is another one.
  bool EndEpoch(const Ended& ended, Exit exit);

  // Of the open epoch. How many steps may pass until the next check.
  std::int64_t CheckCost(std::int64_t steps);
  bool over_bound() const { return over_bound_; }

  TrainingSummary Summary(Seconds patience);

 private:
  void AddUpMaxPower();
  std::optional<StopReason> Decide(const EpochOutcome& outcome, int epoch);
  void Finish(Exit exit);
  void WarnAboutMetric(const std::optional<double>& metric);
  bool Exceeds(const TrainingAmounts& amounts) const {
    return options_.cost_bound && amounts.cost && *amounts.cost > *options_.cost_bound;
  }

  TrainingOptions options_;
  EpochMeter meter_;
  TrainingLedger ledger_;
  CallbackList callbacks_;
  std::optional<StopReason> reason_{};
  bool power_added_up_ = false;
  bool others_gone_ = false;
  bool training_part_ = false;  // Of the epoch: callbacks have seen its begin and not its end.
  bool over_bound_ = false;
  bool warned_about_metric_ = false;
  TimePoint last_check_{};
  std::int64_t steps_at_check_ = 0;
};

bool TrainingLoop::Session::Begin(int epoch, bool stop) {
  if (!alone() && !power_added_up_) AddUpMaxPower();
  if (others_gone_) {
    reason_ = StopReason::kOthersGone;
  } else if (stop && alone() && !over_bound_) {
    reason_ = StopReason::kStoppedByUser;
  } else if (reason_ == StopReason::kException || reason_ == StopReason::kStoppedByUser) {
    reason_.reset();
  }
  if (!reason_ && epoch >= options_.max_epochs) reason_ = StopReason::kMaxEpochs;
  if (reason_) return false;
  if (options_.cost_bound && !ledger_.Total().cost)
    log::Warning("the cost bound is ignored: give max_power, the monitor does not know it");
  callbacks_.TrainBegin();
  BeginEpoch(epoch);
  return true;
}

void TrainingLoop::Session::AddUpMaxPower() {
  // Not a number spreads to all ranks: where one does not know, nobody does.
  double watts = options_.max_power ? options_.max_power->value() : std::nan("");
  const Status added = options_.collective->Sum({&watts, 1});
  others_gone_ = !added.ok();
  if (others_gone_) log::Warning("training does not begin: {}", added.error().message);
  power_added_up_ = true;
  ledger_.set_max_power(std::isnan(watts) ? std::nullopt : std::optional(Watts(watts)));
}

void TrainingLoop::Session::BeginEpoch(int epoch) {
  meter_.Begin();
  last_check_ = meter_.clock().Now();
  steps_at_check_ = 0;
  BeginBatches(epoch);
}

void TrainingLoop::Session::BeginBatches(int epoch) {
  if (!std::exchange(training_part_, true)) callbacks_.EpochBegin(epoch);
}

void TrainingLoop::Session::EndBatches(int epoch) {
  if (std::exchange(training_part_, false)) callbacks_.EpochEnd(epoch);
}

bool TrainingLoop::Session::EndEpoch(const Ended& ended, Exit exit) {
  EndBatches(ended.epoch);
  EpochOutcome outcome{.reading = meter_.End(),
                       .metric = ended.metric,
                       .stop = ended.stop.load(std::memory_order_relaxed)};
  const EpochReading local = outcome.reading;
  // Ranks that leave early cannot ask the others, who train on.
  if (!alone() && exit == Exit::kEpochEnd) {
    const Status agreed = Agree(outcome, *options_.collective);
    others_gone_ = !agreed.ok();
    if (others_gone_) log::Warning("training ends: {}", agreed.error().message);
  }
  if (!alone() && (others_gone_ || exit != Exit::kEpochEnd))
    outcome.reading.missing.push_back("devices of other ranks");
  ledger_.Add({.epoch = ended.epoch,
               .steps = ended.steps,
               .local = local,
               .all = outcome.reading,
               .metric = outcome.metric});
  if (alone()) ledger_.SettleAlone(meter_, Seconds(0));
  if (exit == Exit::kEpochEnd) WarnAboutMetric(outcome.metric);
  if (outcome.metric) callbacks_.Evaluate(*outcome.metric);
  if (alone()) outcome.stop = ended.stop.load(std::memory_order_relaxed);
  if (callbacks_.ShouldStop()) outcome.stop = true;
  reason_ = Decide(outcome, ended.epoch);
  if (exit == Exit::kException) reason_ = StopReason::kException;
  if (exit == Exit::kBreak && !reason_) reason_ = StopReason::kStoppedByUser;
  if (!reason_) return true;
  Finish(exit);
  return false;
}

std::optional<StopReason> TrainingLoop::Session::Decide(const EpochOutcome& outcome, int epoch) {
  if (others_gone_) return StopReason::kOthersGone;
  if (outcome.metric && options_.target_metric) {
    const double target = *options_.target_metric;
    if (options_.higher_is_better ? *outcome.metric >= target : *outcome.metric <= target)
      return StopReason::kTargetReached;
  }
  over_bound_ = over_bound_ || Exceeds(ledger_.Total());
  if (over_bound_) return StopReason::kCostBound;
  if (outcome.stop) return StopReason::kStoppedByUser;
  if (epoch + 1 >= options_.max_epochs) return StopReason::kMaxEpochs;
  return std::nullopt;
}

void TrainingLoop::Session::Finish(Exit exit) {
  callbacks_.TrainEnd();
  if (alone() || others_gone_ || exit != Exit::kEpochEnd) return;
  const Status settled = ledger_.SettleTogether(meter_, kPatience, *options_.collective);
  if (!settled.ok())
    log::Warning("the energies of the epochs stay as first measured: {}", settled.error().message);
}

void TrainingLoop::Session::WarnAboutMetric(const std::optional<double>& metric) {
  if (!options_.target_metric || (metric && !std::isnan(*metric)) || warned_about_metric_) return;
  warned_about_metric_ = true;
  log::Warning("{}: the target cannot be reached in such an epoch",
               metric ? "the metric is not a number" : "an epoch ended without ReportMetric()");
}

std::int64_t TrainingLoop::Session::CheckCost(std::int64_t steps) {
  const EpochReading running = meter_.Peek();
  over_bound_ = Exceeds(ledger_.Total(&running));
  const TimePoint now = meter_.clock().Now();
  const std::int64_t passed = std::max<std::int64_t>(1, steps - steps_at_check_);
  const double wanted = static_cast<double>(passed) *
                        (kBetweenCostChecks / std::max<Seconds>(now - last_check_, Seconds(1e-9)));
  last_check_ = now;
  steps_at_check_ = steps;
  const std::int64_t most =
      passed > kNever / kFewestToMostSteps ? kNever : passed * kFewestToMostSteps;
  return wanted >= static_cast<double>(most) ? most
                                             : std::max<std::int64_t>(1, std::llround(wanted));
}

TrainingSummary TrainingLoop::Session::Summary(Seconds patience) {
  if (alone()) ledger_.SettleAlone(meter_, patience);
  TrainingSummary summary = ledger_.Summary(options_.higher_is_better);
  summary.reason = reason_;
  return summary;
}

TrainingLoop::TrainingLoop(NodeMonitor& monitor, TrainingOptions options)
    : TrainingLoop(monitor.monitor(), Complete(std::move(options), monitor)) {}

TrainingLoop::TrainingLoop(EnergyMonitor& monitor, TrainingOptions options)
    : checks_cost_(options.cost_bound.has_value()),
      session_(std::make_unique<Session>(monitor, std::move(options))),
      stop_within_epoch_(session_->alone()) {}

TrainingLoop::~TrainingLoop() = default;

bool TrainingLoop::BeginTraining() {
  if (in_epoch_) return false;
  const bool begun = session_->Begin(epoch_ + 1, stop_.load(std::memory_order_relaxed));
  if (begun) EnterEpoch();
  return begun;
}

void TrainingLoop::EnterEpoch() {
  ++epoch_;
  steps_ = 0;
  metric_.reset();
  in_epoch_ = true;
  has_callbacks_ = !session_->callbacks().empty();
  steps_until_check_ = checks_cost_ && stop_within_epoch_ ? 1 : kNever;
}

bool TrainingLoop::NextEpoch() {
  has_callbacks_ = in_epoch_ = false;
  steps_until_check_ = kNever;
  if (!session_->EndEpoch({.epoch = epoch_, .steps = steps_, .metric = metric_, .stop = stop_},
                          Session::Exit::kEpochEnd))
    return false;
  session_->BeginEpoch(epoch_ + 1);
  EnterEpoch();
  return true;
}

void TrainingLoop::LeaveTraining(bool by_exception) {
  has_callbacks_ = in_epoch_ = false;
  steps_until_check_ = kNever;
  (void)session_->EndEpoch({.epoch = epoch_, .steps = steps_, .metric = metric_, .stop = stop_},
                           by_exception ? Session::Exit::kException : Session::Exit::kBreak);
}

void TrainingLoop::BeginBatches() {
  if (in_epoch_) session_->BeginBatches(epoch_);
}

void TrainingLoop::EndBatches() {
  if (in_epoch_) session_->EndBatches(epoch_);
}

void TrainingLoop::TellStepBegin() { session_->callbacks().StepBegin(); }
void TrainingLoop::TellStepEnd() { session_->callbacks().StepEnd(); }

void TrainingLoop::CheckCost() {
  steps_until_check_ = session_->CheckCost(steps_);
  if (session_->over_bound()) Stop();
}

TrainingSummary TrainingLoop::Summary(Seconds patience) { return session_->Summary(patience); }

}  // namespace zeus
