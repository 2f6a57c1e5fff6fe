#pragma once

#include <functional>
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
  std::string_view data;  // Kind of its samples, for --help.
  double target;          // Validation accuracy to reach, unless the user wants another.
  Magnification on_gpu;
  Recipe recipe;  // Unless the user wants another.
  std::function<std::unique_ptr<Learner>(const Recipe& recipe)> make;
  sim::StepWork (*forward)(const Magnification& on_gpu, double samples);
};

// Makes a network of this shape with its data. Each program brings its own library for that.
template <class Shape>
using MakeLearner = std::unique_ptr<Learner> (*)(const Shape& shape, const Recipe& recipe);

// Tells digits apart in noisy images (dataset.h).
ExampleModel CnnModel(MakeLearner<CnnShape> make);
// Finds the letter that follows the marker in a sequence.
ExampleModel TransformerModel(MakeLearner<TransformerShape> make);

// kInvalidArgument lists the known names.
Result<const ExampleModel*> FindExampleModel(std::span<const ExampleModel> models,
                                             std::string_view name);

}  // namespace zeus::examples
