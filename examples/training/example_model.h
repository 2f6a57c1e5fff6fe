#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "examples/training/learner.h"
#include "examples/training/network.h"
#include "zeus/base/result.h"

namespace zeus::examples {

// A network that `--model` can choose.
struct ExampleModel {
  std::string_view name;
  std::string_view data;  // Kind of its samples, for --help.
  double target;          // Validation accuracy to reach; the default of --target.
  Magnification on_gpu;
  Recipe recipe;  // Defaults of the options.
  std::function<std::unique_ptr<Learner>(const Recipe& recipe)> make;
  sim::StepWork (*forward)(const Magnification& on_gpu, double samples);
};

// Makes a network of this shape with its data. Each program passes the function of its own library.
template <class Shape>
using MakeLearner = std::unique_ptr<Learner> (*)(const Shape& shape, const Recipe& recipe);

// Classifies digits in noisy images (dataset.h).
ExampleModel CnnModel(MakeLearner<CnnShape> make);
// Finds the letter that follows the marker in a sequence.
ExampleModel TransformerModel(MakeLearner<TransformerShape> make);

// kInvalidArgument lists the known names.
Result<const ExampleModel*> FindExampleModel(std::span<const ExampleModel> models,
                                             std::string_view name);

}  // namespace zeus::examples
