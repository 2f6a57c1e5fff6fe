#include "examples/training/run.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <span>

#include "apps/zeus/command_line.h"
#include "apps/zeus/output_file.h"
#include "examples/training/options.h"
#include "examples/training/report.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/random.h"
#include "zeus/training/training_loop.h"

namespace zeus::examples {
namespace {

constexpr const char* kWindow = "report";

}  // namespace

Status EpochReporter::Begin() {
  if (file_.empty()) return Ok();
  ZEUS_TRY([[maybe_unused]] const WindowId window, monitor_.monitor().BeginWindow(kWindow));
  steady_ = optimizer_ == nullptr || optimizer_->done();
  return Ok();
}

Status EpochReporter::Epoch(const Learned& learned) {
  if (file_.empty()) return Ok();
  ZEUS_TRY(const Measurement measured, monitor_.monitor().PeekWindow(kWindow));
  const Joules energy = measured.Sum().energy;
  Json line{{"epoch", learned.epoch},
            {"metric", learned.metric},
            {"time_seconds", measured.time.count()},
            {"energy_joules", energy.value()}};
  ZEUS_TRY(const PowerLimit limit, monitor_.gpu(0)->CurrentPowerLimit());
  line["power_limit_watts"] = limit.requested.value();
  if (steady_) {
    line["epoch_time_seconds"] = (measured.time - time_).count();
    line["epoch_energy_joules"] = (energy - energy_).value();
  }
  steady_ = optimizer_ == nullptr || optimizer_->done();
  time_ = measured.time;
  energy_ = energy;
  std::ofstream file(file_, std::ios::app);
  file << JsonText(line) << std::endl;
  return file ? Ok() : Status(FileError(file_, EIO));
}

namespace {

constexpr const char* kEpochWindow = "epoch";

// The signal that ended the training, 0 before.
std::atomic<int> signal_received = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void StopOnSignals() {
  struct sigaction handler {};
  handler.sa_handler = [](int number) { signal_received = number; };
  ::sigaction(SIGINT, &handler, nullptr);
  ::sigaction(SIGTERM, &handler, nullptr);
}

using Batch = std::span<const std::int64_t>;

// Shuffles the training samples for every epoch.
class Shuffler {
 public:
  Shuffler(std::size_t samples, Random random) : order_(samples), random_(random) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  std::vector<Batch> NextEpoch(std::size_t batch_size) {
    // The loop is written out because std::shuffle differs between standard libraries.
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[random_.Below(i)]);
    std::vector<Batch> batches;
    for (std::size_t begin = 0; begin < order_.size(); begin += batch_size)
      batches.push_back(Batch(order_).subspan(begin, std::min(batch_size, order_.size() - begin)));
    return batches;
  }

 private:
  std::vector<std::int64_t> order_;
  Random random_;
};

std::unique_ptr<GlobalPowerLimitOptimizer> MakeOptimizer(const Options& options,
                                                         NodeMonitor& monitor) {
  if (SelectKnobs(options).empty()) return nullptr;
  JitOptions jit;
  jit.knobs = SelectKnobs(options);
  jit.mode = options.observe ? OptimizerMode::kObserve : OptimizerMode::kOptimize;
  jit.rule.profile.time = Seconds(options.slice_seconds);
  jit.profile_folder = options.profiles;
  // A profile is valid for one network with one kind of work on the GPU.
  jit.job = options.model + " " + options.step_cost;
  jit.batch_size = options.batch_size;
  return std::make_unique<GlobalPowerLimitOptimizer>(monitor, ZeusCost(options.eta), jit);
}

class Training {
 public:
  Training(const Options& options, const ExampleModel& model, GpuHost& gpus)
      : options_(options),
        gpus_(gpus),
        learner_(model.make(MakeRecipe(options, model))),
        shuffler_(learner_->training_samples(), Random(options.seed).Fork("order")),
        optimizer_(MakeOptimizer(options, gpus.monitor())),
        reporter_(options.report, gpus.monitor(), optimizer_.get()) {
    outcome_.gpu = gpus.model().id;
    outcome_.max_power = gpus.model().limit_range.max * options.gpus;
    outcome_.target = options.target.value_or(model.target);
  }

  Result<Outcome> Run() {
    ZEUS_RETURN_IF_ERROR(reporter_.Begin());
    TrainingLoop loop(gpus_.monitor(), LoopOptions());
    ZEUS_RETURN_IF_ERROR(RunEpochs(loop));
    outcome_.summary = loop.Summary();
    outcome_.late_share = gpus_.late_share();
    outcome_.signal = signal_received;
    if (optimizer_) CollectOptimizer();
    return std::move(outcome_);
  }

 private:
  TrainingOptions LoopOptions() const {
    TrainingOptions loop;
    loop.max_epochs = options_.max_epochs;
    loop.target_metric = outcome_.target;
    loop.eta = options_.eta;
    loop.max_power = outcome_.max_power;
    loop.window = kEpochWindow;
    if (optimizer_) loop.callbacks = {optimizer_.get()};
    return loop;
  }

