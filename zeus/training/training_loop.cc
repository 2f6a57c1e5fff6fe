#include "zeus/training/training_loop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <vector>

#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/collective.h"
#include "zeus/training/callback.h"
#include "zeus/training/epoch_meter.h"
#include "zeus/training/training_summary.h"

namespace zeus {

// Callbacks that are told one after the other. An exception of one is logged, and from then on it
// is told nothing but the end of training, where it may put back what it changed. One owner.
class CallbackList {
 public:
  explicit CallbackList(const std::vector<TrainingCallback*>& callbacks);

  bool empty() const { return entries_.empty(); }

  void TrainBegin();
  void EpochBegin(std::int64_t epoch);
  void StepBegin();
  void StepEnd();
  void EpochEnd(std::int64_t epoch);
  void Evaluate(double metric);
  void TrainEnd();
  // Whether any of them wants to; those that failed are not asked.
  bool ShouldStop() const;

 private:
  struct Entry {
    TrainingCallback* callback;
    std::size_t position;  // As given.
    bool failed = false;
  };

  template <class Function>
  void Tell(const char* event, Function function);
  template <class Function>
  void TellOne(Entry& entry, const char* event, Function function);

  std::vector<Entry> entries_;
};

namespace {

void LogFailure(std::size_t position, const char* event, const char* reason) {
  log::Warning(
      "training callback {} failed at {} and is not called any more, but for the end of "
      "training: {}",
      position, event, Printable(reason));
}

}  // namespace

CallbackList::CallbackList(const std::vector<TrainingCallback*>& callbacks) {
  for (std::size_t i = 0; i < callbacks.size(); ++i)
    if (callbacks[i] != nullptr) entries_.push_back({.callback = callbacks[i], .position = i});
}

template <class Function>
void CallbackList::TellOne(Entry& entry, const char* event, Function function) {
  try {
    function(*entry.callback);
    return;
  } catch (const std::exception& exception) {
    LogFailure(entry.position, event, exception.what());
  } catch (...) {
    LogFailure(entry.position, event, "an exception of its own kind");
  }
  entry.failed = true;
}

template <class Function>
void CallbackList::Tell(const char* event, Function function) {
  for (Entry& entry : entries_)
    if (!entry.failed) TellOne(entry, event, function);
}

void CallbackList::TrainBegin() {
  Tell("the begin of training", [](TrainingCallback& callback) { callback.OnTrainBegin(); });
}
void CallbackList::EpochBegin(std::int64_t epoch) {
  Tell("the begin of an epoch", [=](TrainingCallback& callback) { callback.OnEpochBegin(epoch); });
}
void CallbackList::StepBegin() {
  Tell("the begin of a step", [](TrainingCallback& callback) { callback.OnStepBegin(); });
}
void CallbackList::StepEnd() {
  Tell("the end of a step", [](TrainingCallback& callback) { callback.OnStepEnd(); });
}
void CallbackList::EpochEnd(std::int64_t epoch) {
  Tell("the end of an epoch", [=](TrainingCallback& callback) { callback.OnEpochEnd(epoch); });
}
void CallbackList::Evaluate(double metric) {
  Tell("an evaluation", [=](TrainingCallback& callback) { callback.OnEvaluate(metric); });
}
void CallbackList::TrainEnd() {
  for (Entry& entry : entries_) {
    TellOne(entry, "the end of training",
            [](TrainingCallback& callback) { callback.OnTrainEnd(); });
  }
}

bool CallbackList::ShouldStop() const {
  return std::ranges::any_of(
      entries_, [](const Entry& entry) { return !entry.failed && entry.callback->ShouldStop(); });
}

// What the epochs of a training took and cost, over all ranks. One owner.
class TrainingLedger {
 public:
  // `max_power` of all ranks; nullopt if it is not known.
  TrainingLedger(double eta, std::optional<Watts> max_power) : eta_(eta), max_power_(max_power) {}
  void set_max_power(std::optional<Watts> max_power) { max_power_ = max_power; }

  struct Epoch {
    int epoch = 0;
    std::int64_t steps = 0;
    EpochReading local{};  // Of this rank.
    EpochReading all{};    // Of all ranks.
    std::optional<double> metric{};
  };
  void Add(Epoch epoch) { epochs_.push_back(std::move(epoch)); }

  // Waits until the sensors have shown the ends of epochs, at most `patience` each. With one rank
  // what is settled is what counts; with more of them it takes an exchange.
  void SettleAlone(EpochMeter& meter, Seconds patience);
  Status SettleTogether(EpochMeter& meter, Seconds patience, Collective& collective);

  // Of all epochs, and of `running` besides.
  TrainingAmounts Total(const EpochReading* running = nullptr) const;

  // Without what the ledger does not know: `reason`.
  TrainingSummary Summary(bool higher_is_better) const;

 private:
  TrainingAmounts Amounts(const Epoch& epoch) const;
  void SetCost(TrainingAmounts& amounts, bool energy_is_known) const;

  double eta_;
  std::optional<Watts> max_power_;
  std::vector<Epoch> epochs_{};
};

// What ranks tell each other at the end of an epoch.
struct EpochOutcome {
  EpochReading reading{};
  std::optional<double> metric{};
  bool stop = false;
};

// Energy summed, time of the slowest, metric of rank 0, stop if anybody wants to.
Status Agree(EpochOutcome& outcome, Collective& collective);

namespace {

Joules Hypotenuse(Joules a, Joules b) { return Joules(std::hypot(a.value(), b.value())); }

double Square(Joules sigma) { return sigma.value() * sigma.value(); }

// Errors that epochs share add up, the others average out.
struct Sum {
  Seconds time{0};
  Joules energy{0};
  double own_variance = 0;
  Joules shared_sigma{0};
  bool known = true;  // The energy, all of it.

