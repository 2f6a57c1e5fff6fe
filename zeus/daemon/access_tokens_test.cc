#include "zeus/daemon/access_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>

#include <array>

#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace access_tokens_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string kSecret = "0123456789abcdef0123456789abcdef";
constexpr const char* kHeader = R"({"alg":"HS256","typ":"JWT"})";

std::string Encoded(std::string_view bytes) {
  std::string text(4 * (bytes.size() / 3 + 1) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string Mac(std::string_view text, const EVP_MD* hash, const std::string& secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  HMAC(hash, secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(), &size);
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

// As any issuer would make it, with OpenSSL alone.
std::string Made(std::string_view payload, std::string_view header = kHeader,
                 const std::string& secret = kSecret) {
  const std::string text = Encoded(header) + "." + Encoded(payload);
  return text + "." + Encoded(Mac(text, EVP_sha256(), secret));
}

class AccessTokensTest : public ::testing::Test {
 protected:
  std::unique_ptr<AccessTokens> Open(AccessTokens::Options options = {}) {
    auto tokens = AccessTokens::Open(key_, std::move(options), clock_);
    EXPECT_TRUE(tokens.ok()) << tokens.error().message;
    return std::move(tokens).value();
  }
  std::string Refusal(const std::string& token) {
    const auto claims = Open()->Check(token);
    if (claims.ok()) return "accepted";
    EXPECT_EQ(claims.error().code, ErrorCode::kPermissionDenied);
    return claims.error().message;
  }
  std::int64_t Now() const {
    return std::chrono::floor<std::chrono::seconds>(clock_.WallNow().time_since_epoch()).count();
  }

  VirtualClock clock_;
  const TokenKey key_ = TokenKey::Create(kSecret).value();
  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(AccessTokensTest, AnIssuedTokenIsRecognised) {
  const std::string token =
      IssueToken(key_, {"ci", {Scope::kGpuRead, Scope::kGpuControl}, 3600s}, clock_).value();
  const TokenClaims claims = Open()->Check(token).value();
  EXPECT_EQ(claims.subject, "ci");
  EXPECT_EQ(claims.scopes, ScopeSet({Scope::kGpuRead, Scope::kGpuControl}));
  EXPECT_EQ(*claims.expires - *claims.issued, 3600s);
  EXPECT_FALSE(claims.id.empty());
  const std::string other = IssueToken(key_, {"ci", {Scope::kGpuRead}, 3600s}, clock_).value();
  EXPECT_NE(Open()->Check(other).value().id, claims.id);
}

TEST_F(AccessTokensTest, TokensOfTheReferenceAreRecognised) {
  const TokenClaims claims =
      Open()->Check(Made(R"({"sub":"alice","scopes":["gpu-read","cpu-read"]})")).value();
  EXPECT_EQ(claims.subject, "alice");
  EXPECT_EQ(claims.scopes, ScopeSet({Scope::kGpuRead, Scope::kCpuRead}));
  EXPECT_FALSE(claims.expires);
  EXPECT_TRUE(Open()->Check(Made(R"({"sub":"a","scopes":[],"exp":null,"x":1})")).ok());
  EXPECT_TRUE(Open()->Check(Made(R"({"sub":"a","scopes":[]})", R"({"alg":"HS256"})")).ok());
}

// The example of RFC 7515, appendix A.1, has another payload than ours, so only its key and the way
// it is encoded are of use: its signature is genuine, and its claims are not.
TEST_F(AccessTokensTest, TheSignatureIsThatOfTheStandard) {
  const std::string payload =
      "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n "
      "\"http://example.com/is_root\":true}";
  EXPECT_EQ(Encoded(payload),
            "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290"
            "Ijp0cnVlfQ");
  EXPECT_THAT(Refusal(Made(payload)), HasSubstr("wrong claims: sub"));
}

TEST_F(AccessTokensTest, OtherAlgorithmsAreRefused) {
  const std::string payload = R"({"sub":"a","scopes":["admin"]})";
  const std::string none = Encoded(R"({"alg":"none"})") + "." + Encoded(payload) + ".";
  EXPECT_THAT(Refusal(none), HasSubstr("not signed"));
  for (const char* header :
       {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":"HS512"})", R"({"alg":"RS256"})",
        R"({"alg":"hs256"})", R"({"alg":["HS256"]})", R"({"typ":"JWT"})", R"([])"})
    EXPECT_NE(Refusal(Made(payload, header)), "accepted") << header;
  const std::string text = Encoded(R"({"alg":"HS512"})") + "." + Encoded(payload);
  EXPECT_THAT(Refusal(text + "." + Encoded(Mac(text, EVP_sha512(), kSecret))),
              HasSubstr("not signed"));
  EXPECT_THAT(Refusal(Made(payload, R"({"alg":"HS256","crit":["x"]})")), HasSubstr("extensions"));
}

TEST_F(AccessTokensTest, AnotherKeyIsRefused) {
  const std::string payload = R"({"sub":"a","scopes":["admin"]})";
  EXPECT_THAT(Refusal(Made(payload, kHeader, kSecret + " ")), HasSubstr("not signed"));
  EXPECT_THAT(Refusal(Made(payload, kHeader, "")), HasSubstr("not signed"));
}

TEST_F(AccessTokensTest, EveryTruncationAndEveryChangedCharacterIsRefused) {
  const std::string token = Made(R"({"sub":"alice","scopes":["gpu-read"]})");
  ASSERT_EQ(Refusal(token), "accepted");
  for (std::size_t size = 0; size < token.size(); ++size)
    EXPECT_NE(Refusal(token.substr(0, size)), "accepted") << size;
  for (std::size_t i = 0; i < token.size(); ++i) {
    for (const char other : {'A', 'z', '.', '=', ' '}) {
      std::string changed = token;
      if (changed[i] == other) continue;
      changed[i] = other;
      EXPECT_NE(Refusal(changed), "accepted") << i << other;
    }
  }
  for (const std::string& more : {token + ".", token + "=", token + " ", " " + token, token + "A",
                                  "." + token, token + "." + token})
    EXPECT_NE(Refusal(more), "accepted") << more;
}

TEST_F(AccessTokensTest, HugeTokensAreRefusedUnread) {
  const std::string name(9000, 'a');
  EXPECT_THAT(Refusal(Made(R"({"sub":"a","scopes":[],"x":")" + name + "\"}")),
              HasSubstr("too long"));
  EXPECT_THAT(Refusal(std::string(10'000'000, '.')), HasSubstr("too long"));
}

TEST_F(AccessTokensTest, ClaimsOfAWrongKindAreRefused) {
  for (const char* payload : {"",
                              "null",
                              "[]",
                              "{",
                              R"({"scopes":["gpu-read"]})",
                              R"({"sub":"a"})",
                              R"({"sub":1,"scopes":[]})",
                              R"({"sub":"","scopes":[]})",
                              R"({"sub":"a b","scopes":[]})",
                              R"({"sub":"a\n","scopes":[]})",
                              R"({"sub":"a","scopes":"admin"})",
                              R"({"sub":"a","scopes":{"admin":true}})",
                              R"({"sub":"a","scopes":[1]})",
                              R"({"sub":"a","scopes":[["admin"]]})",
                              R"({"sub":"a","scopes":["root"]})",
                              R"({"sub":"a","scopes":null})",
                              R"({"sub":"a","scopes":[],"exp":"never"})",
                              R"({"sub":"a","scopes":[],"exp":-1})",
                              R"({"sub":"a","scopes":[],"exp":1e300})",
                              R"({"sub":"a","scopes":[],"exp":true})",
                              R"({"sub":"a","scopes":[],"nbf":[]})",
                              R"({"sub":"a","scopes":[],"jti":7})",
                              R"({"sub":"a","scopes":[],"jti":""})",
                              R"({"sub":"a","scopes":[],"aud":"other"})",
                              "{\"sub\":\"\xff\",\"scopes\":[]}",
                              "{\"sub\":\"a\",\"scopes\":[\"\xc3\x28\"]}"})
    EXPECT_NE(Refusal(Made(payload)), "accepted") << payload;
}

TEST_F(AccessTokensTest, ATokenDoesNotMakeItsBearerAUserOfThisMachine) {
  for (const char* subject : {"uid:0", "uid:1001", "uid:", "anonymous"}) {
    EXPECT_THAT(Refusal(Made(std::string(R"({"scopes":[],"sub":")") + subject + "\"}")),
                HasSubstr("the daemon's own"));
    EXPECT_FALSE(IssueToken(key_, {subject, {Scope::kJob}, 1s}, clock_).ok());
  }
}

TEST_F(AccessTokensTest, ATokenHoldsFromItsBeginToItsEndWithLeeway) {
  clock_.Advance(1000s);
  const auto with = [&](const char* claim, std::int64_t at) {
    return Made(R"({"sub":"a","scopes":[],")" + std::string(claim) +
                "\":" + std::to_string(Now() + at) + "}");
  };
  EXPECT_EQ(Refusal(with("exp", 1)), "accepted");
  EXPECT_EQ(Refusal(with("exp", -29)), "accepted");
  EXPECT_THAT(Refusal(with("exp", -30)), HasSubstr("expired"));
  EXPECT_EQ(Refusal(with("nbf", 30)), "accepted");
  EXPECT_THAT(Refusal(with("nbf", 31)), HasSubstr("not valid yet"));
  const std::string token = IssueToken(key_, {"a", {Scope::kJob}, 60s}, clock_).value();
  EXPECT_EQ(Refusal(token), "accepted");
  clock_.Advance(91s);
  EXPECT_THAT(Refusal(token), HasSubstr("expired"));
}

TEST_F(AccessTokensTest, ALongestLifetimeRefusesEternalTokens) {
  const auto tokens = Open({.max_lifetime = 3600s});
  const auto refusal = [&](std::optional<Seconds> lifetime) {
    const auto claims =
        tokens->Check(IssueToken(key_, {"a", {Scope::kJob}, lifetime}, clock_).value());
    return claims.ok() ? std::string("accepted") : claims.error().message;
  };
  EXPECT_EQ(refusal(3600s), "accepted");
  EXPECT_THAT(refusal(3700s), HasSubstr("longer"));
  EXPECT_THAT(refusal(std::nullopt), HasSubstr("never expires"));
  // A long life does not become a short one by waiting, nor by a date of issue in the future.
  const std::string old = IssueToken(key_, {"a", {Scope::kJob}, 7200s}, clock_).value();
  clock_.Advance(5000s);
  EXPECT_FALSE(tokens->Check(old).ok());
  EXPECT_FALSE(tokens
                   ->Check(Made(R"({"sub":"a","scopes":[],"exp":)" + std::to_string(Now() + 9000) +
                                ",\"iat\":" + std::to_string(Now() + 8999) + "}"))
                   .ok());
}

TEST_F(AccessTokensTest, RevokedTokensAreRefusedFromThenOn) {
  const auto file = directory_.path() / "revoked";
  const auto tokens = Open({.revoked_file = file});
  const std::string one = IssueToken(key_, {"a", {Scope::kJob}, 60s}, clock_).value();
  const std::string other = IssueToken(key_, {"a", {Scope::kJob}, 60s}, clock_).value();
  const std::string id = tokens->Check(one).value().id;
  ASSERT_TRUE(RevokeToken(file, RevokeBy::kId, id).ok());
  EXPECT_THAT(tokens->Check(one).error().message, HasSubstr("revoked"));
  EXPECT_TRUE(tokens->Check(other).ok());
  ASSERT_TRUE(RevokeToken(file, RevokeBy::kSubject, "a").ok());
  EXPECT_FALSE(tokens->Check(other).ok());
  EXPECT_TRUE(RevokeToken(file, RevokeBy::kSubject, "a").ok()) << "again";
  EXPECT_FALSE(RevokeToken(file, RevokeBy::kSubject, "a\nb").ok());
}

TEST_F(AccessTokensTest, ARevocationFileThatCannotBeUsedKeepsWhatWasRevoked) {
  const auto file = directory_.path() / "revoked";
  ASSERT_TRUE(RevokeToken(file, RevokeBy::kSubject, "a").ok());
  const auto tokens = Open({.revoked_file = file});
  const std::string revoked = Made(R"({"sub":"a","scopes":[]})");
  const std::string good = Made(R"({"sub":"b","scopes":[]})");
  ASSERT_TRUE(ReplaceFile(file, "nonsense here\n").ok());
  EXPECT_FALSE(tokens->Check(revoked).ok());
  EXPECT_TRUE(tokens->Check(good).ok());
  EXPECT_FALSE(AccessTokens::Open(key_, {.revoked_file = file}, clock_).ok());
  ASSERT_TRUE(ReplaceFile(file, "# nobody\n\nsub b # no comment\n").ok());
  EXPECT_THAT(AccessTokens::Open(key_, {.revoked_file = file}, clock_).error().message,
              HasSubstr(":3: "));
  ASSERT_TRUE(ReplaceFile(file, "# b\nsub b\n").ok());
  EXPECT_TRUE(tokens->Check(revoked).ok());
  EXPECT_FALSE(tokens->Check(good).ok());
}

TEST_F(AccessTokensTest, KeysAreLongAndSecret) {
  const auto file = directory_.AddFile("key", kSecret);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_TRUE(TokenKey::Load(file).value().Verify(Made(R"({"sub":"a","scopes":[]})")).ok());
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(TokenKey::Load(file).error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(TokenKey::Create(kSecret.substr(1)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(TokenKey::Load(directory_.path() / "none").error().code, ErrorCode::kNotFound);
}

TEST_F(AccessTokensTest, LifetimesAreParsed) {
  EXPECT_EQ(ParseTokenLifetime("7d").value(), std::optional<Seconds>(7 * 24h));
  EXPECT_EQ(ParseTokenLifetime("1h").value(), std::optional<Seconds>(3600s));
  EXPECT_EQ(ParseTokenLifetime("90s").value(), std::optional<Seconds>(90s));
  EXPECT_EQ(ParseTokenLifetime("never").value(), std::nullopt);
  for (const char* wrong :
       {"", "7", "d", "0d", "-1d", "1w", "1.5h", "1 h", "99999999999d", "99999999999999999999d"})
    EXPECT_FALSE(ParseTokenLifetime(wrong).ok()) << wrong;
  EXPECT_FALSE(IssueToken(key_, {"a", {}, 1s}, clock_).ok()) << "no scope";
  EXPECT_FALSE(IssueToken(key_, {"a b", {Scope::kJob}, 1s}, clock_).ok());
}

}  // namespace access_tokens_test
}  // namespace zeus::daemon
