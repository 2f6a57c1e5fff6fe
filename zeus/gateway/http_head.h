#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

// Heads of HTTP/1.x messages as a proxy handles them: parsed strictly, kept in the order and
// spelling of the sender, and written again without the fields that belong to one connection.
namespace zeus::gateway {

// The fields of a head, in the sender's order and spelling. Names compare without case.
class HeaderFields {
 public:
  struct Field {
    std::string name{};
    std::string value{};
  };

  void Add(std::string_view name, std::string_view value);
  // Removes all fields of this name.
  void Remove(std::string_view name);
  // Removes all fields of this name and adds one.
  void Set(std::string_view name, std::string_view value);

  // The value of the first field of this name, or nullptr.
  const std::string* Find(std::string_view name) const;
  // The value of the first field of this name, or an empty text.
  std::string_view Get(std::string_view name) const;
  // Whether a field with a list of words, such as Connection, contains the word.
  bool HasToken(std::string_view name, std::string_view token) const;
  // Removes the fields that hold for one connection only: Connection and the fields that it names,
  // Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade.
  void RemoveHopByHop();

  const std::vector<Field>& all() const { return fields_; }
  std::vector<Field>& all() { return fields_; }
  // "Name: value\r\n" for each field.
  void AppendTo(std::string& out) const;

 private:
  std::vector<Field> fields_{};
};

// How a message's body is delimited.
struct BodyFraming {
  enum class Kind {
    kNone,
    kLength,
    kChunked,
    kUntilClose,  // Responses only.
  };
  Kind kind = Kind::kNone;
  std::uint64_t length = 0;  // For kLength.
};

struct RequestHead {
  std::string method{};
  std::string target{};
  int minor_version = 1;  // HTTP/1.x
  HeaderFields fields{};

  bool KeepsConnection() const;
  // Returns kInvalidArgument for contradictory or unreadable lengths, which are the tools of
  // request smuggling, and kNotSupported for transfer codings other than chunked.
  Result<BodyFraming> Framing() const;
};

struct ResponseHead {
  int status = 200;
  std::string reason{};
  int minor_version = 1;
  HeaderFields fields{};

  bool KeepsConnection() const;
  // `method` is that of the request. Returns kInvalidArgument for contradictory lengths.
  Result<BodyFraming> Framing(std::string_view method) const;
};

struct HeadLimits {
  std::size_t bytes = 16 * 1024;
  std::size_t fields = 100;
};

// The length of the head at the beginning of `bytes`, with its empty line, or nullopt when it is
// not complete. `searched` bytes were looked at before and contained no end.
std::optional<std::size_t> FindHeadEnd(std::string_view bytes, std::size_t searched = 0);

// Parse a complete head. Return kInvalidArgument, saying what is wrong, for everything that is no
// HTTP/1.x head.
Result<RequestHead> ParseRequestHead(std::string_view text, const HeadLimits& limits);
Result<ResponseHead> ParseResponseHead(std::string_view text, const HeadLimits& limits);

// Compares names of fields and words without case.
bool EqualWithoutCase(std::string_view one, std::string_view other);
// The part of a target before its query: "/v1/models" of "/v1/models?limit=5".
std::string_view PathOfTarget(std::string_view target);

}  // namespace zeus::gateway
