#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace zeus::llm {

// Walks once over the text of a JSON document, without copying and without a tree: a token event
// passes thousands of times a second, and three of its fields matter. It knows where every value
// ends, so that text can be inserted there.
//
// It is lenient: values that are skipped are not validated beyond strings and brackets. A document
// that breaks off, or where no value stands where one must, makes every further call fail.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // Whether the text has been JSON so far.
  bool ok() const { return ok_; }
  // The offset of the next byte to be read.
  std::size_t position() const { return position_; }
  // Whether only blanks are left.
  bool AtEnd();
  // The first character of the next value: '{', '[', '"', a digit, ...; '\0' at the end.
  char Peek();

  // `if (cursor.EnterObject()) while (cursor.NextMember(key)) cursor.Skip();` Each member's value
  // must be read, entered or skipped. EnterObject() returns false and skips the value when it is no
  // object. NextMember() returns false after the closing bracket. The key is as it is in the text.
  bool EnterObject();
  bool NextMember(std::string_view& key);
  // The same for arrays.
  bool EnterArray();
  bool NextElement();

  void Skip();
  // These skip a value of another type and return nullopt (or false).
  std::optional<double> ReadNumber();
  std::optional<std::string_view> ReadString();  // As it is in the text, with its escapes.
  bool ReadTrue();
  // The number of elements; 0 when the value is no array.
  std::size_t ReadLength();

 private:
  bool Enter(char bracket);
  void SkipBlanks();
  void SkipString();
  void SkipNested();
  std::string_view ReadScalar();
  void Fail();

  std::string_view text_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

// The text that a JSON string stands for; the string itself when its escapes are invalid.
std::string Unescaped(std::string_view json_string);

}  // namespace zeus::llm
