#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apps/zeus/llm/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/device/sim/inference/model.h"
#include "zeus/device/sim/inference/physics.h"
#include "zeus/device/sim/node_layout.h"

namespace zeus::cli {
namespace {

constexpr double kMostParameters = 1e15;
constexpr double kMostTokens = 1e9;

struct PredictOptions {
  std::string gpu;
  unsigned gpus = 1;
  std::string model;
  unsigned layers = 0;
  unsigned kv_heads = 0;
  unsigned head_dim = 0;
  double width = 0;
  double parameters = 0;
  double weight_bytes = 0;
  std::optional<double> active_parameters;
  unsigned experts = 0;
  unsigned experts_used = 0;
  unsigned expert_layers = 0;
  std::string scales;
  unsigned windowed_layers = 0;
  double window = 0;
  double batch = 0;
  double context = 0;
  double prompt = 0;
  std::optional<double> power_limit;
  std::optional<double> clock;  // MHz
  bool json = false;
};

sim::WeightScales ScalesOf(std::string_view name) {
  if (name == "block") return sim::WeightScales::kPerBlock;
  return name == "channel" ? sim::WeightScales::kPerChannel : sim::WeightScales::kUsual;
}

Result<sim::LanguageModel> ChooseModel(const PredictOptions& options) {
  const bool described = options.layers != 0 || options.kv_heads != 0 || options.head_dim != 0 ||
                         options.parameters != 0 || options.weight_bytes != 0 ||
                         options.expert_layers != 0 || options.windowed_layers != 0 ||
                         options.window != 0 || !options.scales.empty();
  if (!options.model.empty()) {
    if (described)
      return InvalidArgument("--model names a model: leave out the options that describe one");
    ZEUS_TRY(const sim::LanguageModel* const model, sim::FindLanguageModel(options.model));
    return *model;
  }
  if (options.layers == 0 || options.kv_heads == 0 || options.head_dim == 0 ||
      options.parameters == 0 || options.weight_bytes == 0)
    return InvalidArgument(
        "say which model: --model NAME, or --layers, --kv-heads, --head-dim, --parameters and "
        "--weight-bytes");
  return sim::LanguageModel{
      .name = "custom",
      .layers = options.layers,
      .kv_heads = options.kv_heads,
      .head_dim = options.head_dim,
      .width = options.width,
      .parameters = options.parameters,
      .active_parameters = options.active_parameters.value_or(options.parameters),
      .experts = options.experts,
      .experts_used = options.experts_used,
      .weight_bytes = options.weight_bytes,
      .expert_layers = options.expert_layers,
      .windowed_layers = options.windowed_layers,
      .window = options.window,
      .scales = ScalesOf(options.scales)};
}

// An iteration, and the parts of its energy, of all GPUs together.
struct Prediction {
  Seconds time;
  Joules energy;
  Hertz clock;
  Joules fixed;
  Joules sequences;
  Joules contexts;
  Joules prompt;
};

Result<Prediction> Predict(const PredictOptions& options) {
  ZEUS_TRY(const sim::GpuModel* const gpu, sim::FindGpuModel(options.gpu));
  ZEUS_TRY(const sim::LanguageModel model, ChooseModel(options));
  ZEUS_RETURN_IF_ERROR(sim::CheckLanguageModel(model));
  sim::KnobSettings knobs{.power_limit = gpu->default_limit, .clock_cap = std::nullopt};
  if (options.power_limit) knobs.power_limit = Watts(*options.power_limit);
  if (options.clock) knobs.clock_cap = Hertz::FromMega(*options.clock);

  const sim::IterationParts parts(model, options.gpus);
  const sim::IterationWork fixed = parts.Fixed() + parts.Experts(options.batch + options.prompt);
  const sim::IterationWork sequences = parts.Decode(options.batch, 0);
  const sim::IterationWork contexts =
      parts.Decode(0, options.batch * model.SeenContext(options.context));
  const sim::IterationWork prompt = parts.Prompt({.start = 0, .tokens = options.prompt});
  ZEUS_TRY(const sim::OperatingPoint point,
           sim::PredictIteration(*gpu, fixed + sequences + contexts + prompt, knobs));
  const sim::IterationLaw law(*gpu, point.graphics_clock);
  const auto cost = [&](const sim::IterationWork& work) {
    return law.Cost(work).energy * options.gpus;
  };
  return Prediction{.time = point.time_per_epoch,
                    .energy = point.average_power * point.time_per_epoch * options.gpus,
                    .clock = point.graphics_clock,
                    .fixed = cost(fixed),
                    .sequences = cost(sequences),
                    .contexts = cost(contexts),
                    .prompt = cost(prompt)};
}

Result<int> PrintPrediction(const PredictOptions& options) {
  ZEUS_TRY(const Prediction iteration, Predict(options));
  const Watts power = iteration.energy / iteration.time;
  if (options.json) {
    PrintJson({{"iteration_seconds", iteration.time.count()},
               {"iteration_joules", iteration.energy.value()},
               {"power_watts", power.value()},
               {"clock_hertz", iteration.clock.value()},
               {"tokens_per_second", options.batch / iteration.time.count()},
               {"joules_per_token", FiniteOrNull(iteration.energy.value() / options.batch)},
               {"fixed_joules", iteration.fixed.value()},
               {"sequence_joules", iteration.sequences.value()},
               {"context_joules", iteration.contexts.value()},
               {"prompt_joules", iteration.prompt.value()}});
    return 0;
  }
  fmt::print("one iteration: {}, {}, {} at {:.0f} MHz\n", NumberText(iteration.time.count(), "s"),
             EnergyText(iteration.energy), PowerText(power), iteration.clock.ToMega());
  fmt::print("its energy: weights {}, sequences {}, contexts {}, prompts {}\n",
             EnergyText(iteration.fixed), EnergyText(iteration.sequences),
             EnergyText(iteration.contexts), EnergyText(iteration.prompt));
  if (options.batch > 0)
    fmt::print("output: {:.0f} tokens/s, {} per token\n", options.batch / iteration.time.count(),
               EnergyText(iteration.energy / options.batch));
  return 0;
}

void AddModelOptions(Verb command, PredictOptions& options) {
  command.AddOption("--model", options.model, "A model of the catalogue: llama-3.1-8b, …");
  command.AddOption("--layers", options.layers, "Layers of a model that is in no catalogue")
      .Check(WholeNumberBetween(1, 100'000));
  command.AddOption("--kv-heads", options.kv_heads, "Its key-value heads")
      .Check(WholeNumberBetween(1, 100'000));
  command.AddOption("--head-dim", options.head_dim, "Its head dimension")
      .Check(WholeNumberBetween(1, 100'000));
  command.AddOption("--width", options.width, "Query heads times head dimension (estimated)")
      .Check(NumberBetween(0, 1e9));
  command.AddOption("--parameters", options.parameters, "All its parameters, like 8.03e9")
      .Check(NumberBetween(1, kMostParameters));
  command.AddOption("--weight-bytes", options.weight_bytes, "Memory of all weights, in bytes")
      .Check(NumberBetween(1, kMostParameters));
  command
      .AddOption("--active-parameters", options.active_parameters,
                 "Parameters that work on one token (all)")
      .Check(NumberBetween(1, kMostParameters));
  command.AddOption("--experts", options.experts, "Experts per layer of a mixture of experts")
      .Check(WholeNumberBetween(2, 1'000'000));
  command.AddOption("--experts-used", options.experts_used, "Experts that work on one token")
      .Check(WholeNumberBetween(1, 1'000'000));
  command
      .AddOption("--expert-layers", options.expert_layers, "Layers that have experts (estimated)")
      .Check(WholeNumberBetween(1, 100'000));
  command
      .AddOption("--weight-scales", options.scales,
                 "Experts in 8 bits: a scale per block, or per channel (block, with one expert per "
                 "token channel)")
      .Check(OneOf({"block", "channel"}));
  command
      .AddOption("--windowed-layers", options.windowed_layers,
                 "Layers whose attention looks at the last tokens only (none)")
      .Check(WholeNumberBetween(1, 100'000));
  command.AddOption("--window", options.window, "Tokens that attention looks at in those layers")
      .Check(NumberBetween(1, kMostTokens));
}

}  // namespace

void AddLlmPredict(Verb llm, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  const Verb command =
      llm.AddVerb("predict", "Print time and energy of one iteration of an inference engine");
  command.AddOption("--gpu", options->gpu, "Model of the GPU: H100, A100, …").Required();
  command.AddOption("--gpus", options->gpus, "GPUs that share the model")
      .Check(WholeNumberBetween(1, sim::kMaxGpusPerNode))
      .ShowDefault();
  AddModelOptions(command, *options);
  command.AddOption("--batch", options->batch, "Sequences that decode one token each")
      .Required()
      .Check(NumberBetween(0, kMostTokens));
  command.AddOption("--context", options->context, "Tokens of context of each sequence, on average")
      .Required()
      .Check(NumberBetween(0, kMostTokens));
  command
      .AddOption("--prompt-tokens", options->prompt, "Prompt tokens that the iteration processes")
      .Check(NumberBetween(0, kMostTokens))
      .ShowDefault();
  command.AddOption("--power-limit", options->power_limit, "Watts per GPU (the default limit)")
      .Check(NumberBetween(1, 100'000));
  command.AddOption("--clock", options->clock, "Highest graphics clock in MHz (not locked)")
      .Check(NumberBetween(1, 100'000));
  command.AddFlag("--json", options->json, "Print JSON instead of text");
  command.OnChosen(
      [options, &action] { action = [options] { return PrintPrediction(*options); }; });
}

}  // namespace zeus::cli
