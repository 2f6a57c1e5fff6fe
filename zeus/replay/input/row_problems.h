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
  kKept,  // Put right, and used.
};

struct RowProblem {
  std::string file{};
  std::int64_t line = 0;
  std::string reason{};  // "end_time is not a number: \"soon\""
};

// What was wrong with rows of input: all are counted, by kind (from the twenty-first kind on as
// "other problems"), and the first few are kept word for word. One owner.
class RowProblems {
 public:
  explicit RowProblems(std::size_t kept = 20) : kept_(kept) {}

  // `kind` is counted ("end_time is not a number"); `value` is what the row has instead.
  void Add(std::string_view file, std::int64_t line, std::string_view kind,
           std::string_view value = {}, RowFate fate = RowFate::kLeftOut);

  // All of another's.
  void Add(const RowProblems& others);
  // All of a file's, unless that was done before.
  void AddFile(const std::string& file, const RowProblems& of_file);

  bool empty() const { return left_out_ + put_right_ == 0; }
  std::int64_t left_out() const { return left_out_; }    // Rows.
  std::int64_t put_right() const { return put_right_; }  // Rows.
  const std::vector<RowProblem>& first() const { return first_; }

  // For people, one problem a line; empty if there is none.
  std::string Summary() const;
  // {"rows_left_out", "rows_put_right", "kinds": {kind: rows}, "first": [{"file", "line",
  // "reason"}]}
  Json ToJson() const;
  // For those who accept nothing but good rows: kInvalidArgument with the first problem.
  Status Refuse() const;

 private:
  std::size_t kept_;
  std::int64_t left_out_ = 0;
  std::int64_t put_right_ = 0;
  std::map<std::string, std::int64_t, std::less<>> kinds_{};
  std::vector<RowProblem> first_{};
  std::set<std::string> files_{};  // That AddFile() was told of.
};

}  // namespace zeus::replay
