#pragma once

#include <span>

#include "zeus/base/result.h"

namespace zeus {

// The processes (ranks) that train one model together. Every process makes the same calls in the
// same order; each call returns when all have made it. An error means that other processes are
// gone.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Replace every element of `values` by its sum or its maximum over all processes, which pass the
  // same number of values.
  virtual Status Sum(std::span<double> values) = 0;
  virtual Status Max(std::span<double> values) = 0;
  // Copies the values of the rank `root` to all others.
  virtual Status Broadcast(std::span<double> values, int root) = 0;
};

// A training in a single process: every call returns at once.
class SingleProcess final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status Sum(std::span<double>) override { return Ok(); }
  Status Max(std::span<double>) override { return Ok(); }
  Status Broadcast(std::span<double>, int) override { return Ok(); }
};

}  // namespace zeus
