#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/training/example_model.h"
#include "examples/training/options.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/training_summary.h"

namespace zeus::examples {

// Reports to `zeus train` what every epoch used on the simulated GPUs, whose time differs from that
// of the machine, by appending a line of JSON to a file. Does nothing without a file. Not
// thread-safe.
class EpochReporter {
 public:
  // `optimizer` may be null.
  EpochReporter(std::string file, NodeMonitor& monitor, const GlobalPowerLimitOptimizer* optimizer)
      : file_(std::move(file)), monitor_(monitor), optimizer_(optimizer) {}

  // Must be called when training begins.
  Status Begin();

  struct Learned {
    int epoch;  // Counted from 1.
    double metric;
  };
  Status Epoch(const Learned& learned);

 private:
  std::string file_;
  NodeMonitor& monitor_;
  const GlobalPowerLimitOptimizer* optimizer_;
  Seconds time_{0};  // Time and energy until the end of the last epoch.
  Joules energy_{0};
  bool steady_ = false;  // Whether the knob did not change during the epoch.
};

// Properties of an epoch that TrainingLoop does not record.
struct LearnedEpoch {
  double loss;    // Mean over its steps.
  double metric;  // Validation accuracy after it.
  Watts limit;    // Power limit of the first GPU at the end of the epoch; likewise its clock.
  Hertz clock;
};

struct Outcome {
  std::string gpu;  // GPU model.
  double target = 0;
  std::vector<double> step_losses{};
  std::vector<LearnedEpoch> epochs{};
  TrainingSummary summary{};
  Watts max_power{0};

  // Results of the optimiser, empty if there was none.
  std::vector<Profile> profiles{};
  std::vector<Setting> chosen{};
  std::optional<Error> trouble{};
  std::vector<SavingsReport> savings{};  // One for each knob that was decided.

  double late_share = 0;  // GpuHost::late_share().
  int signal = 0;         // The signal that ended the training; 0: none.
};

// Trains, optimises, and prints a line for each epoch.
Result<Outcome> Train(const Options& options, const ExampleModel& model);

// A program that trains one of its models: train, train_digits.
struct Program {
  std::string name;
  std::vector<ExampleModel> models;  // The first is the default of --model.
};

// Reads the command line, trains, and prints the outcome. Returns the exit code.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace zeus::examples
