#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"
#include "examples/training/example_model.h"
#include "examples/training/gpu_host.h"
#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/device/sim/load.h"

namespace zeus::examples {

// The options of the command line, unchecked.
struct Options {
  std::string model;
  unsigned batch_size = 64;
  std::uint64_t seed = 1;
  int max_epochs = 60;
  std::optional<double> target;
  std::optional<double> learning_rate;
  std::optional<std::size_t> samples;
  std::string report;
  std::string profiles;

  std::string clock = "virtual";
  std::string gpu = "V100";
  std::optional<std::uint64_t> gpu_seed;
  unsigned gpus = 1;
  std::string node;
  std::string step_cost = "flops";
  std::optional<int> gpu_width;
  std::optional<int> gpu_length;

  double eta = 0.5;
  std::string knob = "power-limit";
  bool observe = false;
  double slice_seconds = 5;
  std::string json;
};

// --model chooses from `models`; the first is the default.
void AddOptions(cli::Verb app, std::span<const ExampleModel> models, Options& options);

// Checks what the parser cannot. kInvalidArgument names the options that do not fit together.
Status Check(const Options& options);

// Returns the training settings: the model's, changed by the options.
Recipe MakeRecipe(const Options& options, const ExampleModel& model);

// Returns the knobs to optimise, in order; none with --knob none.
std::vector<KnobKind> SelectKnobs(const Options& options);

Result<std::unique_ptr<GpuHost>> OpenGpus(const Options& options);

// Returns the load of every GPU: its part of a batch, step after step.
Result<sim::LoadSpec> MakeLoad(const Options& options, const ExampleModel& model);

}  // namespace zeus::examples
