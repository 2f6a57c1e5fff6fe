#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/job/job.h"

namespace zeus {

// The active trials of a job that is locked, as the changes of a group leave them: what they ask
// again and again is answered without the database. One owner.
class ActiveTrials {
 public:
  explicit ActiveTrials(std::vector<Trial> trials);

  // nullptr: it is not active, or not there.
  const Trial* Find(std::int64_t number) const;
  bool Has(RunRole role) const;
  // By number, at most `limit`.
  std::vector<Trial> Overdue(WallTime now, int limit) const;

  // What the present change inserts or updates …
  void Put(const Trial& trial);
  // … and what becomes of it.
  void Keep() { undo_.clear(); }
  void TakeBack();

 private:
  std::map<std::int64_t, Trial> trials_;
  std::vector<std::pair<std::int64_t, std::optional<Trial>>> undo_;
};

}  // namespace zeus
