#include "examples/pipeline/options.h"

#include "apps/zeus/numbers.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::examples {
namespace {

constexpr int kMostStages = 16;
constexpr int kMostMicrobatches = 256;
constexpr int kMostIterations = 1000;
constexpr double kWorstSlowdown = 10;

std::optional<Straggler> ParseStraggler(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto stage = ParseInteger(std::string_view(text).substr(0, colon));
  const auto slowdown = ParseDouble(std::string_view(text).substr(colon + 1));
  if (!stage.ok() || !slowdown.ok()) return std::nullopt;
  const bool sensible = stage.value() >= 0 && stage.value() < kMostStages && slowdown.value() > 1 &&
                        slowdown.value() <= kWorstSlowdown;
  if (!sensible) return std::nullopt;
  return Straggler{.stage = static_cast<int>(stage.value()), .slowdown = slowdown.value()};
}

std::string CheckStraggler(const std::string& text) {
  if (ParseStraggler(text)) return "";
  return "STAGE:SLOWDOWN expected, as in 2:1.2, not " + Quote(text);
}

std::string CheckModel(const std::string& text) {
  const auto model = sim::FindGpuModel(text);
  if (!model.ok()) return model.error().message;
  if (sim::CanLockClocks(*model.value(), ClockDomain::kGraphics)) return "";
  return "a " + text + " cannot lock its clocks: choose a V100 or a later model";
}

}  // namespace

void AddOptions(cli::Verb app, RunOptions& options) {
  app.AddOption("--stages", options.stages, "Stages of the pipeline, one process and GPU each")
      .Check(cli::WholeNumberBetween(2, kMostStages));
  app.AddOption("--microbatches", options.microbatches, "Microbatches of an iteration")
      .Check(cli::WholeNumberBetween(1, kMostMicrobatches));
  app.AddOption("--gpu", options.gpu, "Model of the GPUs in virtual time: A100, A40, …")
      .Check({CheckModel});
  app.AddOption("--seed", options.seed, "Which specimens of it they are");
  app.AddOption("--node", options.node,
                "Use the GPUs of this simulated node (zeus sim start) instead, in its time");
  app.AddOption("--iterations", options.iterations, "So many are measured before and after")
      .Check(cli::WholeNumberBetween(1, kMostIterations));
  app.AddOption("--slowdown", options.slowdown,
                "How much longer than at the highest clock an iteration may take")
      .Check(cli::NumberBetween(1.0, 2.0));
  app.AddOption("--forward", options.forward,
                "Seconds of a forward on an average stage at the highest clock; backward: twice")
      .Check(cli::NumberBetween(0.01, 10.0));
  app.AddOption("--imbalance", options.imbalance,
                "How many times as long the last stage takes, which has the output layer")
      .Check(cli::NumberBetween(1.0, 3.0));
  app.AddOption("--clock-change", options.clock_change,
                "Milliseconds that a plan charges for a change of the clock")
      .Check(cli::NumberBetween(0.0, 1000.0));
  app.AddOption("--straggler", options.straggler,
                "STAGE:SLOWDOWN, as in 2:1.2: in the end this stage becomes so much slower")
      .Check({CheckStraggler});
  app.AddOption("--server", options.server, "URL of a zeus serve that makes the plans");
  app.AddFlag("--json", options.json, "Print the figures as JSON");
}

std::optional<Straggler> ParseStraggler(const RunOptions& options) {
  return ParseStraggler(options.straggler);
}

}  // namespace zeus::examples
