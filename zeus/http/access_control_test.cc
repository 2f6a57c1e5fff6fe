#include "zeus/http/access_control.h"

#include <gtest/gtest.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::http {
namespace access_control_test {

Request From(std::string host, std::string origin = "", std::string site = "") {
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

class AccessControlTest : public ::testing::Test {
 protected:
  int Status(AccessControl& control, Access access, const std::string& authorization,
             std::optional<std::string> name_space = std::nullopt) {
    const Route route{.method = "GET", .pattern = "/", .access = access};
    const Request request{.authorization = authorization,
                          .wanted_name_space = std::move(name_space),
                          .address = "10.0.0.1"};
    const auto refusal = control.Refuse(request, route, visitor_);
    return refusal ? refusal->status : 200;
  }
  std::string Add(const std::string& name, Role role, const std::string& name_space = "") {
    return "Bearer " +
           AddToken(path_, {.name = name, .role = role, .name_space = name_space}).value();
  }

  zeus::testing::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "tokens";
  Visitor visitor_;
};

TEST_F(AccessControlTest, WithoutTokensEverybodyIsAnAdministrator) {
  AccessControl control({});
  EXPECT_EQ(Status(control, Access::kAdmin, ""), 200);
  EXPECT_EQ(visitor_.role, Role::kAdmin);
  EXPECT_FALSE(control.HasToken({}));
}

TEST_F(AccessControlTest, ATokenOpensTheRoutesOfItsRole) {
  const std::string reader = Add("grafana", Role::kRead);
  const std::string writer = Add("ci", Role::kWrite);
  const std::string admin = Add("root", Role::kAdmin);
  const auto tokens = TokenFile::Open(path_).value();
  AccessControl control({.tokens = tokens.get()});
  EXPECT_EQ(Status(control, Access::kOpen, ""), 200);
  EXPECT_EQ(Status(control, Access::kRead, ""), 401);
  EXPECT_EQ(Status(control, Access::kRead, "Bearer zeus_wrong"), 401);
  EXPECT_EQ(Status(control, Access::kRead, reader), 200);
  EXPECT_EQ(Status(control, Access::kWrite, reader), 403);
  EXPECT_EQ(Status(control, Access::kWrite, writer), 200);
  EXPECT_EQ(visitor_.user, "ci");
  EXPECT_EQ(Status(control, Access::kAdmin, writer), 403);
  EXPECT_EQ(Status(control, Access::kAdmin, admin), 200);
  EXPECT_EQ(control.counts().missing_tokens, 1U);
  EXPECT_EQ(control.counts().wrong_tokens, 1U);
  EXPECT_TRUE(control.HasToken({.authorization = reader}));
}

TEST_F(AccessControlTest, OnlyAnAdministratorChoosesTheNameSpace) {
  const std::string tenant = Add("blue", Role::kWrite, "team");
  const std::string admin = Add("root", Role::kAdmin);
  const auto tokens = TokenFile::Open(path_).value();
  AccessControl control({.tokens = tokens.get()});
  EXPECT_EQ(Status(control, Access::kRead, tenant), 200);
  EXPECT_EQ(visitor_.name_space, "team");
  EXPECT_EQ(Status(control, Access::kRead, tenant, "team"), 200);
  EXPECT_EQ(Status(control, Access::kRead, tenant, "other"), 403);
  EXPECT_EQ(Status(control, Access::kRead, admin, "other"), 200);
  EXPECT_EQ(visitor_.name_space, "other");
  EXPECT_EQ(Status(control, Access::kRead, admin, "a/b"), 400);
}

TEST_F(AccessControlTest, GuessingIsSlowedDown) {
  const std::string token = Add("ci", Role::kWrite);
  const auto tokens = TokenFile::Open(path_).value();
  VirtualClock clock;
  LoginLimiter logins(clock);
  AccessControl control({.tokens = tokens.get(), .logins = &logins});
  for (int i = 0; i < LoginLimiter::kMostFailures; ++i)
    EXPECT_EQ(Status(control, Access::kRead, "Bearer wrong"), 401);
  EXPECT_EQ(Status(control, Access::kRead, "Bearer wrong"), 429);
  EXPECT_EQ(Status(control, Access::kRead, token), 429);
  EXPECT_EQ(control.counts().refused_logins, 2U);
}

}  // namespace access_control_test
}  // namespace zeus::http
