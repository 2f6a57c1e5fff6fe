// A recurring job that asks which batch size to use, finds its power limit, and reports the outcome
// for the next recurrence. GPU and time are simulated; a RemoteJobService would ask a `zeus serve`
// instead.
#include <fmt/format.h>

#include <ranges>

#include "zeus/base/stepped_clock.h"
#include "zeus/client/batch_size_client.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/training/training_loop.h"

static zeus::Status Run() {
  zeus::SteppedClock clock;
  ZEUS_TRY(const auto* model, zeus::sim::FindGpuModel("V100"));
  ZEUS_TRY(const auto* workload, zeus::sim::FindWorkload("shufflenet"));
  auto owned = std::make_unique<zeus::sim::SimulatedGpu>(clock, *model);
  zeus::sim::SimulatedGpu& gpu = *owned;
  zeus::Node node;
  node.gpus.push_back(std::move(owned));
  ZEUS_TRY(const auto monitor,
           zeus::NodeMonitor::Open(clock, std::move(node), {.thread = false, .share = false}));
  clock.Run([&] { return monitor->monitor().Step(); });
  zeus::MemoryRepository repository;
  zeus::LocalJobService service(repository, clock);
  zeus::JobSpec job{.id = "shufflenet", .batch_sizes = {128, 256, 512, 1024, 2048}};
  job.default_batch_size = 1024;
  job.target_metric = 1;

  for (int recurrence = 0; recurrence < 12; ++recurrence) {
    ZEUS_TRY(const auto client,
             zeus::BatchSizeClient::Begin(
                 &service, *monitor, {.job = job, .thread = zeus::TrialReporter::Thread::kNone}));
    const auto batch_size = static_cast<unsigned>(client->batch_size());
    ZEUS_TRY(const auto work, gpu.AttachLoad({.workload = workload, .batch_size = batch_size}));
    zeus::GlobalPowerLimitOptimizer optimizer(*monitor);
    client->Observe(optimizer);
    zeus::TrainingLoop loop(*monitor, {.callbacks = {&optimizer, client.get()}});
    // Ends at the target or when the cost exceeds the bound.
    for (const int epoch : loop.Epochs()) {
      for ([[maybe_unused]] const auto batch :
           loop.Batches(std::views::iota(0U, StepsPerEpoch(*workload, batch_size))))
        clock.SleepFor(gpu.StepTime(work).value());
      loop.ReportMetric((epoch + 1) / *MeanEpochsToTarget(*workload, batch_size));
    }
    const zeus::TrainingAmounts used = loop.Summary().amounts;
    fmt::print("batch size {:>4}: {:>6.0f} s, {:>7.0f} J, {}\n", batch_size, used.time.count(),
               used.energy.value(), client->message());
    gpu.DetachLoad(work);
  }
  return zeus::Ok();
}

int main() {
  const zeus::Status status = Run();
  if (!status.ok()) fmt::print(stderr, "recurring_job: {}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
