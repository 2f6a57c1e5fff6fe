#pragma once

#include <map>
#include <mutex>
#include <string>

#include "zeus/budget/budget_repository.h"

namespace zeus::budget::testing {

// A repository in memory, which several servers of a test may share. Thread-safe.
class MemoryBudgetRepository final : public BudgetRepository {
 public:
  Result<Start> Begin() override {
    const std::lock_guard lock(mutex_);
    Start start{.incarnation = ++incarnation_, .settings = settings_};
    for (const auto& [name, node] : nodes_) start.nodes.push_back(node);
    return start;
  }

  Status Save(std::uint64_t incarnation, const Change& change) override {
    const std::lock_guard lock(mutex_);
    if (incarnation != incarnation_) return NoLongerCurrent();
    for (const StoredNode& node : change.nodes) nodes_[node.name] = node;
    for (const std::string& name : change.removed) nodes_.erase(name);
    if (change.settings) settings_ = *change.settings;
    return Ok();
  }

  Status CheckCurrent(std::uint64_t incarnation) override {
    const std::lock_guard lock(mutex_);
    if (incarnation != incarnation_) return NoLongerCurrent();
    return Ok();
  }

 private:
  std::mutex mutex_;
  std::uint64_t incarnation_ = 0;
  std::string settings_{};
  std::map<std::string, StoredNode> nodes_{};
};

}  // namespace zeus::budget::testing