  Status RunEpochs(TrainingLoop& loop) {
    for (const int epoch : loop.Epochs()) {
      double loss = 0;
      const std::vector<Batch> batches = shuffler_.NextEpoch(options_.batch_size);
      for (const Batch& batch : loop.Batches(batches)) {
        ZEUS_RETURN_IF_ERROR(
            gpus_.Run(ShareOfStep(batch), [&] { loss = learner_->TrainStep(batch); }));
        outcome_.step_losses.push_back(loss);
        if (signal_received != 0) loop.Stop();
      }
      if (signal_received != 0) break;
      double metric = 0;
      ZEUS_RETURN_IF_ERROR(gpus_.Run(ValidationSteps(), [&] { metric = learner_->Validate(); }));
      loop.ReportMetric(metric);
      ZEUS_RETURN_IF_ERROR(Note(epoch, batches.size(), metric));
      ZEUS_RETURN_IF_ERROR(reporter_.Epoch({.epoch = epoch + 1, .metric = metric}));
    }
    return Ok();
  }

  // The last batch of an epoch may be smaller than a step's.
  double ShareOfStep(const Batch& batch) const {
    return static_cast<double>(batch.size()) / options_.batch_size;
  }

  // Returns the steps that equal a forward pass over all validation samples.
  double ValidationSteps() const {
    return static_cast<double>(learner_->validation_samples()) / options_.batch_size /
           kStepPerForward;
  }

  Status Note(int epoch, std::size_t steps, double metric) {
    const auto last = outcome_.step_losses.end();
    const double loss = std::accumulate(last - static_cast<std::ptrdiff_t>(steps), last, 0.0) /
                        static_cast<double>(steps);
    Gpu& gpu = *gpus_.monitor().gpu(0);
    ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
    ZEUS_TRY(const Hertz clock, gpu.CurrentClock(ClockDomain::kGraphics));
    ZEUS_TRY(const Measurement used, gpus_.monitor().monitor().PeekWindow(kEpochWindow));
    const Measurement::Total total = used.Sum();
    outcome_.epochs.push_back(
        {.loss = loss, .metric = metric, .limit = limit.requested, .clock = clock});
    fmt::print("epoch {:>2}: loss {:.4f}, accuracy {:.4f}, {:.1f} s, {}, limit {:g} W, {:g} MHz\n",
               epoch + 1, loss, metric, used.time.count(), WithSigma(total.energy, total.sigma),
               limit.requested.value(), clock.ToMega());
    std::fflush(stdout);
    return Ok();
  }

  void CollectOptimizer() {
    for (std::size_t knob = 0; knob < optimizer_->profile_count(); ++knob)
      outcome_.profiles.push_back(optimizer_->profile(knob));
    outcome_.chosen = optimizer_->chosen();
    outcome_.trouble = optimizer_->trouble();
    auto savings = optimizer_->Savings();
    if (savings.ok()) {
      outcome_.savings = std::move(savings).value();
    } else if (!outcome_.trouble) {
      outcome_.trouble = savings.error();
    }
  }

  const Options& options_;
  GpuHost& gpus_;
  std::unique_ptr<Learner> learner_;
  Shuffler shuffler_;
  std::unique_ptr<GlobalPowerLimitOptimizer> optimizer_;
  EpochReporter reporter_;
  Outcome outcome_;
};

}  // namespace

Result<Outcome> Train(const Options& options, const ExampleModel& model) {
  ZEUS_RETURN_IF_ERROR(Check(options));
  ZEUS_TRY(const sim::LoadSpec load, MakeLoad(options, model));
  ZEUS_TRY(const std::unique_ptr<GpuHost> gpus, OpenGpus(options));
  StopOnSignals();
  Training training(options, model, *gpus);
  ZEUS_RETURN_IF_ERROR(gpus->Attach(load));
  return training.Run();
}

namespace {

constexpr int kSignalExitCode = 128;  // The shells' convention: 130 for SIGINT, 143 for SIGTERM.

Result<int> Perform(const Program& program, const Options& options) {
  for (const std::string& file : {options.json, options.report})
    if (!file.empty()) ZEUS_RETURN_IF_ERROR(cli::CheckWritable(file));
  ZEUS_TRY(const ExampleModel* const model, FindExampleModel(program.models, options.model));
  ZEUS_TRY(const Outcome outcome, Train(options, *model));
  PrintOutcome(outcome, options);
  if (!options.json.empty())
    ZEUS_RETURN_IF_ERROR(
        cli::WriteWhole(options.json, JsonText(ToJson(outcome, options), 2) + "\n"));
  return outcome.signal == 0 ? 0 : kSignalExitCode + outcome.signal;
}

}  // namespace

int RunProgram(const Program& program, int argc, char** argv) {
  cli::CommandLine line(program.name,
                        "Trains a small network on simulated GPUs and lowers what it costs.");
  Options options;
  AddOptions(line.program(), program.models, options);
  return line.Run(argc, argv, [&] { return Perform(program, options); });
}

}  // namespace zeus::examples
