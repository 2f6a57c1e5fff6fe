// Trains a small network for real on this CPU, with the time and power of its steps coming from
// simulated GPUs, and optimises their power limit meanwhile. The networks are torch's.
#include "examples/training/blas_threads.h"
#include "examples/training/program.h"
#include "examples/training/torch_learner.h"

int main(int argc, char** argv) {
  using namespace zeus::examples;
  UseOneBlasThread();
  return RunProgram(
      {.name = "train", .models = {CnnModel(MakeTorchCnn), TransformerModel(MakeTorchTransformer)}},
      argc, argv);
}
