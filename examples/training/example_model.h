#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "examples/training/learner.h"
#include "examples/training/network.h"
#include "zeus/base/result.h"

namespace zeus::examples {

// What `--model` chooses from.
struct ExampleModel {
  std::string_view name;
  double target;  // Of the validation accuracy, unless the user wants another.
  Magnification on_gpu;
  Recipe recipe;  // Unless the user wants another.
  std::unique_ptr<Learner> (*make)(const Recipe& recipe);
  sim::StepWork (*forward)(const Magnification& on_gpu, double samples);
};

std::span<const ExampleModel> ExampleModels();

// kInvalidArgument lists the known names.
Result<const ExampleModel*> FindExampleModel(std::string_view name);

}  // namespace zeus::examples
