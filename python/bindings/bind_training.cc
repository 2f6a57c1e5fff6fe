#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/collective.h"
#include "python/bindings/errors.h"
#include "python/bindings/monitor.h"
#include "zeus/base/log.h"
#include "zeus/session/train.h"
#include "zeus/training/training_loop.h"

namespace zeus::python {

namespace py = pybind11;

// Adapts a Python callback to TrainingCallback. Events for which it has no method are skipped. An
// exception that it raises is thrown; KeyboardInterrupt is also raised again in Python.
class PythonCallback final : public TrainingCallback {
 public:
  explicit PythonCallback(py::object object) : object_(std::move(object)) {}
  ~PythonCallback() override;
  PythonCallback(const PythonCallback&) = delete;
  PythonCallback& operator=(const PythonCallback&) = delete;

  void OnTrainBegin() override { Notify("on_train_begin"); }
  void OnEpochBegin(std::int64_t) override { Notify("on_epoch_begin"); }
  void OnStepBegin() override { Notify("on_step_begin"); }
  void OnStepEnd() override { Notify("on_step_end"); }
  void OnEpochEnd(std::int64_t) override { Notify("on_epoch_end"); }
  void OnEvaluate(double metric) override { Notify("on_evaluate", metric); }
  void OnTrainEnd() override { Notify("on_train_end"); }

 private:
  template <class... Arguments>
  void Notify(const char* event, Arguments... arguments);

  py::object object_;
};

// The object behind Python's training loop, step by step: see zeus::TrainingLoop. Not thread-safe.
class Training final : public Closeable {
 public:
  // `options` holds neither callbacks nor a collective.
  Training(std::shared_ptr<Monitor> monitor, TrainingOptions options, const py::list& callbacks,
           const py::object& collective);
  ~Training() override { Close(); }

  // Throws Failure after closing and in a forked child.
  TrainingLoop& loop() const;
  // These may wait for sensors and for other ranks, without the GIL.
  bool BeginTraining();
  bool NextEpoch();
  void LeaveTraining(bool by_exception);
  TrainingSummary Summary(double timeout);

