#include "examples/training/example_model.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "examples/training/dataset.h"
#include "zeus/base/text.h"

namespace zeus::examples {
namespace {

constexpr CnnShape kCnn{.side = kImageSide, .channels = 8, .classes = kDigits};
constexpr TransformerShape kTransformer{.length = kSequenceLength,
                                        .tokens = kTokens,
                                        .width = 32,
                                        .heads = 4,
                                        .feed_forward = 64,
                                        .layers = 2,
                                        .classes = kLetters};

// So magnified a step of 64 samples takes a V100 0.6 s and 1.1 s.
constexpr std::array<ExampleModel, 2> kModels = {{
    {.name = "cnn",
     .target = 0.9,
     .on_gpu = {.width = 64, .length = 16},
     .recipe = {.training_samples = 2048, .validation_samples = 1024, .learning_rate = 2e-3},
     .make = [](const Recipe& recipe) { return MakeCnn(kCnn, recipe); },
     .forward = [](const Magnification& on_gpu,
                   double samples) { return ForwardWork(Magnify(kCnn, on_gpu), samples); }},
    {.name = "transformer",
     .target = 0.95,
     .on_gpu = {.width = 64, .length = 64},
     .recipe = {.training_samples = 2048, .validation_samples = 1024, .learning_rate = 3e-3},
     .make = [](const Recipe& recipe) { return MakeTransformer(kTransformer, recipe); },
     .forward = [](const Magnification& on_gpu,
                   double samples) { return ForwardWork(Magnify(kTransformer, on_gpu), samples); }},
}};

}  // namespace

std::span<const ExampleModel> ExampleModels() { return kModels; }

Result<const ExampleModel*> FindExampleModel(std::string_view name) {
  std::string known;
  for (const ExampleModel& model : kModels) {
    if (model.name == name) return &model;
    known.append(known.empty() ? "" : ", ").append(model.name);
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("unknown model {} (known: {})", Quote(name), known)};
}

}  // namespace zeus::examples
