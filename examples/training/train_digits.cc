// Does the same as train.cc with the CNN only and without torch. The demo trains it.
#include "examples/training/native_learner.h"
#include "examples/training/run.h"

int main(int argc, char** argv) {
  using namespace zeus::examples;
  return RunProgram({.name = "train_digits", .models = {CnnModel(MakeNativeCnn)}}, argc, argv);
}
