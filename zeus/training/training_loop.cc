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

// Calls callbacks one after the other. An exception of a callback is logged, and from then on only
// its OnTrainEnd() is called, where it may restore what it changed. One owner.
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
  // Whether any callback wants to stop; those that failed are not asked.
  bool ShouldStop() const;

 private:
  struct Entry {
    TrainingCallback* callback;
    std::size_t position;  // Position in the user's list.
    bool failed = false;
  };

  template <class Function>
  void CallEach(const char* event, Function function);
  template <class Function>
  void CallOne(Entry& entry, const char* event, Function function);

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
void CallbackList::CallOne(Entry& entry, const char* event, Function function) {
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
void CallbackList::CallEach(const char* event, Function function) {
  for (Entry& entry : entries_)
    if (!entry.failed) CallOne(entry, event, function);
}

void CallbackList::TrainBegin() {
  CallEach("the begin of training", [](TrainingCallback& callback) { callback.OnTrainBegin(); });
}
void CallbackList::EpochBegin(std::int64_t epoch) {
  CallEach("the begin of an epoch",
           [=](TrainingCallback& callback) { callback.OnEpochBegin(epoch); });
}
void CallbackList::StepBegin() {
  CallEach("the begin of a step", [](TrainingCallback& callback) { callback.OnStepBegin(); });
}
void CallbackList::StepEnd() {
  CallEach("the end of a step", [](TrainingCallback& callback) { callback.OnStepEnd(); });
}
void CallbackList::EpochEnd(std::int64_t epoch) {
  CallEach("the end of an epoch", [=](TrainingCallback& callback) { callback.OnEpochEnd(epoch); });
}
void CallbackList::Evaluate(double metric) {
  CallEach("an evaluation", [=](TrainingCallback& callback) { callback.OnEvaluate(metric); });
}
void CallbackList::TrainEnd() {
  for (Entry& entry : entries_) {
    CallOne(entry, "the end of training",
            [](TrainingCallback& callback) { callback.OnTrainEnd(); });
  }
}

bool CallbackList::ShouldStop() const {
  return std::ranges::any_of(
      entries_, [](const Entry& entry) { return !entry.failed && entry.callback->ShouldStop(); });
}

// Records time, energy and cost of the epochs of a training, over all ranks. One owner.
class TrainingLedger {
 public:
  // `max_power` is that of all ranks; nullopt if it is not known.
  TrainingLedger(double eta, std::optional<Watts> max_power) : eta_(eta), max_power_(max_power) {}
  void set_max_power(std::optional<Watts> max_power) { max_power_ = max_power; }

  struct Epoch {
    int epoch = 0;
    std::int64_t steps = 0;
    EpochReading local{};  // Reading of this rank.
    EpochReading all{};    // Reading of all ranks together.
    std::optional<double> metric{};
  };
  void Add(Epoch epoch) { epochs_.push_back(std::move(epoch)); }

  // Wait until the sensors have shown the ends of epochs, at most `timeout` for each, and update
  // the readings. RefineTogether() also exchanges them between ranks.
  void RefineAlone(EpochMeter& meter, Seconds timeout);
  Status RefineTogether(EpochMeter& meter, Seconds timeout, Collective& collective);

  // Returns the sum of all epochs, and of `running` if it is given.
  TrainingAmounts Total(const EpochReading* running = nullptr) const;

  // Returns the summary without `reason`, which the ledger does not know.
  TrainingSummary Summary(bool higher_is_better) const;

 private:
  TrainingAmounts Amounts(const Epoch& epoch) const;
  void SetCost(TrainingAmounts& amounts, bool energy_is_known) const;

  double eta_;
  std::optional<Watts> max_power_;
  std::vector<Epoch> epochs_{};
};

// The numbers that ranks exchange at the end of an epoch.
struct EpochOutcome {
  EpochReading reading{};
  std::optional<double> metric{};
  bool stop = false;
};

// Makes the outcome the same on all ranks: sums the energy, takes the time of the slowest rank and
// the metric of rank 0, and stops if any rank wants to.
Status Agree(EpochOutcome& outcome, Collective& collective);

namespace {

Joules Hypotenuse(Joules a, Joules b) { return Joules(std::hypot(a.value(), b.value())); }

double Square(Joules sigma) { return sigma.value() * sigma.value(); }

// A sum of epochs: shared errors add up linearly, independent ones as variances.
struct Sum {
  Seconds time{0};
  Joules energy{0};
  double own_variance = 0;
  Joules shared_sigma{0};
  bool known = true;  // Whether no device is missing in the energy.

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

// The errors of different ranks' boards are independent, so all their variances add up.
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

void TrainingLedger::RefineAlone(EpochMeter& meter, Seconds timeout) {
  for (Epoch& epoch : epochs_) {
    meter.Refine(epoch.local, timeout);
    epoch.all = epoch.local;
  }
}

Status TrainingLedger::RefineTogether(EpochMeter& meter, Seconds timeout, Collective& collective) {
  std::vector<double> numbers;
  for (Epoch& epoch : epochs_) {
    meter.Refine(epoch.local, timeout);
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

// A check of the cost takes microseconds, and a second of training costs little more.
constexpr Seconds kBetweenCostChecks{1.0};
// Steps may get slower, so the number of steps grows at most by this factor from one check to the
// next.
constexpr std::int64_t kLargestGrowth = 10;

constexpr Seconds kRefineTimeout{2.0};

// Returns the sum of the maximum power of all GPUs that the monitor records; nullopt if there is no
// GPU, or if one does not report its limit.
std::optional<Watts> SumMaxPower(NodeMonitor& monitor) {
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
  if (!options.max_power) options.max_power = SumMaxPower(monitor);
  return options;
}

// Drops a number that is not valid, and logs that.
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

double ValidEta(const TrainingOptions& options) {
  if (options.eta >= 0 && options.eta <= 1) return options.eta;
  const double eta = std::isnan(options.eta) ? TrainingOptions().eta : options.eta < 0 ? 0 : 1;
  log::Warning("eta must be between 0 and 1 and is {}: training goes on with {}", options.eta, eta);
  return eta;
}

}  // namespace

// The state of a training and everything that happens between its steps.
class TrainingLoop::Session {
 public:
  Session(EnergyMonitor& monitor, TrainingOptions options)
      : options_(Sensible(std::move(options))),
        meter_(monitor, options_.window),
        ledger_(ValidEta(options_), options_.max_power),
        callbacks_(options_.callbacks) {}

  bool alone() const { return options_.collective == nullptr || options_.collective->size() == 1; }
  CallbackList& callbacks() { return callbacks_; }
  const std::optional<StopReason>& reason() const { return reason_; }

  // Returns false if there is no epoch to train.
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
  // Returns whether another epoch follows.
  bool EndEpoch(const Ended& ended, Exit exit);

  // Checks the cost, including the open epoch, which has `steps` steps so far. Returns how many
  // steps may pass until the next check.
  std::int64_t CheckCost(std::int64_t steps);
  bool over_bound() const { return over_bound_; }

  TrainingSummary Summary(Seconds timeout);

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
  bool training_part_ = false;  // Callbacks have seen the begin of the epoch and not its end.
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
  // NaN spreads to all ranks in the sum: if one rank does not know its power, the sum is unknown.
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
  // A rank that leaves early must not make collective calls, because the others train on.
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
  if (alone()) ledger_.RefineAlone(meter_, Seconds(0));
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
  const Status refined = ledger_.RefineTogether(meter_, kRefineTimeout, *options_.collective);
  if (!refined.ok())
    log::Warning("the energies of the epochs stay as first measured: {}", refined.error().message);
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
  const std::int64_t most = passed > kNever / kLargestGrowth ? kNever : passed * kLargestGrowth;
  return wanted >= static_cast<double>(most) ? most
                                             : std::max<std::int64_t>(1, std::llround(wanted));
}

TrainingSummary TrainingLoop::Session::Summary(Seconds timeout) {
  if (alone()) ledger_.RefineAlone(meter_, timeout);
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

void TrainingLoop::CallStepBegin() { session_->callbacks().StepBegin(); }
void TrainingLoop::CallStepEnd() { session_->callbacks().StepEnd(); }

void TrainingLoop::CheckCost() {
  steps_until_check_ = session_->CheckCost(steps_);
  if (session_->over_bound()) Stop();
}

TrainingSummary TrainingLoop::Summary(Seconds timeout) { return session_->Summary(timeout); }

}  // namespace zeus
