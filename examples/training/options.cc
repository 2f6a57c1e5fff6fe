#include "examples/training/options.h"

#include <fmt/format.h>

#include "apps/zeus/numbers.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::examples {
namespace {

constexpr unsigned kLargestBatch = 2048;
constexpr unsigned kMostGpus = 16;
constexpr std::uint64_t kLargestSeed = UINT64_MAX;
constexpr std::uint64_t kMostSamples = 1'000'000;
constexpr double kMostEpochs = 10'000;
constexpr double kLargestMagnification = 4096;

void AddModelOption(cli::Verb app, std::span<const ExampleModel> models, Options& options) {
  std::vector<std::string> names;
  std::string choice;
  for (const ExampleModel& model : models) {
    names.emplace_back(model.name);
    choice += fmt::format("{}{} ({})", choice.empty() ? "" : " or ", model.name, model.data);
  }
  options.model = names.front();
  app.AddOption("--model", options.model, "What to train: " + choice).Check(cli::OneOf(names));
}

void AddTrainingOptions(cli::Verb app, Options& options) {
  using cli::NumberBetween;
  using cli::WholeNumberBetween;
  app.AddOption("--batch-size", options.batch_size, "Samples of a step, over all GPUs")
      .Check(WholeNumberBetween(1, kLargestBatch));
  app.AddOption("--seed", options.seed, "Of the data, the weights, the order and the GPUs")
      .Check(WholeNumberBetween(0, kLargestSeed));
  app.AddOption("--max-epochs", options.max_epochs, "Give up after so many")
      .Check(WholeNumberBetween(1, static_cast<std::uint64_t>(kMostEpochs)));
  app.AddOption("--target", options.target, "Validation accuracy at which the training ends")
      .Check(NumberBetween(0, 1));
  app.AddOption("--lr", options.learning_rate, "Learning rate; by default what suits the model")
      .Check(NumberBetween(0, 1));
  app.AddOption("--samples", options.samples, "How many there are to train with")
      .Check(WholeNumberBetween(1, kMostSamples));
  app.AddOption("--report", options.report,
                "Append a line of JSON per epoch to this file, as zeus train --metric-file reads "
                "it");
  app.AddOption("--json", options.json, "Write everything into this file, too");
}

void AddGpuOptions(cli::Verb app, Options& options) {
  using cli::WholeNumberBetween;
  app.AddOption("--clock", options.clock,
                "virtual: GPUs of this process, as fast as the CPU trains; real: GPUs of a node "
                "that zeus sim started")
      .Check(cli::OneOf({"virtual", "real"}));
  app.AddOption("--gpu", options.gpu, "Model of the virtual GPUs: V100, A40, H100, …");
  app.AddOption("--gpu-seed", options.gpu_seed,
                "Which specimens of it they are; by default --seed decides that, too")
      .Check(WholeNumberBetween(0, kLargestSeed));
  app.AddOption("--gpus", options.gpus, "How many GPUs share a batch")
      .Check(WholeNumberBetween(1, kMostGpus));
  app.AddOption("--node", options.node,
                "Name of the node with --clock real; by default that of zeus sim env")
      .Check(cli::NotEmpty());
  app.AddOption("--step-cost", options.step_cost,
                "What a step costs on the GPU: flops (those of the model), or a workload of the "
                "catalogue: resnet50, bert_qa, …");
  app.AddOption("--gpu-width", options.gpu_width,
                "With --step-cost flops: the network on the GPU is so many times as wide")
      .Check(WholeNumberBetween(1, static_cast<std::uint64_t>(kLargestMagnification)));
  app.AddOption("--gpu-length", options.gpu_length,
                "With --step-cost flops: its images or sequences are so many times as long")
      .Check(WholeNumberBetween(1, static_cast<std::uint64_t>(kLargestMagnification)));
}

void AddOptimizerOptions(cli::Verb app, Options& options) {
  using cli::NumberBetween;
  app.AddOption("--eta", options.eta, "What counts: 0 is time, 1 is energy")
      .Check(NumberBetween(0, 1));
  app.AddOption("--knob", options.knob, "What to optimise: power-limit, clock, both or none")
      .Check(cli::OneOf({"power-limit", "clock", "both", "none"}));
  app.AddOption("--profiles", options.profiles,
                "Folder in which what was measured at each setting is kept for the next training "
                "with this batch size")
      .Check(cli::NotEmpty());
  app.AddFlag("--observe", options.observe,
              "Leave the knob alone in the end and say what the optimum would have saved");
  app.AddOption("--slice-seconds", options.slice_seconds, "How long a setting is tried at most")
      .Check(NumberBetween(0.1, 3600));
}

}  // namespace

void AddOptions(cli::Verb app, std::span<const ExampleModel> models, Options& options) {
  AddModelOption(app, models, options);
  AddTrainingOptions(app, options);
  AddGpuOptions(app, options);
  AddOptimizerOptions(app, options);
}

Status Check(const Options& options) {
  const auto wrong = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  if (options.batch_size % options.gpus != 0)
    return wrong(fmt::format("--batch-size {} cannot be split evenly over {} GPUs",
                             options.batch_size, options.gpus));
  if (options.clock == "virtual" && !options.node.empty())
    return wrong("--node belongs to --clock real: virtual GPUs are of this process");
  if (options.step_cost != "flops" && (options.gpu_width || options.gpu_length))
    return wrong("--gpu-width and --gpu-length belong to --step-cost flops");
  if (options.observe && options.knob == "none")
    return wrong("--observe needs something to observe: a --knob other than none");
  return Ok();
}

Recipe MakeRecipe(const Options& options, const ExampleModel& model) {
  Recipe recipe = model.recipe;
  recipe.seed = options.seed;
  recipe.learning_rate = options.learning_rate.value_or(recipe.learning_rate);
  recipe.training_samples = options.samples.value_or(recipe.training_samples);
  return recipe;
}

std::vector<KnobKind> SelectKnobs(const Options& options) {
  // `zeus train --baseline` sets the variable to get an undisturbed run for comparison.
  const bool baseline = std::getenv("ZEUS_BASELINE") != nullptr;
  if (options.knob == "none" || baseline) return {};
  if (options.knob == "clock") return {KnobKind::kGraphicsClock};
  if (options.knob == "both") return {KnobKind::kGpuPowerLimit, KnobKind::kGraphicsClock};
  return {KnobKind::kGpuPowerLimit};
}

Result<std::unique_ptr<GpuHost>> OpenGpus(const Options& options) {
  if (options.clock == "virtual") {
    ZEUS_TRY(const sim::GpuModel* const model, sim::FindGpuModel(options.gpu));
    return OpenVirtualGpus(
        {.model = model, .count = options.gpus, .seed = options.gpu_seed.value_or(options.seed)});
  }
  return OpenSharedGpus(options.node.empty() ? sim::ChosenNodeName() : options.node, options.gpus);
}

Result<sim::LoadSpec> MakeLoad(const Options& options, const ExampleModel& model) {
  const unsigned part = options.batch_size / options.gpus;
  sim::LoadSpec load;
  if (options.step_cost == "flops") {
    const Magnification on_gpu{.width = options.gpu_width.value_or(model.on_gpu.width),
                               .length = options.gpu_length.value_or(model.on_gpu.length)};
    load.work = model.forward(on_gpu, part) * kStepPerForward;
    return load;
  }
  ZEUS_TRY(load.workload, sim::FindWorkload(options.step_cost));
  load.batch_size = part;
  return load;
}

}  // namespace zeus::examples
