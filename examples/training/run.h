#pragma once

#include <optional>
#include <string>
#include <vector>

#include "examples/training/options.h"
#include "zeus/base/result.h"
#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/training_summary.h"

namespace zeus::examples {

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

}  // namespace zeus::examples
