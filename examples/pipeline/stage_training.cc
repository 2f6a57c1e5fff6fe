#include "examples/pipeline/stage_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace zeus::examples {
namespace {

constexpr double kBackward = 2;  // A backward pass computes gradients of inputs and of weights.
constexpr double kMemoryShare = 0.1;  // Share of the time that does not depend on the clock.

// Stages differ in work because layers cannot be divided evenly.
constexpr std::array kOtherStages = {1.0, 0.92, 0.96};

constexpr int kMostProfilingIterations = 500;

// Returns the work that takes `time` at the highest clock.
sim::StepWork WorkFor(const sim::GpuModel& model, Seconds time) {
  const sim::KnobSettings knobs{.power_limit = model.limit_range.max, .clock_cap = {}};
  const auto time_of = [&](const sim::StepWork& work) {
    return sim::PredictStep(model, work, knobs).value().time_per_epoch;
  };
  const sim::StepWork operations{.operations = model.peak_operations, .bytes = 0};
  const sim::StepWork bytes{.operations = 0, .bytes = model.memory_bandwidth};
  return operations * ((1 - kMemoryShare) * time / time_of(operations)) +
         bytes * (kMemoryShare * time / time_of(bytes));
}

}  // namespace

StageTraining::StageTraining(const RunOptions& options, int stage, Neighbours neighbours,
                             Collective& collective, StageGpu& gpu)
    : options_(options),
      stage_(stage),
      neighbours_(std::move(neighbours)),
      collective_(collective),
      gpu_(gpu) {}

Result<StageOutcome> StageTraining::Run(PlanService* service) {
  ZEUS_TRY(const pipeline::Schedule schedule,
           pipeline::MakeSchedule(
               "1f1b", {.stages = options_.stages, .microbatches = options_.microbatches}));
  schedule_ = schedule.stages[static_cast<std::size_t>(stage_)];
  StageOutcome outcome;
  ZEUS_RETURN_IF_ERROR(AcquireClock(service));
  ZEUS_RETURN_IF_ERROR(gpu_.BeginToWait());
  ZEUS_RETURN_IF_ERROR(Iterate());  // The first iteration warms up.
  ZEUS_TRY(outcome.baseline, Measure("baseline", options_.iterations));
  ZEUS_RETURN_IF_ERROR(Plan(outcome));
  ZEUS_RETURN_IF_ERROR(Iterate());
  ZEUS_TRY(outcome.planned, Measure("planned", options_.iterations));
  if (const auto straggler = ParseStraggler(options_))
    ZEUS_RETURN_IF_ERROR(Straggle(*straggler, outcome));
  optimizer_->OnTrainEnd();
  return outcome;
}

// --- an iteration ---

sim::StepWork StageTraining::InstructionWork(const std::string& instruction) const {
  const double share = stage_ == options_.stages - 1
                           ? options_.imbalance
                           : kOtherStages[static_cast<std::size_t>(stage_) % kOtherStages.size()];
  const double times = instruction == pipeline::kForward ? 1 : kBackward;
  return WorkFor(gpu_.model(), Seconds(options_.forward * times * share * slowdown_));
}

Status StageTraining::Receive(Channel* from) {
  if (from == nullptr) return Ok();
  double sent_at = 0;
  ZEUS_RETURN_IF_ERROR(from->Receive({&sent_at, 1}));
  gpu_.WaitUntil(Seconds(sent_at));
  return Ok();
}

Status StageTraining::Send(Channel* to) {
  if (to == nullptr) return Ok();
  const double now = gpu_.Now().count();
  return to->Send({&now, 1});
}

Status StageTraining::Perform(const pipeline::Instruction& instruction) {
  const bool forward = instruction.name == pipeline::kForward;
  Channel* const from = forward ? neighbours_.left.get() : neighbours_.right.get();
  Channel* const to = forward ? neighbours_.right.get() : neighbours_.left.get();
  ZEUS_RETURN_IF_ERROR(Receive(from));
  if (optimizes_) optimizer_->OnInstructionBegin(instruction.name);
  LetTheClockSettle();
  ZEUS_RETURN_IF_ERROR(gpu_.Compute(InstructionWork(instruction.name)));
  if (optimizes_) optimizer_->OnInstructionEnd(instruction.name);
  LetTheClockSettle();
  return Send(to);
}

