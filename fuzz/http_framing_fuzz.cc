// Heads and chunked bodies of HTTP as strangers send them: whatever the bytes and however they are
// split, the body is the same, nothing is read beyond the message, and no head is read twice.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "zeus/gateway/body_decoder.h"
#include "zeus/gateway/http_head.h"

namespace {

using namespace zeus::gateway;

struct Decoded {
  bool ok = true;
  bool done = false;
  std::string body{};
  std::string rest{};

  bool operator==(const Decoded&) const = default;
};

// Feeds the bytes in pieces of this size.
Decoded DecodeChunked(std::string_view bytes, std::size_t piece) {
  BodyDecoder decoder(BodyFraming{.kind = BodyFraming::Kind::kChunked});
  Decoded decoded;
  while (!bytes.empty() && !decoder.done() && decoded.ok) {
    std::string_view part = bytes.substr(0, piece);
    const std::size_t size = part.size();
    decoded.ok = decoder.Decode(part, decoded.body).ok();
    bytes.remove_prefix(size - part.size());
  }
  decoded.done = decoder.done();
  if (decoded.ok) decoded.rest = bytes;
  return decoded;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Decoded whole = DecodeChunked(bytes, size + 1);
  const Decoded pieces = DecodeChunked(bytes, 1 + size % 7);
  Require(whole.ok == pieces.ok && whole.done == pieces.done);
  if (whole.ok) Require(whole == pieces);
  const auto end = FindHeadEnd(bytes);
  if (!end) return 0;
  Require(*end <= size);
  const std::string_view text = bytes.substr(0, *end);
  if (const auto head = ParseRequestHead(text, HeadLimits{}); head.ok()) {
    (void)head.value().Framing();
    // The upstream must read a message as we do, or a client could smuggle a second request.
    std::string again = head.value().method + " " + head.value().target + " HTTP/1.1\r\n";
    head.value().fields.AppendTo(again);
    again += "\r\n";
    const auto second = ParseRequestHead(again, HeadLimits{});
    Require(second.ok() && FindHeadEnd(again) == again.size());
    Require(second.value().fields.all().size() == head.value().fields.all().size());
  }
  if (const auto head = ParseResponseHead(text, HeadLimits{}); head.ok())
    (void)head.value().Framing("GET");
  return 0;
}
