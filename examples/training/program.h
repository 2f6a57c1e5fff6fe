#pragma once

#include <string>
#include <vector>

#include "examples/training/example_model.h"

namespace zeus::examples {

// A program that trains one of its models: train, train_digits.
struct Program {
  std::string name;
  std::vector<ExampleModel> models;  // The first is the default of --model.
};

// Reads the command line, trains, and prints the outcome. Returns the exit code.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace zeus::examples
