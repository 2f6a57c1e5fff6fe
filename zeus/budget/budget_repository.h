#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/budget/grant_book.h"

namespace zeus::budget {

// The part of a budget that outlasts its server. One start of a server at a time may change it: a
// later start shuts earlier ones out, so that no watts are handed out twice. Thread-safe.
class BudgetRepository {
 public:
  virtual ~BudgetRepository() = default;

  struct Start {
    std::uint64_t incarnation = 0;  // Grows with every start, from 1.
    std::string settings{};         // As the latest Change left them; empty at first.
    std::vector<StoredNode> nodes{};
  };
  // Begins a start. Every earlier one is refused from now on.
  virtual Result<Start> Begin() = 0;

  struct Change {
    std::vector<StoredNode> nodes{};  // Replace what is known of them.
    std::vector<std::string> removed{};
    std::optional<std::string> settings{};
  };
  // All or nothing. kConflict when a later start has begun; kUnavailable when it is not known
  // whether it has happened.
  virtual Status Save(std::uint64_t incarnation, const Change& change) = 0;

  // kConflict when a later start has begun.
  virtual Status CheckCurrent(std::uint64_t incarnation) = 0;
};

// The error of a start that a later one has shut out.
Error NoLongerCurrent();

std::string StoredNodeText(const StoredNode& node);
Result<StoredNode> ParseStoredNode(const std::string& text);

}  // namespace zeus::budget