 private:
  struct Work;

  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<Monitor> monitor_;
  std::shared_ptr<Work> work_;
};

PythonCallback::~PythonCallback() {
  const py::gil_scoped_acquire acquired;
  object_ = {};
}

template <class... Arguments>
void PythonCallback::Notify(const char* event, Arguments... arguments) {
  const py::gil_scoped_acquire acquired;
  std::string failure;
  try {
    if (py::hasattr(object_, event)) object_.attr(event)(arguments...);
    return;
  } catch (const std::exception& exception) {
    failure = exception.what();
    KeepInterrupt();
  }
  // The exception itself is not rethrown, because it must not be touched without the GIL.
  throw std::runtime_error(failure);
}

// Members are destroyed in reverse order.
struct Training::Work {
  std::shared_ptr<NodeMonitor> node;
  std::shared_ptr<Collective> collective;
  std::vector<std::unique_ptr<PythonCallback>> callbacks;
  std::unique_ptr<TrainingLoop> loop;
};

Training::Training(std::shared_ptr<Monitor> monitor, TrainingOptions options,
                   const py::list& callbacks, const py::object& collective)
    : Closeable(monitor.get()), monitor_(std::move(monitor)), work_(std::make_shared<Work>()) {
  work_->node = monitor_->recording();
  work_->collective = FindCollective(collective);
  options.collective = work_->collective.get();
  for (const py::handle callback : callbacks) {
    work_->callbacks.push_back(
        std::make_unique<PythonCallback>(py::reinterpret_borrow<py::object>(callback)));
    options.callbacks.push_back(work_->callbacks.back().get());
  }
  work_->loop = std::make_unique<TrainingLoop>(*work_->node, std::move(options));
}

TrainingLoop& Training::loop() const {
  CheckOpen("data loader");
  return *work_->loop;
}

bool Training::BeginTraining() {
  TrainingLoop& loop = this->loop();
  const auto work = work_;
  const WithoutGil released;
  return loop.BeginTraining();
}

bool Training::NextEpoch() {
  TrainingLoop& loop = this->loop();
  monitor_->synchronizer()();
  const auto work = work_;
  const WithoutGil released;
  return loop.NextEpoch();
}

void Training::LeaveTraining(bool by_exception) {
  TrainingLoop& loop = this->loop();
  const auto work = work_;
  const WithoutGil released;
  loop.LeaveTraining(by_exception);
}

TrainingSummary Training::Summary(double timeout) {
  TrainingLoop& loop = this->loop();
  const auto work = work_;
  const WithoutGil released;
  return loop.Summary(Seconds(timeout));
}

void Training::DoClose() {
  auto work = std::exchange(work_, nullptr);
  const WithoutGil released;
  work.reset();
}

void Training::Abandon() {
  static auto* const abandoned = new std::vector<std::shared_ptr<Work>>();
  abandoned->push_back(std::move(work_));
}

namespace {

// zeus.data_loader has checked all options.
std::shared_ptr<Training> MakeTraining(const std::shared_ptr<Monitor>& monitor,
                                       const py::list& callbacks, const py::object& collective,
                                       const py::dict& options) {
  const auto bound = options["cost_bound"].cast<std::optional<double>>();
  const auto power = options["max_power"].cast<std::optional<double>>();
  TrainingOptions training{.max_epochs = options["max_epochs"].cast<int>(),
                           .target_metric = options["target_metric"].cast<std::optional<double>>(),
                           .higher_is_better = options["higher_is_better"].cast<bool>(),
                           .eta = options["eta"].cast<double>(),
                           .window = options["window"].cast<std::string>()};
  if (bound) training.cost_bound = Joules(*bound);
  if (power) training.max_power = Watts(*power);
  return std::make_shared<Training>(monitor, std::move(training), callbacks, collective);
}

// Returns (steps, time, energy, energy sigma, cost, cost sigma).
py::tuple AmountsTuple(const TrainingAmounts& amounts) {
  const bool known = amounts.cost.has_value();
  return py::make_tuple(amounts.steps, amounts.time.count(), amounts.energy.value(),
                        amounts.energy_sigma.value(),
                        known ? std::optional(amounts.cost->value()) : std::nullopt,
                        known ? std::optional(amounts.cost_sigma.value()) : std::nullopt);
}

py::dict SummaryDict(Training& training, double timeout) {
  const TrainingSummary summary = training.Summary(timeout);
  py::list records;
  for (const EpochRecord& record : summary.records)
    records.append(py::make_tuple(record.epoch, AmountsTuple(record.amounts), record.metric));
  py::dict result;
  result["epochs"] = summary.epochs;
  result["amounts"] = AmountsTuple(summary.amounts);
  result["best_metric"] = summary.best_metric;
  result["reason"] = summary.reason ? py::object(py::str(StopReasonName(*summary.reason)))
                                    : py::object(py::none());
  result["records"] = std::move(records);
  result["missing"] = summary.missing;
  return result;
}

}  // namespace

void BindTraining(py::module_& core) {
  py::module_ module = core.def_submodule("training");
  py::class_<Training, std::shared_ptr<Training>>(module, "Training")
      .def(py::init(&MakeTraining), py::arg("monitor"), py::arg("callbacks"), py::arg("collective"),
           py::arg("options"))
      .def("begin_training", &Training::BeginTraining)
      .def("next_epoch", &Training::NextEpoch)
      .def("leave_training", &Training::LeaveTraining, py::arg("by_exception"))
      .def("begin_batches", [](const Training& training) { training.loop().BeginBatches(); })
      .def("end_batches", [](const Training& training) { training.loop().EndBatches(); })
      .def("may_step", [](const Training& training) { return training.loop().MayStep(); })
      .def("begin_step", [](const Training& training) { training.loop().BeginStep(); })
      .def("end_step", [](const Training& training) { training.loop().EndStep(); })
      .def("report_metric",
           [](const Training& training, double metric) { training.loop().ReportMetric(metric); })
      .def("stop", [](const Training& training) { training.loop().Stop(); })
      .def("summary", &SummaryDict, py::arg("timeout"))
      .def_property_readonly("epoch",
                             [](const Training& training) { return training.loop().epoch(); })
      .def("close", &Training::Close)
      .def_property_readonly("closed", &Training::closed);
}

namespace {

constexpr int kPollsPerCheck = 5;  // Polls between two checks for Ctrl-C.

template <typename T>
T Field(const py::dict& fields, const char* name) {
  return fields[name].cast<T>();
}

std::optional<Seconds> Duration(const py::dict& fields, const char* name) {
  const auto seconds = Field<std::optional<double>>(fields, name);
  return seconds ? std::optional(Seconds(*seconds)) : std::nullopt;
}

JobSpec SpecOfTraining(const py::dict& fields) {
  JobSpec spec;
  spec.id = Field<std::string>(fields, "job");
  spec.batch_sizes = Field<std::vector<int>>(fields, "batch_sizes");
  spec.default_batch_size = Field<int>(fields, "default");
  spec.target_metric = Field<double>(fields, "target");
  spec.higher_is_better = !Field<bool>(fields, "lower_is_better");
  spec.eta = Field<double>(fields, "eta");
  spec.beta = Field<std::optional<double>>(fields, "beta");
  spec.max_epochs = Field<int>(fields, "max_epochs");
  spec.policy = Field<std::string>(fields, "policy");
  spec.seed = Field<std::optional<std::uint64_t>>(fields, "seed");
  spec.deadline = Duration(fields, "deadline");
  spec.gpu_model = Field<std::string>(fields, "gpu_model");
  spec.max_power = Watts(Field<double>(fields, "max_power"));
  return spec;
}

LimitPlan LimitOfTraining(const py::object& power_limit) {
  LimitPlan plan;
  if (!py::isinstance<py::str>(power_limit)) {
    plan.mode = LimitMode::kFixed;
    plan.fixed = Watts(power_limit.cast<double>());
    return plan;
  }
  const auto mode = power_limit.cast<std::string>();
  if (mode == "jit") return plan;
  if (mode == "observe") {
    plan.mode = LimitMode::kObserve;
  } else if (mode == "max") {
    plan.mode = LimitMode::kMax;
  } else if (mode == "found") {
    plan.mode = LimitMode::kFound;
  } else {
    throw Failure({ErrorCode::kInvalidArgument,
                   "power_limit is jit, observe, max, found or watts, not " + mode});
  }
  return plan;
}

TrainOptions OptionsOfTraining(const py::dict& fields) {
  TrainOptions options;
  options.command = Field<std::vector<std::string>>(fields, "command");
  options.spec = SpecOfTraining(fields);
  options.recurrences = Field<unsigned>(fields, "recurrences");
  options.baseline = Field<unsigned>(fields, "baseline");
  if (const auto regex = Field<std::optional<std::string>>(fields, "metric_regex"))
    options.metric = Unwrap(MetricPattern::Compile(*regex));
  options.metric_file = Field<std::optional<std::string>>(fields, "metric_file").value_or("");
  if (const auto regex = Field<std::optional<std::string>>(fields, "progress_regex"))
    options.progress = Unwrap(ProgressPattern::Compile(*regex));
  options.learning_rate = Field<std::optional<double>>(fields, "lr");
  options.no_placeholder = Field<bool>(fields, "no_placeholder");
  options.server_wait = Seconds(Field<double>(fields, "server_wait"));
  options.limit = LimitOfTraining(fields["power_limit"]);
  if (Field<bool>(fields, "may_raise")) options.limit.ceiling = Ceiling::kOfDevice;
  return options;
}

// Notes the trials of a session; Python gets them when it is over.
class TrialLog final : public TrainListener {
 public:
  void OnTrialEnded(const TrialOutcome& outcome) override;
  py::list ToList() const;

