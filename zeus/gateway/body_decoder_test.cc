#include "zeus/gateway/body_decoder.h"

#include <gtest/gtest.h>

#include <string>

namespace zeus::gateway::body_decoder_test {
namespace {

constexpr BodyFraming kChunkedBody{.kind = BodyFraming::Kind::kChunked};

// Feeds the bytes in pieces of this size. Returns the body, or "error".
std::string DecodeInPieces(const BodyFraming& framing, std::string_view bytes, std::size_t piece,
                           std::string* rest = nullptr) {
  BodyDecoder decoder(framing);
  std::string body;
  while (!bytes.empty() && !decoder.done()) {
    std::string_view part = bytes.substr(0, piece);
    const std::size_t size = part.size();
    if (!decoder.Decode(part, body).ok()) return "error";
    bytes.remove_prefix(size - part.size());
  }
  if (rest != nullptr) *rest = bytes;
  return decoder.done() ? body : body + "...";
}

TEST(BodyDecoderTest, ChunksExtensionsAndTrailersAreReadInPiecesOfAnySize) {
  const std::string bytes =
      "5;name=\"value\"\r\nhello\r\n00B  \r\n, \r\n\r\nworld\r\n0;last\r\nX-Sum: 1\r\nX-Two: "
      "2\r\n\r\nGET";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    std::string rest;
    EXPECT_EQ(DecodeInPieces(kChunkedBody, bytes, piece, &rest), "hello, \r\n\r\nworld") << piece;
    EXPECT_EQ(rest, "GET") << piece;
  }
  BodyDecoder decoder(kChunkedBody);
  std::string body;
  std::string_view in = bytes;
  ASSERT_TRUE(decoder.Decode(in, body).ok());
  EXPECT_EQ(decoder.trailers().Get("x-sum"), "1");
  EXPECT_EQ(decoder.trailers().Get("x-two"), "2");
}

TEST(BodyDecoderTest, LengthEndsTheBody) {
  std::string rest;
  EXPECT_EQ(DecodeInPieces({.kind = BodyFraming::Kind::kLength, .length = 4}, "bodyGET", 3, &rest),
            "body");
  EXPECT_EQ(rest, "GET");
  EXPECT_TRUE(BodyDecoder(BodyFraming{}).done());
}

TEST(BodyDecoderTest, TheConnectionEndsABodyWithoutLength) {
  BodyDecoder decoder({.kind = BodyFraming::Kind::kUntilClose});
  std::string body;
  std::string_view in = "all of it";
  ASSERT_TRUE(decoder.Decode(in, body).ok());
  EXPECT_EQ(body, "all of it");
  EXPECT_TRUE(decoder.ends_with_connection());
  EXPECT_FALSE(decoder.done());
}

TEST(BodyDecoderTest, BrokenChunksAreErrors) {
  for (const char* wrong : {"x\r\n", "-1\r\n", "0x5\r\nhello\r\n", "5\r\nhello!\r\n", "\r\n",
                            "fffffffffffffffff\r\n", "0\r\nno colon\r\n\r\n"})
    EXPECT_EQ(DecodeInPieces(kChunkedBody, wrong, 100), "error") << wrong;
  EXPECT_EQ(DecodeInPieces(kChunkedBody, std::string(9000, '1'), 100), "error");
}

TEST(BodyDecoderTest, WrittenChunksAreReadAgain) {
  std::string bytes;
  AppendChunk("hello", bytes);
  AppendChunk("", bytes);
  AppendChunk(std::string(300, 'x'), bytes);
  HeaderFields trailers;
  trailers.Add("a", "b");
  AppendLastChunk(trailers, bytes);
  EXPECT_EQ(DecodeInPieces(kChunkedBody, bytes, 7), "hello" + std::string(300, 'x'));
}

}  // namespace
}  // namespace zeus::gateway::body_decoder_test
