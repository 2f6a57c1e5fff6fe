// Trains a pipeline of several processes on simulated GPUs: profiles it while it trains, plans a
// clock for each instruction, and shows how much energy that saves.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "apps/zeus/command_line.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "examples/pipeline/launch.h"
#include "examples/pipeline/options.h"
#include "examples/pipeline/report.h"
#include "examples/pipeline/stage_gpu.h"
#include "examples/pipeline/stage_training.h"
#include "zeus/base/json.h"
#include "zeus/client/remote_plan_service.h"
#include "zeus/device/sim/node_directory.h"
#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/plan_repository.h"

namespace zeus::examples {
namespace {

Result<std::unique_ptr<StageGpu>> OpenGpu(const RunOptions& options, int stage) {
  const auto index = static_cast<unsigned>(stage);
  if (!options.node.empty()) return OpenNodeGpu(options.node, index);
  ZEUS_TRY(const sim::GpuModel* const model, sim::FindGpuModel(options.gpu));
  return OpenVirtualGpu(*model, index, options.seed);
}

Result<double> TimeScale(const RunOptions& options) {
  if (options.node.empty()) return 1.0;
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(const sim::SharedNode node, directory.Open(options.node, sim::Access::kRead));
  return node.time_scale();
}

Status Report(const StageOutcome& outcome, const RunOptions& options) {
  ZEUS_TRY(const double time_scale, TimeScale(options));
  const std::string text = options.json ? JsonText(ToJson(outcome, options), 2) + "\n"
                                        : ToText(outcome, options, time_scale);
  std::fputs(text.c_str(), stdout);
  return cli::FlushOutput();
}

Status RunStage(const RunOptions& options, StageLinks links) {
  ZEUS_TRY(const auto gpu, OpenGpu(options, links.stage));
  SystemClock clock;
  MemoryPlanRepository repository;
  LocalPlanService local(repository, clock);
  std::unique_ptr<RemotePlanService> remote;
  if (links.stage == 0 && !options.server.empty()) {
    ZEUS_TRY(remote, RemotePlanService::Connect(
                         RemotePlanService::OptionsForSolving(options.server), clock));
  }
  PlanService* const service = remote ? static_cast<PlanService*>(remote.get()) : &local;
  const bool first = links.stage == 0;
  StageTraining training(options, links.stage, std::move(links.neighbours), *links.collective,
                         *gpu);
  ZEUS_TRY(const StageOutcome outcome, training.Run(first ? service : nullptr));
  return first ? Report(outcome, options) : Ok();
}

Result<int> Perform(const RunOptions& options) {
  if (const auto straggler = ParseStraggler(options);
      straggler && straggler->stage >= options.stages)
    return Error{ErrorCode::kInvalidArgument,
                 "--straggler: the pipeline has no stage " + std::to_string(straggler->stage)};
  return RunStages(options.stages, [&options](StageLinks links) {
    const std::string who = "train_pipeline, stage " + std::to_string(links.stage);
    const Status trained = RunStage(options, std::move(links));
    if (trained.ok()) return 0;
    cli::Complain(who, trained.error());
    return cli::ExitCode(trained.error().code);
  });
}

int Main(int argc, char** argv) {
  cli::CommandLine line("train_pipeline",
                        "Trains a pipeline on simulated GPUs and plans its clocks meanwhile.");
  RunOptions options;
  AddOptions(line.program(), options);
  return line.Run(argc, argv, [&options] { return Perform(options); });
}

}  // namespace
}  // namespace zeus::examples

int main(int argc, char** argv) { return zeus::examples::Main(argc, argv); }
