#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/gateway/http_head.h"

namespace zeus::gateway {

// Takes the framing off a message's body while it arrives in pieces of any size. Chunk extensions
// are skipped; trailers are kept. One owner.
class BodyDecoder {
 public:
  BodyDecoder() = default;
  explicit BodyDecoder(const BodyFraming& framing);

  // Consumes bytes of the connection from the front of `in` and appends those of the body to `out`.
  // Stops at the end of the body: the rest of `in` belongs to the next message. Returns
  // kInvalidArgument when the framing is broken.
  Status Decode(std::string_view& in, std::string& out);
  // Like Decode(), but returns a view of the next run of body bytes, which is a part of `in`
  // without a copy. Empty: `in` is used up or the body has ended.
  Result<std::string_view> Next(std::string_view& in);

  bool done() const { return state_ == State::kDone; }
  // Whether the end of the connection is the end of the body.
  bool ends_with_connection() const { return state_ == State::kUntilClose; }
  const HeaderFields& trailers() const { return trailers_; }

 private:
  enum class State { kDone, kBytes, kUntilClose, kChunkSize, kChunkEnd, kTrailers };

  Status ConsumeLine(std::string_view& in);
  Status BeginChunk(std::string_view line);
  Status AddTrailer(std::string_view line);

  State state_ = State::kDone;
  bool chunked_ = false;
  std::uint64_t left_ = 0;  // Bytes of the body or of the chunk that are still to come.
  std::string line_{};      // The part of a line that has arrived.
  std::size_t trailer_bytes_ = 0;
  HeaderFields trailers_{};
};

// Appends one chunk with these bytes; nothing for no bytes, which would end the body.
void AppendChunk(std::string_view bytes, std::string& out);
// Appends the last chunk and the trailers.
void AppendLastChunk(const HeaderFields& trailers, std::string& out);

}  // namespace zeus::gateway
