#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/without_gil.h"
#include "zeus/base/log.h"
#include "zeus/session/train.h"

namespace zeus::python {
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
