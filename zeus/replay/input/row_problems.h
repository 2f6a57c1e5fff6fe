#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus::replay {

enum class RowFate {
  kLeftOut,
  kKept,  // The row was corrected and used.
};

struct RowProblem {
  std::string file{};
  std::int64_t line = 0;
  std::string reason{};  // "end_time is not a number: \"soon\""
};

// Collects the problems of input rows. All are counted by kind (from the twenty-first kind on as
// "other problems"), and the first few are kept in full. Not thread-safe.
class RowProblems {
 public:
  explicit RowProblems(std::size_t kept = 20) : kept_(kept) {}

  // `kind` is the text by which the problem is counted ("end_time is not a number"); `value` is the
  // offending text of the row.
  void Add(std::string_view file, std::int64_t line, std::string_view kind,
           std::string_view value = {}, RowFate fate = RowFate::kLeftOut);

  // Adds all problems of another collection.
  void Add(const RowProblems& others);
  // Adds the problems of a file, unless they were added before.
  void AddFile(const std::string& file, const RowProblems& of_file);

  bool empty() const { return left_out_ + put_right_ == 0; }
  std::int64_t left_out() const { return left_out_; }
  std::int64_t put_right() const { return put_right_; }  // Rows that were corrected and used.
  const std::vector<RowProblem>& first() const { return first_; }

  // Returns text for people with one problem per line; empty if there are none.
  std::string Summary() const;
  // {"rows_left_out", "rows_put_right", "kinds": {kind: rows}, "first": [{"file", "line",
  // "reason"}]}
  Json ToJson() const;
  // Returns kInvalidArgument with the first problem, for callers that accept only good rows.
  Status Refuse() const;

 private:
  std::size_t kept_;
  std::int64_t left_out_ = 0;
  std::int64_t put_right_ = 0;
  std::map<std::string, std::int64_t, std::less<>> kinds_{};
  std::vector<RowProblem> first_{};
  std::set<std::string> files_{};  // Names passed to AddFile().
};

}  // namespace zeus::replay