// All stages meet here once per iteration, as real ones do to compute the norm of the gradients.
Status StageTraining::MeetAll() {
  double now = gpu_.Now().count();
  ZEUS_RETURN_IF_ERROR(collective_.Max({&now, 1}));
  gpu_.WaitUntil(Seconds(now));
  return Ok();
}

Status StageTraining::Iterate() {
  for (const pipeline::Instruction& instruction : schedule_)
    ZEUS_RETURN_IF_ERROR(Perform(instruction));
  ZEUS_RETURN_IF_ERROR(MeetAll());
  if (optimizes_) optimizer_->OnStepEnd();
  LetTheClockSettle();
  return Ok();
}

void StageTraining::LetTheClockSettle() {
  if (gpu_.virtual_time()) optimizer_->WaitForClock();
}

Result<IterationFigures> StageTraining::Measure(const std::string& window, int iterations) {
  EnergyMonitor& monitor = gpu_.monitor().monitor();
  ZEUS_RETURN_IF_ERROR(MeetAll());
  ZEUS_TRY(const WindowId id, monitor.BeginWindow(window));
  ZEUS_TRY(const Joules exact, gpu_.ExactEnergy());
  const Seconds begin = gpu_.Now();
  for (int i = 0; i < iterations; ++i) ZEUS_RETURN_IF_ERROR(Iterate());
  const Seconds time = gpu_.Now() - begin;
  ZEUS_TRY(const Joules exact_end, gpu_.ExactEnergy());
  ZEUS_RETURN_IF_ERROR(monitor.EndWindow(window));
  ZEUS_TRY(const Measurement measured, monitor.Refine(id));
  std::array sums = {measured.Sum().energy.value(), (exact_end - exact).value()};
  ZEUS_RETURN_IF_ERROR(collective_.Sum(sums));
  return IterationFigures{.time = time / iterations,
                          .energy = Joules(sums[0] / iterations),
                          .exact = Joules(sums[1] / iterations)};
}

// --- planning ---

// Locks the highest clock before the GPU is loaded. If another process already holds the clock of
// any stage's GPU, no stage changes anything.
Status StageTraining::AcquireClock(PlanService* service) {
  PipelineOptions options{
      .rank = {.pp_rank = stage_, .pp_degree = options_.stages},
      .collective = &collective_,
      .service = service,
      .job = {.schedule = "1f1b",
              .microbatches = options_.microbatches,
              .clock_changes = {.latency = Seconds(options_.clock_change / 1e3)},
              .slowdown = options_.slowdown}};
  optimizer_ = std::make_unique<PipelineFrequencyOptimizer>(gpu_.monitor(), std::move(options));
  optimizer_->WaitForClock();
  if (const auto trouble = optimizer_->trouble()) return *trouble;
  return MeetAll();
}

Status StageTraining::Plan(StageOutcome& outcome) {
  optimizes_ = true;
  for (int i = 0; optimizer_->plan() == nullptr; ++i) {
    if (const auto trouble = optimizer_->trouble()) return *trouble;
    if (i == kMostProfilingIterations)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("there is no plan after {} iterations", kMostProfilingIterations)};
    ZEUS_RETURN_IF_ERROR(Iterate());
  }
  outcome.plan = *optimizer_->plan();
  outcome.profiling_iterations = optimizer_->profiling_iterations();
  outcome.blocking_power = optimizer_->profile()->blocking_power;
  for (const auto& instruction : optimizer_->profile()->instructions)
    outcome.clocks = std::max(outcome.clocks, static_cast<int>(instruction.points.size()));
  return Ok();
}

Status StageTraining::Straggle(const Straggler& straggler, StageOutcome& outcome) {
  if (stage_ == straggler.stage) slowdown_ = straggler.slowdown;
  const std::int64_t version = optimizer_->plan()->version;
  StragglerFigures figures;
  for (int i = 1; i <= options_.iterations && figures.iterations_until_new_plan == 0; ++i) {
    ZEUS_TRY(const IterationFigures one, Measure("straggler", 1));
    if (i == 1) figures.before = one;
    if (optimizer_->plan()->version != version) figures.iterations_until_new_plan = i;
  }
  figures.pace = optimizer_->plan()->pace.value_or(Seconds(0));
  ZEUS_RETURN_IF_ERROR(Iterate());
  ZEUS_TRY(figures.after, Measure("straggler planned", options_.iterations));
  outcome.straggler = figures;
  return Ok();
}

}  // namespace zeus::examples
