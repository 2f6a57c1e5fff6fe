#pragma once

#include "zeus/device/sim/step_work.h"

namespace zeus::examples {

// The shapes of the networks: learners build them, and the cost of a step on a GPU follows from
// them.

// Two 3x3 convolutions, each with a pooling that halves the image, and one linear layer.
struct CnnShape {
  int side;
  int channels;  // Channels of the first convolution; the second has twice as many.
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

// Factors by which the network on the GPU is larger than the one that this CPU trains: in width
// (channels, embeddings) and length (side of the image, length of the sequence).
struct Magnification {
  int width = 1;
  int length = 1;
};
CnnShape Magnify(const CnnShape& shape, const Magnification& by);
TransformerShape Magnify(const TransformerShape& shape, const Magnification& by);

// Returns the work of the forward pass over `samples` samples in half precision: every layer reads
// its weights and its input once and writes its output.
sim::StepWork ForwardWork(const CnnShape& shape, double samples);
sim::StepWork ForwardWork(const TransformerShape& shape, double samples);

// A step takes three times the forward pass: it also computes gradients by inputs and by weights.
inline constexpr double kStepPerForward = 3;

}  // namespace zeus::examples