 private:
  std::vector<TrialOutcome> trials_;
  bool trouble_logged_ = false;
};

void TrialLog::OnTrialEnded(const TrialOutcome& outcome) {
  trials_.push_back(outcome);
  if (outcome.limit_trouble && !std::exchange(trouble_logged_, true))
    log::Warning("the power limit is {}: {}",
                 outcome.limit_left_changed ? "not what it was" : "left alone",
                 outcome.limit_trouble->message);
}

py::list TrialLog::ToList() const {
  py::list list;
  for (const TrialOutcome& outcome : trials_) {
    py::dict trial;
    trial["recurrence"] = outcome.trial.recurrence;
    trial["batch_size"] = outcome.trial.batch_size;
    trial["converged"] = outcome.trial.status == TrialStatus::kConverged;
    // A run without an epoch was not measured.
    const bool known = outcome.trial.epochs > 0;
    trial["time"] = known ? outcome.trial.time.count() : std::nan("");
    trial["energy"] = known ? outcome.trial.energy.value() : std::nan("");
    trial["epochs"] = outcome.trial.epochs;
    trial["metric"] =
        outcome.trial.metric ? py::object(py::float_(*outcome.trial.metric)) : py::none();
    trial["shared"] = outcome.trial.shared;
    trial["limit_trouble"] =
        outcome.limit_trouble ? py::object(py::str(outcome.limit_trouble->message)) : py::none();
    trial["power_limit"] = outcome.trial.power_limit
                               ? py::object(py::float_(outcome.trial.power_limit->value()))
                               : py::none();
    trial["reason"] = outcome.trial.reason;
    list.append(std::move(trial));
  }
  return list;
}

// Runs a job; Ctrl-C stops the command and raises KeyboardInterrupt when it has ended.
py::dict RunJob(const py::dict& fields) {
  const TrainOptions options = OptionsOfTraining(fields);
  TrialLog log;
  TrainPlace place{.listener = &log};
  place.jobs.server = Field<std::optional<std::string>>(fields, "server").value_or("");
  place.jobs.database = Field<std::optional<std::string>>(fields, "database").value_or("");
  place.driver_timeout = Seconds(Field<double>(fields, "driver_timeout"));
  place.gpus = Field<std::optional<std::vector<unsigned>>>(fields, "gpus");
  std::optional<py::error_already_set> interrupt;
  int polls = 0;
  place.stop_requested = [&interrupt, &polls] {
    if (interrupt) return true;
    if (++polls % kPollsPerCheck != 0) return false;
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) interrupt.emplace();
    return interrupt.has_value();
  };
  std::optional<Result<TrainOutcome>> outcome;
  {
    const WithoutGil released;
    outcome = Train(options, place);
  }
  if (interrupt) throw py::error_already_set(std::move(*interrupt));
  const TrainOutcome ended = Unwrap(std::move(*outcome));
  py::dict result;
  result["limit_left_changed"] =
      ended.limit_left_changed ? MakeException(*ended.limit_left_changed) : py::object(py::none());
  result["job"] = ended.job;
  result["gpu_model"] = ended.gpu_model;
  result["reached"] = ended.reached && !ended.exit_code;
  result["exit_code"] = ended.exit_code ? py::object(py::int_(*ended.exit_code)) : py::none();
  result["trials"] = log.ToList();
  return result;
}

}  // namespace

void BindTrain(py::module_& core) {
  py::module_ train = core.def_submodule("train", "Recurring jobs of foreign commands.");
  train.def("run_job", &RunJob, py::arg("fields"));
}

}  // namespace zeus::python
