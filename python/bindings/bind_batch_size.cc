#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/job_run.h"

namespace zeus::python {
namespace {

// Fields of a spec by their names in zeus.optimizer.batch_size.JobSpec, which has checked them.
JobSpec ToJobSpec(const py::dict& fields) {
  const auto text = [&fields](const char* name) {
    return fields[name].is_none() ? std::string() : fields[name].cast<std::string>();
  };
  JobSpec spec;
  spec.id = text("job_id");
  spec.prefix = text("job_id_prefix");
  spec.batch_sizes = fields["batch_sizes"].cast<std::vector<int>>();
  spec.default_batch_size = fields["default_batch_size"].cast<int>();
  spec.eta = fields["eta_knob"].cast<double>();
  spec.beta = fields["beta_knob"].cast<std::optional<double>>();
  spec.target_metric = fields["target_metric"].cast<double>();
  spec.higher_is_better = fields["higher_is_better_metric"].cast<bool>();
  spec.max_epochs = fields["max_epochs"].cast<int>();
  if (const std::string policy = text("policy"); !policy.empty()) spec.policy = policy;
  spec.pruning_rounds = fields["num_pruning_rounds"].cast<int>();
  spec.window = fields["window_size"].cast<int>();
  spec.prior_mean = fields["mab_prior_mean"].cast<double>();
  spec.prior_precision = fields["mab_prior_precision"].cast<double>();
  spec.explorations = fields["mab_num_explorations"].cast<int>();
  spec.seed = fields["mab_seed"].cast<std::optional<std::uint64_t>>();
  spec.max_power = Watts(fields["max_power"].cast<std::optional<double>>().value_or(0));
  spec.number_of_gpus = fields["number_of_gpus"].cast<std::optional<int>>().value_or(0);
  spec.gpu_model = text("gpu_model");
  spec.translate_gpu_models = fields["translate_gpu_models"].cast<std::optional<bool>>().value_or(
      spec.translate_gpu_models);
  if (const auto deadline = fields["deadline"].cast<std::optional<double>>())
    spec.deadline = Seconds(*deadline);
  if (const auto lease = fields["lease"].cast<std::optional<double>>())
    spec.lease = Seconds(*lease);
  spec.labels = fields["labels"].cast<std::map<std::string, std::string>>();
  return spec;
}

JobRun::Unsaid UnsaidFields(const py::dict& fields, const py::dict& options) {
  return {.policy = fields["policy"].is_none(),
          .translate_gpu_models = fields["translate_gpu_models"].is_none(),
          .lease = fields["lease"].is_none(),
          .new_policy = options["new_policy"].cast<std::string>()};
}

// `server` is a URL, a token and a file of authorities; the latter two may be empty.
std::unique_ptr<JobRun> OpenJobRun(const std::shared_ptr<Monitor>& monitor,
                                   std::array<std::string, 3> server, const py::dict& job,
                                   const py::dict& options, py::object collective) {
  auto& [url, token, authorities] = server;
  // This comes before anything is moved from: a text that is not UTF-8 throws.
  JobSpec spec = ToJobSpec(job);
  JobRun::Unsaid unsaid = UnsaidFields(job, options);
  return std::make_unique<JobRun>(
      monitor,
      JobRun::Options{.server = {.url = std::move(url),
                                 .token = std::move(token),
                                 .authorities = std::move(authorities),
                                 .retry = kRetryInTraining},
                      .job = std::move(spec),
                      .unsaid = std::move(unsaid),
                      .window = options["window"].cast<std::string>(),
                      .recurrence = options["recurrence"].cast<std::optional<std::int64_t>>(),
                      .baseline = options["baseline"].cast<bool>(),
                      .needs_server = options["needs_server"].cast<bool>(),
                      .start_timeout = Seconds(options["start_timeout"].cast<double>()),
                      .end_timeout = Seconds(options["end_timeout"].cast<double>()),
                      .collective = std::move(collective)});
}

py::dict ToDict(const UsualAmounts& usual) {
  py::dict dict;
  dict["count"] = usual.count;
  const auto add = [&dict](const char* name, const MeanAmount& amount) {
    dict[name] = py::make_tuple(amount.mean, amount.sigma);
  };
  add("energy", usual.energy);
  add("time", usual.time);
  add("cost", usual.cost);
  return dict;
}

py::tuple ToTuple(const SavedAmount& saved) {
  return py::make_tuple(saved.percent, saved.percent_sigma, saved.total, saved.total_sigma);
}

py::dict ToDict(const Accounted& accounted, double amount, double sigma) {
  py::dict dict;
  const bool known = !accounted.sources.empty();
  dict["amount"] = known ? py::object(py::float_(amount)) : py::none();
  dict["sigma"] = known ? py::object(py::float_(sigma)) : py::none();
  dict["sources"] = accounted.sources;
  dict["notes"] = accounted.notes;
  return dict;
}

void AddCarbon(py::dict& saved, const CarbonReport& report) {
  if (const auto& emissions = report.emissions)
    saved["carbon"] =
        ToDict(emissions->accounted, emissions->amount.value(), emissions->sigma.value());
  if (const auto& cost = report.cost) {
    py::dict money = ToDict(cost->accounted, cost->amount.value(), cost->sigma.value());
    money["currency"] = cost->currency;
    saved["money"] = money;
  }
}

CarbonOptions ReadCarbonOptions(const py::dict& options) {
  CarbonOptions carbon{.prefix = ""};
  const auto read = [&options](const char* name, std::string& target) {
    if (options.contains(name)) target = options[name].cast<std::string>();
  };
  read("carbon", carbon.carbon);
  read("price", carbon.price);
  read("carbon_fallback", carbon.fallback);
  read("carbon_token_file", carbon.token_file);
  read("carbon_url", carbon.url);
  return carbon;
}

// Returns the fields from which zeus.optimizer.batch_size.savings makes objects.
py::dict JobSavingsDict(JobRun& run, const py::dict& carbon) {
  const JobSavings savings = run.Savings(ReadCarbonOptions(carbon));
  py::dict dict;
  dict["job_id"] = savings.job_id;
  dict["gpu_model"] = savings.gpu_model;
  dict["default_batch_size"] = savings.default_batch_size;
  dict["baseline"] = ToDict(savings.baseline);
  dict["zeus"] = ToDict(savings.zeus);
  dict["runs"] = savings.runs;
  dict["shared_runs"] = savings.shared;
  dict["unknown_because"] = savings.unknown_because;
  if (savings.saved) {
    py::dict saved;
    saved["energy"] = ToTuple(savings.saved->energy);
    saved["time"] = ToTuple(savings.saved->time);
    saved["cost"] = ToTuple(savings.saved->cost);
    if (savings.saved_carbon) AddCarbon(saved, *savings.saved_carbon);
    dict["saved"] = saved;
  } else {
    dict["saved"] = py::none();
  }
  return dict;
}

}  // namespace

void BindBatchSize(py::module_& core) {
  py::module_ module = core.def_submodule("batch_size");
  const auto known = [](auto getter) {
    return [getter](JobRun& run) { return getter(run.state()); };
  };
  py::class_<JobRun>(module, "JobRun")
      .def(py::init(&OpenJobRun), py::arg("monitor"), py::arg("server"), py::arg("job"),
           py::arg("options"), py::arg("collective"))
      .def("begin_trial", &JobRun::BeginTrial)
      .def("observe", &JobRun::Observe, py::arg("power_limit_optimizer"))
      .def("on_train_begin", &JobRun::OnTrainBegin)
      .def("on_evaluate", &JobRun::OnEvaluate, py::arg("metric"))
      .def("on_train_end", &JobRun::OnTrainEnd)
      .def("savings", &JobSavingsDict, py::arg("carbon"))
      .def("close", &JobRun::Close)
      .def_property_readonly("closed", &JobRun::closed)
      .def_property_readonly("job_id", known([](const auto& state) { return state.job.id; }))
      .def_property_readonly("gpu_model",
                             known([](const auto& state) { return state.job.gpu_model; }))
      .def_property_readonly("max_power",
                             known([](const auto& state) { return state.job.max_power.value(); }))
      .def_property_readonly("number_of_gpus",
                             known([](const auto& state) { return state.job.number_of_gpus; }))
      .def_property_readonly("batch_size",
                             known([](const auto& state) { return state.batch_size; }))
      .def_property_readonly("max_epochs",
                             known([](const auto& state) { return state.max_epochs; }))
      .def_property_readonly("trial", known([](const auto& state) { return state.trial; }))
      .def_property_readonly("recurrence",
                             known([](const auto& state) { return state.recurrence; }))
      .def_property_readonly("stop", known([](const auto& state) { return state.stop; }))
      .def_property_readonly("converged", known([](const auto& state) { return state.converged; }))
      .def_property_readonly("retry", known([](const auto& state) { return state.retry; }))
      .def_property_readonly("message", known([](const auto& state) { return state.message; }))
      .def_property_readonly("trouble", known([](const auto& state) { return state.trouble; }));
}

}  // namespace zeus::python
