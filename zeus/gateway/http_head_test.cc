#include "zeus/gateway/http_head.h"

#include <gmock/gmock.h>

#include <string>

namespace zeus::gateway::http_head_test {
namespace {

using ::testing::HasSubstr;

Result<RequestHead> Request(std::string_view fields, std::string_view line = "POST /x HTTP/1.1") {
  return ParseRequestHead(std::string(line) + "\r\n" + std::string(fields) + "\r\n", HeadLimits{});
}

TEST(HttpHeadTest, EndIsFoundHoweverTheBytesAreSplit) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t cut = 0; cut < head.size(); ++cut) {
    EXPECT_EQ(FindHeadEnd(std::string_view(head).substr(0, cut)), std::nullopt) << cut;
    EXPECT_EQ(FindHeadEnd(head + "body", cut), head.size()) << cut;
  }
  EXPECT_EQ(FindHeadEnd("GET / HTTP/1.0\n\nrest"), 16U);
}

TEST(HttpHeadTest, FieldsKeepTheirOrderAndSpelling) {
  const auto head = Request("HOST: a\r\nx-One:  1 \r\nX-Two:\r\nx-one: 2\r\n");
  ASSERT_TRUE(head.ok());
  std::string text;
  head.value().fields.AppendTo(text);
  EXPECT_EQ(text, "HOST: a\r\nx-One: 1\r\nX-Two: \r\nx-one: 2\r\n");
  EXPECT_EQ(head.value().fields.Get("X-ONE"), "1");
  EXPECT_EQ(head.value().fields.Find("three"), nullptr);
}

TEST(HttpHeadTest, HopByHopFieldsAndThoseNamedByConnectionAreRemoved) {
  auto head = Request(
      "Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nTE: trailers;q=0.5\r\nUpgrade: h2c\r\n"
      "Transfer-Encoding: chunked\r\nAccept: */*\r\nKeep-Alive: 5\r\n");
  ASSERT_TRUE(head.ok());
  EXPECT_TRUE(head.value().fields.HasToken("te", "trailers"));
  head.value().fields.RemoveHopByHop();
  ASSERT_EQ(head.value().fields.all().size(), 1U);
  EXPECT_EQ(head.value().fields.all()[0].name, "Accept");
}

TEST(HttpHeadTest, MalformedRequestsAreRefusedWithAReason) {
  EXPECT_FALSE(Request("", "GET /").ok());
  EXPECT_FALSE(Request("", "GET / HTTP/2.0").ok());
  EXPECT_FALSE(Request("", "GET /a b HTTP/1.1").ok());
  EXPECT_FALSE(Request("", "G:T / HTTP/1.1").ok());
  EXPECT_FALSE(Request("Name : value\r\n").ok());
  EXPECT_FALSE(Request("no colon\r\n").ok());
  EXPECT_FALSE(Request("A: 1\r\n folded\r\n").ok());
  EXPECT_FALSE(Request(std::string("A: a\0b\r\n", 8)).ok());
  std::string many;
  for (int i = 0; i < 101; ++i) many += "A: b\r\n";
  const auto head = Request(many);
  ASSERT_FALSE(head.ok());
  EXPECT_THAT(head.error().message, HasSubstr("100 fields"));
}

TEST(HttpHeadTest, AmbiguousLengthsAreRefused) {
  const auto framing = [](std::string_view fields) { return Request(fields).value().Framing(); };
  EXPECT_EQ(framing("Content-Length: 5\r\n").value().length, 5U);
  EXPECT_EQ(framing("Content-Length: 5, 5\r\n").value().length, 5U);
  EXPECT_EQ(framing("Transfer-Encoding: chunked\r\n").value().kind, BodyFraming::Kind::kChunked);
  EXPECT_EQ(framing("").value().kind, BodyFraming::Kind::kNone);
  for (const char* wrong : {"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: +5\r\n",
                            "Content-Length: -1\r\n", "Content-Length: 0x5\r\n",
                            "Content-Length:\r\n", "Content-Length: 99999999999999999999\r\n",
                            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                            "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, gzip\r\n",
                            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"})
    EXPECT_FALSE(framing(wrong).ok()) << wrong;
}

TEST(HttpHeadTest, ResponsesHaveTheFramingOfTheStandard) {
  const auto framing = [](std::string_view text, std::string_view method) {
    return ParseResponseHead(text, HeadLimits{}).value().Framing(method).value().kind;
  };
  using Kind = BodyFraming::Kind;
  EXPECT_EQ(framing("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "GET"), Kind::kLength);
  EXPECT_EQ(framing("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HEAD"), Kind::kNone);
  EXPECT_EQ(framing("HTTP/1.1 204 No Content\r\n\r\n", "GET"), Kind::kNone);
  EXPECT_EQ(framing("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", "GET"), Kind::kNone);
  EXPECT_EQ(framing("HTTP/1.0 200\r\n\r\n", "GET"), Kind::kUntilClose);
  EXPECT_EQ(
      framing("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"),
      Kind::kChunked);
}

TEST(HttpHeadTest, StatusLinesAreReadWithAndWithoutReason) {
  const auto head = ParseResponseHead("HTTP/1.1 404 Nothing here\r\n\r\n", HeadLimits{});
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head.value().status, 404);
  EXPECT_EQ(head.value().reason, "Nothing here");
  EXPECT_TRUE(ParseResponseHead("HTTP/1.0 200\r\n\r\n", HeadLimits{}).ok());
  EXPECT_FALSE(ParseResponseHead("SSH-2.0-OpenSSH\r\n\r\n", HeadLimits{}).ok());
  EXPECT_FALSE(ParseResponseHead("HTTP/1.1 2000 OK\r\n\r\n", HeadLimits{}).ok());
}

TEST(HttpHeadTest, ConnectionsAreKeptAsTheVersionSays) {
  const auto keeps = [](std::string_view text) {
    return ParseResponseHead(text, HeadLimits{}).value().KeepsConnection();
  };
  EXPECT_TRUE(keeps("HTTP/1.1 200 OK\r\n\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0 200 OK\r\n\r\n"));
  EXPECT_TRUE(keeps("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"));
}

}  // namespace
}  // namespace zeus::gateway::http_head_test
