#include "zeus/http/router.h"

#include <gtest/gtest.h>

namespace zeus::http {
namespace router_test {

using Strings = std::vector<std::string>;

Router SomeRouter() {
  Router router;
  router.Add({.method = "GET", .pattern = "/v1/jobs", .summary = "list"});
  router.Add({.method = "POST", .pattern = "/v1/jobs", .access = Access::kWrite, .summary = "new"});
  router.Add({.method = "GET", .pattern = "/v1/jobs/{id}", .summary = "one"});
  router.Add({.method = "GET", .pattern = "/begin", .access = Access::kWrite, .summary = "begin"});
  return router;
}

TEST(TargetTest, IsTakenApartAndDecoded) {
  const auto target = ParseTarget("/v1/jobs/a%20b%2Fc+d?limit=5&label=team%3Ax+y&empty");
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_EQ(target.value().segments, (Strings{"v1", "jobs", "a b/c+d"}));
  EXPECT_EQ(target.value().query.at("label"), "team:x y");
  EXPECT_EQ(target.value().query.at("empty"), "");
}

TEST(TargetTest, MayHoldAnyText) {
  for (const char* text : {"/%C3%A9", "/?a=%E2%82%AC", "/%F0%9F%98%80", "/%7F", "/%EF%BF%BF"})
    EXPECT_TRUE(ParseTarget(text).ok()) << text;
}

TEST(TargetTest, WhatIsNoneIsRefused) {
  for (const char* text : {"", "*", "v1/jobs", "http://a/b", "/a%", "/a%2", "/a%zz", "/a?b=%-1",
                           "/a?b=1&b=2", "/a%00b", "/a?b=%FF", "/a%C3", "/a?%C0%80=b",
                           "/a%ED%A0%80", "/a%E0%80%80", "/a%F4%90%80%80", "/\xFF"})
    EXPECT_FALSE(ParseTarget(text).ok()) << text;
}

TEST(RouterTest, AMatchHasTheParametersOfThePath) {
  const Router router = SomeRouter();
  const RouteMatch match = router.Find("GET", {"v1", "jobs", "mnist"});
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->summary, "one");
  EXPECT_EQ(match.parameters, Strings{"mnist"});
}

TEST(RouterTest, AnotherMethodOfAKnownPathSaysWhichThereAre) {
  const Router router = SomeRouter();
  const RouteMatch match = router.Find("PUT", {"v1", "jobs"});
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.allowed, (Strings{"GET", "HEAD", "POST"}));
  EXPECT_TRUE(router.Find("GET", {"v2"}).allowed.empty());
  EXPECT_TRUE(router.Find("GET", {"v1", "jobs", ""}).allowed.empty());
}

TEST(RouterTest, HeadIsAGetThatChangesNothing) {
  const Router router = SomeRouter();
  EXPECT_NE(router.Find("HEAD", {"v1", "jobs"}).route, nullptr);
  EXPECT_EQ(router.Find("HEAD", {"begin"}).route, nullptr);
  EXPECT_EQ(router.Find("HEAD", {"begin"}).allowed, Strings{"GET"});
}

TEST(RouterTest, ARequestWithoutARouteIsToldWhy) {
  const Router router = SomeRouter();
  const Request request{.method = "PUT", .target = "/v1/jobs"};
  const Answer wrong_method = NoRouteAnswer(request, router.Find("PUT", {"v1", "jobs"}));
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_EQ(wrong_method.headers[0].second, "GET, HEAD, POST");
  EXPECT_EQ(NoRouteAnswer(request, router.Find("PUT", {"v2"})).status, 404);
}

TEST(RouterTest, UnknownParametersAreRefusedExceptInTheReferencesDialect) {
  const Request request{.query = {{"limt", "5"}}};
  EXPECT_FALSE(CheckQuery({.method = "GET", .pattern = "/", .query = {"limit"}}, request).ok());
  EXPECT_TRUE(CheckQuery({.method = "GET", .pattern = "/", .query = {"limt"}}, request).ok());
  const Route reference{.method = "GET", .pattern = "/", .dialect = Dialect::kReference};
  EXPECT_TRUE(CheckQuery(reference, request).ok());
}

TEST(ResponseTextTest, HasEverythingThatHttpWants) {
  Answer answer{.status = 503, .body = "{}"};
  answer.headers.emplace_back("Retry-After", "1");
  EXPECT_EQ(ResponseText(answer, "id-1", Connection::kClose, Body::kSent),
            "HTTP/1.1 503 Service Unavailable\r\nServer: zeus\r\nContent-Length: 2\r\n"
            "Content-Type: application/json\r\nRetry-After: 1\r\nX-Request-Id: id-1\r\n"
            "Connection: close\r\n\r\n{}");
}

TEST(ResponseTextTest, AnAnswerToHeadHasTheLengthButNotTheBody) {
  const std::string text =
      ResponseText({.body = "12345"}, "id", Connection::kKeepAlive, Body::kOmitted);
  EXPECT_NE(text.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\n"));
}

TEST(ResponseTextTest, NothingHasNeitherLengthNorType) {
  const std::string text = ResponseText({.status = 204}, "id", Connection::kKeepAlive, Body::kSent);
  EXPECT_EQ(text.find("Content-"), std::string::npos);
}

}  // namespace router_test
}  // namespace zeus::http
