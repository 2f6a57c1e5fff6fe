#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

// Comma-separated values by RFC 4180, written and read.
namespace zeus {

// A field as RFC 4180 wants it: in quotation marks where it holds a comma, a quotation mark, the
// end of a line, or blanks at its ends. Ends of lines become blanks, so that a record stays a line.
std::string CsvField(std::string_view text);

// Fields with commas between them, without the end of the line.
std::string CsvRow(std::span<const std::string> fields);

namespace internal {
// Reads the field that `rest` begins with and removes it and the comma after it. A field in
// quotation marks is unquoted into `storage`, whose capacity must not be exceeded: fields are views
// into it. Returns false when a quotation mark has no partner.
bool NextCsvField(std::string_view& rest, std::string& storage, std::string_view& field,
                  bool& is_last);
}  // namespace internal

// Calls put(index, field) for every field of one record and returns their number, or 0 when a
// quotation mark has no partner. Blanks around a field are removed, those in quotation marks stay.
// Fields are views into `record` and `storage`, valid until either changes. This is the fast way
// for large files; CsvText is the convenient one.
template <class Put>
std::size_t ForEachCsvField(std::string_view record, std::string& storage, Put put) {
  storage.clear();
  storage.reserve(record.size());
  std::size_t count = 0;
  for (bool is_last = false; !is_last; ++count) {
    std::string_view field;
    if (!internal::NextCsvField(record, storage, field, is_last)) return 0;
    put(count, field);
  }
  return count;
}

// The records of a text that is held in memory, one after the other. Empty lines and lines that
// begin with # are passed over, and so is a byte order mark. A field in quotation marks may hold
// ends of lines. The text must outlive the object; one owner.
//
//   CsvText csv(text);
//   for (;;) {
//     ZEUS_TRY(const bool found, csv.Next());
//     if (!found) break;
//     Use(csv.fields());
//   }
class CsvText {
 public:
  explicit CsvText(std::string_view text);

  // Moves to the next record; returns false when there is none. kInvalidArgument when a quotation
  // mark has no partner: the caller adds the name of the file and line().
  Result<bool> Next();

  // Fields of the present record, without the blanks around them; valid until Next().
  const std::vector<std::string_view>& fields() const { return fields_; }
  std::size_t line() const { return line_; }  // The record's first line, from 1.
  // Whether the record ended with its line. The last one of a file that is still being written
  // may not.
  bool finished() const { return finished_; }

 private:
  std::string_view rest_;
  std::size_t next_line_ = 1;
  std::size_t line_ = 0;
  bool finished_ = true;
  std::vector<std::string_view> fields_{};
  std::string storage_{};
};

}  // namespace zeus
