#include "zeus/http/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeus::http {
namespace url_test {

using ::testing::HasSubstr;

TEST(UrlTest, HasSchemeHostPortAndPath) {
  const Url plain = ParseUrl("http://host:8000").value();
  EXPECT_EQ(plain.scheme, Url::Scheme::kHttp);
  EXPECT_EQ(plain.host, "host");
  EXPECT_EQ(plain.port, 8000);
  EXPECT_EQ(plain.path, "");
  const Url prefixed = ParseUrl("https://[::1]/behind/a/proxy/").value();
  EXPECT_EQ(prefixed.scheme, Url::Scheme::kHttps);
  EXPECT_EQ(prefixed.host, "::1");
  EXPECT_EQ(prefixed.port, std::nullopt);
  EXPECT_EQ(prefixed.path, "/behind/a/proxy");
  EXPECT_EQ(prefixed.server(), "https://[::1]");
  EXPECT_EQ(ParseUrl("http://host/").value().path, "");
}

TEST(UrlTest, AUnixSocketHasAPathAlone) {
  for (const char* text : {"unix:/run/zeus.sock", "unix:///run/zeus.sock"}) {
    const Url url = ParseUrl(text).value();
    EXPECT_EQ(url.scheme, Url::Scheme::kUnix);
    EXPECT_EQ(url.path, "/run/zeus.sock");
    EXPECT_EQ(url.server(), "unix:/run/zeus.sock");
  }
}

TEST(UrlTest, EverythingElseIsRefusedAndQuoted) {
  for (const char* text : {"",
                           "host",
                           "host:8000",
                           "ftp://host",
                           "http://",
                           "http:///x",
                           "http://host:",
                           "http://:80",
                           "http://host:x",
                           "http://host:70000",
                           "http://host:-1",
                           "http://user@host",
                           "http://a b",
                           "http://host?q",
                           "http://host#f",
                           "http://host/x?q",
                           "http://[::1",
                           "http://[::1]x",
                           "http://a:1:2",
                           "unix:",
                           "unix:run/zeus.sock",
                           "unix://run/zeus.sock"}) {
    const auto url = ParseUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(url.error().message, HasSubstr("is no address of a server"));
  }
}

TEST(ListenAddressTest, APortAloneIsThisMachineOnly) {
  for (const char* text : {"9400", ":9400", "127.0.0.1:9400"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address.value().host, "127.0.0.1");
    EXPECT_EQ(address.value().port, 9400);
    EXPECT_FALSE(address.value().is_unix());
  }
  EXPECT_EQ(ParseListenAddress("0.0.0.0:0").value().host, "0.0.0.0");
  EXPECT_EQ(ParseListenAddress("[::1]:1").value().host, "::1");
}

TEST(ListenAddressTest, AUnixSocketIsAPath) {
  const ListenAddress address = ParseListenAddress("unix:/run/zeus.sock").value();
  EXPECT_TRUE(address.is_unix());
  EXPECT_EQ(address.socket_path, "/run/zeus.sock");
  EXPECT_FALSE(ParseListenAddress("unix:").ok());
  EXPECT_FALSE(ParseListenAddress("unix:/" + std::string(100, 'x')).ok());
}

TEST(ListenAddressTest, AnInvalidAddressIsQuoted) {
  for (const char* text : {"", "host", "host:", "host:x", "::1:80", ":70000", "[]:1", ":-1"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error().message, HasSubstr("host:port"));
  }
}

TEST(LoopbackTest, NamesThatOnlyLookLocalAreNot) {
  for (const char* host : {"localhost", "zeus.localhost", "127.0.0.1", "127.9.9.9", "::1"})
    EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host :
       {"", "127.evil.example", "localhost.evil.example", "10.0.0.1", "::2", "127x"})
    EXPECT_FALSE(IsLoopback(host)) << host;
}

TEST(PercentEncodedTest, KeepsUnreservedCharactersOnly) {
  EXPECT_EQ(PercentEncoded("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(PercentEncoded("a/b c?\xC3\xA9"), "a%2Fb%20c%3F%C3%A9");
}

}  // namespace url_test
}  // namespace zeus::http
