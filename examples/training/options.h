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

// The command line, as it was written.
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

// The rest is checked here: kInvalidArgument says what does not fit together.
Status Check(const Options& options);

// How the network is trained.
Recipe RecipeOf(const Options& options, const ExampleModel& model);

// The knobs to optimise, in order; none with --knob none.
std::vector<KnobKind> KnobsOf(const Options& options);

Result<std::unique_ptr<GpuHost>> OpenGpus(const Options& options);

// What every GPU runs: its part of a batch, step after step.
Result<sim::LoadSpec> LoadOf(const Options& options, const ExampleModel& model);

}  // namespace zeus::examples
