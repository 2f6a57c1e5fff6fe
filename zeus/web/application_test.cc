#include "zeus/web/application.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "zeus/base/json.h"
#include "zeus/web/application_files.h"

namespace zeus::web::application_test {
namespace {

http::Request Get(const std::string& target) {
  return {.method = "GET", .target = target, .host = "localhost:8000"};
}

std::string Header(const http::Answer& answer, const std::string& name) {
  const auto found =
      std::ranges::find(answer.headers, name, [](const auto& header) { return header.first; });
  return found == answer.headers.end() ? "" : found->second;
}

Application Make() {
  return Application({.program = "zeusd",
                      .version = "1.2.3",
                      .features = {"node"},
                      .token = TokenUse::kRequired,
                      .origins = {.local = true, .listen_host = "127.0.0.1"}});
}

bool HasFiles() { return !ApplicationFiles().empty(); }

TEST(ApplicationTest, DescriptionTellsTheProgramAndItsFeatures) {
  const auto answer = Make().Answer(Get("/app.json"));
  EXPECT_EQ(answer.status, 200);
  const auto json = ParseJson(answer.body);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value()["program"], "zeusd");
  EXPECT_EQ(json.value()["version"], "1.2.3");
  EXPECT_EQ(json.value()["features"], Json::array({"node"}));
  EXPECT_EQ(json.value()["token"], "required");
}

TEST(ApplicationTest, OnlyReadingItsOwnPathsIsForTheApplication) {
  for (const char* target : {"/", "/?x=1", "/app.js", "/app.css", "/app.json"})
    EXPECT_TRUE(Application::Has(Get(target))) << target;
  for (const char* target : {"/v1/node", "/app.html", "/index.html", "//", "", "/app.js/"})
    EXPECT_FALSE(Application::Has(Get(target))) << target;
  http::Request post = Get("/");
  post.method = "POST";
  EXPECT_FALSE(Application::Has(post));
  EXPECT_EQ(Make().Answer(post).status, 404);
}

TEST(ApplicationTest, EveryAnswerForbidsForeignCodeAndFrames) {
  for (const char* target : {"/", "/app.js", "/app.css", "/app.json"}) {
    const auto answer = Make().Answer(Get(target));
    const std::string policy = Header(answer, "Content-Security-Policy");
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << target;
    EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos) << target;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << target;
    EXPECT_EQ(Header(answer, "X-Content-Type-Options"), "nosniff") << target;
    EXPECT_EQ(Header(answer, "Referrer-Policy"), "no-referrer") << target;
  }
}

TEST(ApplicationTest, AnotherHostNameOnLoopbackIsRefused) {
  http::Request rebound = Get("/");
  rebound.host = "attacker.example";
  EXPECT_EQ(Make().Answer(rebound).status, 403);
  rebound.host = "127.0.0.1:4938";
  EXPECT_EQ(Make().Answer(rebound).status, 200);
}

TEST(ApplicationTest, PageHasNoScriptOrStyleOfItsOwn) {
  if (!HasFiles()) GTEST_SKIP() << "the build had no node";
  const auto page = Make().Answer(Get("/"));
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("src=\"./app.js\""), std::string::npos);
  EXPECT_EQ(page.body.find("<style"), std::string::npos);
  EXPECT_EQ(page.body.find(" style="), std::string::npos);
  std::size_t scripts = 0;
  for (auto at = page.body.find("<script"); at != std::string::npos;
       at = page.body.find("<script", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 1U);
}

TEST(ApplicationTest, CompressedFormIsSentToClientsThatAcceptIt) {
  if (!HasFiles()) GTEST_SKIP() << "the build had no node";
  const auto plain = Make().Answer(Get("/app.js"));
  http::Request request = Get("/app.js");
  request.accept_encoding = "deflate, gzip;q=1.0, br";
  const auto gzip = Make().Answer(request);
  EXPECT_EQ(Header(plain, "Content-Encoding"), "");
  EXPECT_EQ(Header(gzip, "Content-Encoding"), "gzip");
  EXPECT_LT(gzip.body.size(), plain.body.size());
  EXPECT_EQ(gzip.body.substr(0, 2), "\x1f\x8b");
  EXPECT_NE(Header(plain, "ETag"), Header(gzip, "ETag"));
  for (const char* refusing : {"gzip;q=0", "gzip; q=0.000", "br", "identity"}) {
    request.accept_encoding = refusing;
    EXPECT_EQ(Make().Answer(request).body, plain.body) << refusing;
  }
}

TEST(ApplicationTest, KnownContentIsNotSentAgain) {
  if (!HasFiles()) GTEST_SKIP() << "the build had no node";
  http::Request request = Get("/app.css");
  const std::string tag = Header(Make().Answer(request), "ETag");
  for (const std::string& match : {tag, "W/" + tag, "\"x\", " + tag, std::string("*")}) {
    request.if_none_match = match;
    const auto answer = Make().Answer(request);
    EXPECT_EQ(answer.status, 304) << match;
    EXPECT_EQ(answer.body, "") << match;
    EXPECT_EQ(Header(answer, "ETag"), tag) << match;
  }
  request.if_none_match = "\"other\"";
  EXPECT_EQ(Make().Answer(request).status, 200);
}

// A browser loads all of it before it shows anything.
TEST(ApplicationTest, CompressedApplicationIsSmallerThan150Kilobytes) {
  std::size_t size = 0;
  for (const ApplicationFile& file : ApplicationFiles()) size += file.gzip.size();
  EXPECT_LE(size, 150'000U);
}

}  // namespace
}  // namespace zeus::web::application_test
