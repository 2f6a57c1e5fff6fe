#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus {

// Makes the ranks of a job decide alike. As with a Collective, all ranks make the same calls. One
// owner; the collective must outlive it.
class Agreement {
 public:
  explicit Agreement(Collective& collective) : collective_(collective) {}

  bool leader() const { return collective_.rank() == 0; }
  bool alone() const { return collective_.size() == 1; }

  // Whether it holds on the first rank.
  Result<bool> AtLeader(bool holds);
  // The numbers of the first rank, however many.
  Result<std::vector<double>> FromLeader(std::vector<double> numbers);

  // The text of the first rank.
  Result<std::string> TextFromLeader(std::string text);
  // The texts of all ranks, in their order.
  Result<std::vector<std::string>> Gather(const std::string& text);

  // The same outcome on all ranks: an error everywhere if there was one anywhere.
  Status Together(Status status);

  Status Sum(std::vector<double>& numbers) { return collective_.Sum(numbers); }
  Status Max(std::vector<double>& numbers) { return collective_.Max(numbers); }

 private:
  Collective& collective_;
};

}  // namespace zeus
