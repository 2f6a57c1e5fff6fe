#pragma once

#include <span>
#include <string>
#include <vector>

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

// Makes the ranks of a job decide alike, although each sees its own clock and its own GPUs. As with
// a Collective, all ranks make the same calls in the same order, and a call returns when all have
// made it. One owner; the collective must outlive it.
class Agreement {
 public:
  explicit Agreement(Collective& collective) : collective_(collective) {}

  bool leader() const { return collective_.rank() == 0; }
  bool alone() const { return collective_.size() == 1; }

  // Returns the answer of the first rank (the leader) on every rank.
  Result<bool> AtLeader(bool holds);
  // Returns the leader's numbers on every rank. The other ranks need not know how many there are.
  Result<std::vector<double>> FromLeader(std::vector<double> numbers);

  // Returns the leader's text on every rank.
  Result<std::string> TextFromLeader(std::string text);
  // Returns the texts of all ranks, ordered by rank.
  Result<std::vector<std::string>> Gather(const std::string& text);

  // Returns the same outcome on all ranks: if one rank failed, the others get kUnavailable.
  Status Together(Status status);

  Status Sum(std::vector<double>& numbers) { return collective_.Sum(numbers); }
  Status Max(std::vector<double>& numbers) { return collective_.Max(numbers); }

 private:
  Collective& collective_;
};

}  // namespace zeus
