#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/zeus/numbers.h"
#include "apps/zeus/sim/commands.h"
#include "zeus/base/json.h"
#include "zeus/device/sim/load.h"
#include "zeus/device/sim/workload.h"

namespace zeus::cli {
namespace {

constexpr double kMaxMegahertz = 100'000;

struct PredictOptions {
  std::string gpu;
  std::string workload;
  unsigned batch_size = 0;
  std::optional<double> power_limit;
  std::optional<double> clock;  // MHz
  bool json = false;
};

Result<int> PrintPrediction(const PredictOptions& options) {
  ZEUS_TRY(const sim::GpuModel* model, sim::FindGpuModel(options.gpu));
  ZEUS_TRY(const sim::Workload* workload, sim::FindWorkload(options.workload));
  sim::KnobSettings knobs{.power_limit = model->default_limit, .clock_cap = std::nullopt};
  if (options.power_limit) knobs.power_limit = Watts(*options.power_limit);
  if (options.clock) knobs.clock_cap = Hertz::FromMega(*options.clock);
  ZEUS_TRY(const sim::OperatingPoint point,
           sim::Predict(*model, *workload, options.batch_size, knobs));
  const auto epochs = sim::MeanEpochsToTarget(*workload, options.batch_size);
  if (options.json) {
    PrintJson({{"time_per_epoch_seconds", point.time_per_epoch.count()},
               {"average_power_watts", point.average_power.value()},
               {"epochs_to_target_mean", epochs ? Json(*epochs) : Json()}});
    return 0;
  }
  fmt::print("{} on {}, batch size {}, {:g} W: {:.1f} s per epoch, {:.1f} W on average, {}\n",
             workload->name, model->id, options.batch_size, knobs.power_limit.value(),
             point.time_per_epoch.count(), point.average_power.value(),
             epochs ? fmt::format("{:.1f} epochs to the target", *epochs)
                    : std::string("never reaches the target"));
  return 0;
}

}  // namespace

void AddSimPredict(Verb sim, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  const Verb command =
      sim.AddVerb("predict", "Print the prediction of the workload catalogue for a job on a GPU");
  command.AddOption("--gpu", options->gpu, "Model of the GPU: V100, A40, …").Required();
  command.AddOption("--workload", options->workload, "deepspeech2, bert_qa, …").Required();
  AddBatchSizeOption(command, options->batch_size).Required();
  command.AddOption("--power-limit", options->power_limit, "Watts (the model's default limit)")
      .Check(NumberBetween(1, sim::kMaxDemand.value()));
  command.AddOption("--clock", options->clock, "Highest graphics clock in MHz (not locked)")
      .Check(NumberBetween(1, kMaxMegahertz));
  AddJsonFlag(command, options->json);
  command.OnChosen(
      [options, &action] { action = [options] { return PrintPrediction(*options); }; });
}

}  // namespace zeus::cli
