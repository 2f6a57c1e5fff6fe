#include "zeus/server/origin_guard.h"

#include <gtest/gtest.h>

namespace zeus::server {
namespace origin_guard_test {

HttpRequest From(std::string host, std::string origin = "", std::string site = "") {
  return {.host = std::move(host), .origin = std::move(origin), .fetch_site = std::move(site)};
}

TEST(OriginGuardTest, ALocalServerKnowsItsNames) {
  const OriginGuard guard({.local = true, .listen_host = "127.0.0.1", .hosts = {"Proxy.Example"}});
  for (const char* host : {"localhost", "localhost:8000", "LOCALHOST.", "127.0.0.1:1", "127.9.9.9",
                           "[::1]:8000", "[::1]", "", "proxy.example:443", "zeus.localhost"})
    EXPECT_FALSE(guard.Refuse(From(host), false)) << host;
  for (const char* host : {"evil.example", "evil.example:8000", "127.evil.example", "10.0.0.1",
                           "localhost.evil.example", "[::2]:8000", "proxy.example.evil"})
    EXPECT_TRUE(guard.Refuse(From(host), false)) << host;
}

TEST(OriginGuardTest, AServerForOtherMachinesMayHaveAnyName) {
  const OriginGuard guard({});
  EXPECT_FALSE(guard.Refuse(From("zeus.example"), true));
}

TEST(OriginGuardTest, PagesOfOtherOriginsChangeNothing) {
  const OriginGuard guard({.local = true, .hosts = {"proxy.example"}});
  const std::string host = "localhost:8000";
  EXPECT_FALSE(guard.Refuse(From(host, "http://localhost:8000"), true));
  EXPECT_FALSE(guard.Refuse(From(host, "https://proxy.example"), true));
  EXPECT_FALSE(guard.Refuse(From(host, "", "same-origin"), true));
  EXPECT_FALSE(guard.Refuse(From(host, "http://evil.example"), false));
  for (const char* origin : {"http://evil.example", "null", "http://localhost:9000", "://", "x"})
    EXPECT_TRUE(guard.Refuse(From(host, origin), true)) << origin;
  for (const char* site : {"cross-site", "same-site"})
    EXPECT_TRUE(guard.Refuse(From(host, "", site), true)) << site;
}

}  // namespace origin_guard_test
}  // namespace zeus::server
