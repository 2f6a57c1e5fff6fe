#pragma once

#include "zeus/device/sim/step_work.h"

namespace zeus::examples {

// The shapes of the layers: what the learners build, and what a step costs on a GPU.

// Two convolutions 3x3, each with a pooling that halves the image, and one linear layer.
struct CnnShape {
  int side;
  int channels;  // Of the first convolution; the second has twice as many.
  int classes;
};

// Encoder layers over learned embeddings of tokens and positions; the mean of all positions goes
// into one linear layer.
struct TransformerShape {
  int length;
  int tokens;
  int width;
  int heads;
  int feed_forward;
  int layers;
  int classes;
};

// How much larger the network on the GPU is than the one that this CPU trains: so many times as
// wide (channels, width of embeddings) and long (side of the image, length of the sequence).
struct Magnification {
  int width = 1;
  int length = 1;
};
CnnShape Magnify(const CnnShape& shape, const Magnification& by);
TransformerShape Magnify(const TransformerShape& shape, const Magnification& by);

// Of the forward pass over so many samples, in half precision: every layer reads its weights once
// and its input, and writes its output.
sim::StepWork ForwardWork(const CnnShape& shape, double samples);
sim::StepWork ForwardWork(const TransformerShape& shape, double samples);

// A step computes gradients by inputs and by weights too: three times the forward pass.
inline constexpr double kStepPerForward = 3;

}  // namespace zeus::examples
