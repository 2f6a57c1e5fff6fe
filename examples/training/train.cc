// Really trains a small network of torch on this CPU while simulated GPUs provide the time and
// power of its steps, and optimises their power limit.
#include "examples/training/blas_threads.h"
#include "examples/training/run.h"
#include "examples/training/torch_learner.h"

int main(int argc, char** argv) {
  using namespace zeus::examples;
  UseOneBlasThread();
  return RunProgram(
      {.name = "train", .models = {CnnModel(MakeTorchCnn), TransformerModel(MakeTorchTransformer)}},
      argc, argv);
}
