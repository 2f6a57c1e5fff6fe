#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus {

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