  void Add(const EpochReading& reading) {
    known = known && reading.missing.empty();
    time += reading.time;
    energy += reading.energy;
    own_variance += Square(reading.own_sigma);
    shared_sigma += reading.shared_sigma;
  }
  TrainingAmounts ToAmounts() const {
    return {.time = time,
            .energy = energy,
            .energy_sigma = Hypotenuse(Joules(std::sqrt(own_variance)), shared_sigma)};
  }
};

// Boards of different ranks have nothing in common: all their variances add up.
std::array<double, 3> ToNumbers(const EpochReading& reading) {
  return {reading.energy.value(), Square(reading.own_sigma), Square(reading.shared_sigma)};
}

void FromNumbers(const double* numbers, EpochReading& reading) {
  reading.energy = Joules(numbers[0]);
  reading.own_sigma = Joules(std::sqrt(numbers[1]));
  reading.shared_sigma = Joules(std::sqrt(numbers[2]));
}

bool Better(double metric, const std::optional<double>& best, bool higher_is_better) {
  if (std::isnan(metric)) return false;
  return !best || (higher_is_better ? metric > *best : metric < *best);
}

}  // namespace

const char* StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kTargetReached:
      return "target_reached";
    case StopReason::kCostBound:
      return "cost_bound";
    case StopReason::kMaxEpochs:
      return "max_epochs";
    case StopReason::kStoppedByUser:
      return "stopped_by_user";
    case StopReason::kException:
      return "exception";
    case StopReason::kOthersGone:
      return "others_gone";
  }
  return "unknown";
}

void TrainingLedger::SettleAlone(EpochMeter& meter, Seconds patience) {
  for (Epoch& epoch : epochs_) {
    meter.Settle(epoch.local, patience);
    epoch.all = epoch.local;
  }
}

Status TrainingLedger::SettleTogether(EpochMeter& meter, Seconds patience, Collective& collective) {
  std::vector<double> numbers;
  for (Epoch& epoch : epochs_) {
    meter.Settle(epoch.local, patience);
    const auto part = ToNumbers(epoch.local);
    numbers.insert(numbers.end(), part.begin(), part.end());
  }
  ZEUS_RETURN_IF_ERROR(collective.Sum(numbers));
  for (std::size_t i = 0; i < epochs_.size(); ++i) FromNumbers(&numbers[3 * i], epochs_[i].all);
  return Ok();
}

void TrainingLedger::SetCost(TrainingAmounts& amounts, bool energy_is_known) const {
  if (eta_ < 1 && !max_power_) return;
  if (eta_ > 0 && !energy_is_known) return;
  const Joules at_most = max_power_.value_or(Watts(0)) * amounts.time;
  amounts.cost = eta_ * amounts.energy + (1 - eta_) * at_most;
  amounts.cost_sigma = eta_ * amounts.energy_sigma;
}

TrainingAmounts TrainingLedger::Amounts(const Epoch& epoch) const {
  Sum sum;
  sum.Add(epoch.all);
  TrainingAmounts amounts = sum.ToAmounts();
  amounts.steps = epoch.steps;
  SetCost(amounts, sum.known);
  return amounts;
}

TrainingAmounts TrainingLedger::Total(const EpochReading* running) const {
  Sum sum;
  std::int64_t steps = 0;
  for (const Epoch& epoch : epochs_) {
    sum.Add(epoch.all);
    steps += epoch.steps;
  }
  if (running != nullptr) sum.Add(*running);
  TrainingAmounts amounts = sum.ToAmounts();
  amounts.steps = steps;
  SetCost(amounts, sum.known);
  return amounts;
}

TrainingSummary TrainingLedger::Summary(bool higher_is_better) const {
  TrainingSummary summary{.epochs = static_cast<int>(epochs_.size()), .amounts = Total()};
  for (const Epoch& epoch : epochs_) {
    summary.records.push_back(
        {.epoch = epoch.epoch, .amounts = Amounts(epoch), .metric = epoch.metric});
    if (epoch.metric && Better(*epoch.metric, summary.best_metric, higher_is_better))
      summary.best_metric = epoch.metric;
    for (const std::string& device : epoch.all.missing) {
      if (std::ranges::find(summary.missing, device) == summary.missing.end())
        summary.missing.push_back(device);
    }
  }
  return summary;
}

Status Agree(EpochOutcome& outcome, Collective& collective) {
  auto sums = ToNumbers(outcome.reading);
  ZEUS_RETURN_IF_ERROR(collective.Sum(sums));
  std::array<double, 3> most = {outcome.reading.time.count(), outcome.stop ? 1.0 : 0.0,
                                outcome.reading.missing.empty() ? 0.0 : 1.0};
  ZEUS_RETURN_IF_ERROR(collective.Max(most));
  std::array<double, 2> metric = {outcome.metric ? 1.0 : 0.0, outcome.metric.value_or(0)};
  ZEUS_RETURN_IF_ERROR(collective.Broadcast(metric, 0));
  FromNumbers(sums.data(), outcome.reading);
  outcome.reading.time = Seconds(most[0]);
  outcome.stop = most[1] > 0;
  if (most[2] > 0 && outcome.reading.missing.empty())
    outcome.reading.missing.push_back("devices of another rank");
  outcome.metric = metric[0] > 0 ? std::optional(metric[1]) : std::nullopt;
  return Ok();
}

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
