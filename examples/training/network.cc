#include "examples/training/network.h"

namespace zeus::examples {
namespace {

constexpr double kBytesPerNumber = 2;

// A product of a (rows x inner) with an (inner x columns) matrix of weights, per sample.
sim::StepWork Product(double samples, double rows, double inner, double columns) {
  return {.operations = 2 * samples * rows * inner * columns,
          .bytes = kBytesPerNumber * (samples * rows * (inner + columns) + inner * columns)};
}

// Reads and writes so many numbers per sample, with one operation for each.
sim::StepWork Elementwise(double samples, double numbers) {
  return {.operations = samples * numbers, .bytes = kBytesPerNumber * 2 * samples * numbers};
}

// A convolution with a 3x3 kernel, its activation, and a pooling by 2x2. The input is read once:
// neighbouring pixels share it.
sim::StepWork Convolution(double samples, double side, double in, double out) {
  constexpr double kKernel = 9;
  const double pixels = side * side;
  const sim::StepWork product{
      .operations = 2 * samples * pixels * kKernel * in * out,
      .bytes = kBytesPerNumber * (samples * pixels * (in + out) + kKernel * in * out)};
  return product + Elementwise(samples, pixels * out);
}

// Queries, keys, values and the output; scores of every pair of positions and their softmax; two
// layers of the feed-forward network; two normalisations.
sim::StepWork EncoderLayer(const TransformerShape& shape, double samples) {
  const double length = shape.length;
  const double width = shape.width;
  const double pairs = length * length;
  const sim::StepWork attention{
      .operations = 2 * 2 * samples * pairs * width,
      .bytes = kBytesPerNumber * samples * (4 * length * width + 2 * pairs * shape.heads)};
  return Product(samples, length, width, 4 * width) + attention +
         Elementwise(samples, pairs * shape.heads) +
         Product(samples, length, width, shape.feed_forward) +
         Product(samples, length, shape.feed_forward, width) +
         Elementwise(samples, 2 * length * width);
}

}  // namespace

CnnShape Magnify(const CnnShape& shape, const Magnification& by) {
  return {.side = shape.side * by.length,
          .channels = shape.channels * by.width,
          .classes = shape.classes};
}

TransformerShape Magnify(const TransformerShape& shape, const Magnification& by) {
  TransformerShape larger = shape;
  larger.length *= by.length;
  larger.width *= by.width;
  larger.heads *= by.width;
  larger.feed_forward *= by.width;
  return larger;
}

sim::StepWork ForwardWork(const CnnShape& shape, double samples) {
  const double side = shape.side;
  const double channels = shape.channels;
  const double features = side / 4 * side / 4 * 2 * channels;
  return Convolution(samples, side, 1, channels) +
         Convolution(samples, side / 2, channels, 2 * channels) +
         Product(samples, 1, features, shape.classes);
}

sim::StepWork ForwardWork(const TransformerShape& shape, double samples) {
  return Elementwise(samples, static_cast<double>(shape.length) * shape.width) +
         EncoderLayer(shape, samples) * shape.layers +
         Product(samples, 1, shape.width, shape.classes);
}

}  // namespace zeus::examples
