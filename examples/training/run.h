#pragma once

#include <optional>
#include <string>
#include <vector>

#include "examples/training/options.h"
#include "zeus/base/result.h"
#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/training_summary.h"

namespace zeus::examples {

// What is known of an epoch beyond what the loop records.
struct LearnedEpoch {
  double loss;    // Mean over its steps.
  double metric;  // Validation accuracy after it.
  Watts limit;    // Of the first GPU, at its end.
  Hertz clock;
};

struct Outcome {
  std::string gpu;  // Model.
  double target = 0;
  std::vector<double> step_losses{};
  std::vector<LearnedEpoch> epochs{};
  TrainingSummary summary{};
  Watts max_power{0};

  // Of the optimiser, if there was one.
  std::vector<Profile> profiles{};
  std::vector<Setting> chosen{};
  std::optional<Error> trouble{};
  std::vector<SavingsReport> savings{};  // Of each knob that was decided on.

  double late_share = 0;  // GpuHost::late_share().
  int signal = 0;         // That ended it; 0 if none did.
};

// Trains, optimises, and prints a line for each epoch.
Result<Outcome> Train(const Options& options, const ExampleModel& model);

}  // namespace zeus::examples
