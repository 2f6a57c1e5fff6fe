#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/replay/input/text_source.h"

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

// The columns that a reader needs. Columns are called by their place here: required ones from 0,
// optional ones after them.
struct CsvColumns {
  std::vector<std::string> required{};
  std::vector<std::string> optional{};
  // The columns of a table whose first line is a row already, in their order; empty: the first line
  // names them.
  std::vector<std::string> header{};
};

// Rows of comma-separated values. A row is a line; blanks around fields, carriage returns, a byte
// order mark and blank lines are no part of it; fields in quotation marks may hold commas and
// doubled quotation marks (RFC 4180, without line breaks in fields: blocks of a large file are read
// line by line). Nothing is allocated for a row: fields are views. Rows with too many or too few
// fields are reported and passed over. One owner.
class CsvReader {
 public:
  // kInvalidArgument, naming them, when required columns are missing or the file is empty.
  // `problems` must outlive the reader.
  static Result<CsvReader> Open(const std::filesystem::path& path, const CsvColumns& columns,
                                RowProblems& problems);
  static Result<CsvReader> Make(TextSource source, const CsvColumns& columns,
                                RowProblems& problems);

  // Moves to the next row; returns false when there is none.
  Result<bool> Next();

  // Fields of the present row; valid until Next(). Columns that the table lacks are empty.
  std::string_view Text(std::size_t column) const { return fields_[column]; }
  bool Has(std::size_t column) const { return present_[column]; }

  // The field as a finite number, or as a whole one. Otherwise reports the row and gives nullopt.
  std::optional<double> Number(std::size_t column);
  std::optional<std::int64_t> Integer(std::size_t column);

  // Reports the present row.
  void Report(std::string_view kind, std::string_view value = {}, RowFate fate = RowFate::kLeftOut);

  const std::string& name() const { return source_.name(); }
  std::int64_t line() const { return line_; }  // From 1.
  std::int64_t bytes_read() const { return source_.bytes_read(); }

 private:
  CsvReader(TextSource source, RowProblems& problems)
      : source_(std::move(source)), problems_(&problems) {}

  Status Start(const CsvColumns& columns);
  Status FindColumns(const CsvColumns& columns, const std::vector<std::string>& header);
  Result<bool> NextLine();  // With something in it.
  bool Split();

  TextSource source_;
  RowProblems* problems_;
  std::string_view block_{};  // Lines that are still to be read.
  std::string_view text_{};   // The present line.
  std::int64_t line_ = 0;
  std::vector<std::string> names_{};        // Names of the wanted columns.
  std::vector<bool> present_{};             // Whether the table has them.
  std::vector<std::string_view> fields_{};  // Their values in the present row.
  std::vector<std::ptrdiff_t> wanted_{};    // For each column of the table: which of them, or -1.
  std::string unquoted_{};                  // Holds the fields that had quotation marks.
};

}  // namespace zeus::replay
