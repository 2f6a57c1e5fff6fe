#include "zeus/daemon/access_tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/daemon/trusted_file.h"

namespace zeus::daemon {
namespace {

constexpr std::size_t kLongestToken = 8192;
constexpr std::size_t kLongestTokenName = 200;
constexpr std::size_t kSignatureBytes = 32;
constexpr double kLatestSecond = 253402300799;  // The end of the year 9999.
constexpr Seconds kLongestLifetime{100.0 * 366 * 24 * 3600};

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

Error TokenRefused(std::string_view why) {
  return {ErrorCode::kPermissionDenied, fmt::format("the token {}", why)};
}

std::string ToBase64Url(std::string_view bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = (bits << 8U) | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) text += kAlphabet[(bits >> (count - 6)) & 63U];
  }
  if (count > 0) text += kAlphabet[(bits << (6 - count)) & 63U];
  return text;
}

// Strict: no padding, no blanks, and only one way to write the same bytes, so that a token has no
// other spelling under which it is not revoked.
std::optional<std::string> FromBase64Url(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 255U);
  }
  const bool spare_bits = (bits & ((1U << count) - 1U)) != 0;
  if (count >= 6 || spare_bits) return std::nullopt;
  return bytes;
}

// Printable ASCII without blanks, so that names in logs and lines of files are unambiguous.
bool IsTokenName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestTokenName &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

// Subjects that the daemon gives itself would make a token's bearer somebody else.
Status CheckTokenSubject(std::string_view subject) {
  if (!IsTokenName(subject))
    return InvalidArgument(fmt::format(
        "the subject must have 1 to {} printable characters without blanks", kLongestTokenName));
  if (subject.starts_with("uid:") || subject.starts_with("cert:") || subject == "anonymous")
    return InvalidArgument(
        fmt::format("the subject {} is one of the daemon's own", Quote(subject)));
  return Ok();
}

Result<Json> ParseTokenPart(std::string_view part, std::string_view what) {
  const auto text = FromBase64Url(part);
  if (!text) return TokenRefused(fmt::format("has a {} that is no base64url", what));
  auto json = ParseJson(*text);
  if (!json.ok() || !json.value().is_object())
    return TokenRefused(fmt::format("has a {} that is no JSON object", what));
  return json;
}

Status CheckTokenHeader(std::string_view part) {
  ZEUS_TRY(const Json header, ParseTokenPart(part, "header"));
  std::string algorithm;
  FieldReader reader("a header", header);
  reader.Require("alg", algorithm);
  if (!reader.FinishAllowingOthers().ok() || algorithm != "HS256")
    return TokenRefused("names another algorithm than HS256");
  // Extensions that must be understood (RFC 7515, 4.1.11): there are none here.
  if (header.contains("crit")) return TokenRefused("has extensions that are not known");
  return Ok();
}

Result<std::optional<WallTime>> MomentOf(const std::optional<double>& seconds,
                                         std::string_view field) {
  if (!seconds) return std::optional<WallTime>();
  if (!(*seconds >= 0.0 && *seconds <= kLatestSecond))
    return FieldError(field, "is no moment of this era");
  return std::optional(WallTime(std::chrono::microseconds(std::llround(*seconds * 1e6))));
}

Result<TokenClaims> ReadClaims(const Json& json) {
  TokenClaims claims;
  std::vector<std::string> scopes;
  std::array<std::optional<double>, 3> moments{};
  FieldReader reader("a token", json);
  reader.Require("sub", claims.subject);
  reader.Require("scopes", scopes);
  reader.Read("jti", claims.id);
  reader.Read("exp", moments[0]);  // The reference may write null for "never".
  reader.Read("nbf", moments[1]);
  reader.Read("iat", moments[2]);
  if (json.contains("aud")) reader.Fail("aud", "is not for this daemon");  // RFC 7519, 4.1.3.
  if (json.contains("jti") && !IsTokenName(claims.id)) reader.Fail("jti", "is no name");
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  ZEUS_RETURN_IF_ERROR(CheckTokenSubject(claims.subject));
  for (const std::string& name : scopes) {
    ZEUS_TRY(const Scope scope, ParseScope(name));
    claims.scopes.Add(scope);
  }
  ZEUS_TRY(claims.expires, MomentOf(moments[0], "exp"));
  ZEUS_TRY(claims.not_before, MomentOf(moments[1], "nbf"));
  ZEUS_TRY(claims.issued, MomentOf(moments[2], "iat"));
  return claims;
}

std::int64_t WholeSeconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

Json ToJson(const TokenClaims& claims) {
  // "admin" contains the others, and its name says so: a token is short.
  Json json = {{"sub", claims.subject},
               {"scopes", claims.scopes.Has(Scope::kAdmin) ? std::vector<std::string>{"admin"}
                                                           : claims.scopes.names()}};
  if (claims.expires) json["exp"] = WholeSeconds(*claims.expires);
  if (claims.not_before) json["nbf"] = WholeSeconds(*claims.not_before);
  if (claims.issued) json["iat"] = WholeSeconds(*claims.issued);
  if (!claims.id.empty()) json["jti"] = claims.id;
  return json;
}

}  // namespace

Result<TokenKey> TokenKey::Load(const std::filesystem::path& file) {
  ZEUS_TRY(std::string bytes, ReadTrustedFile(file, Secrecy::kOwnerOnly));
  auto key = Create(std::move(bytes));
  if (!key.ok()) return std::move(key).error().While(Printable(file.string()));
  return key;
}

Result<TokenKey> TokenKey::Create(std::string bytes) {
  if (bytes.size() < kFewestBytes)
    return InvalidArgument(fmt::format(
        "a key of {} bytes can be guessed: use {} random ones or more, as of openssl rand 32",
        bytes.size(), kFewestBytes));
  return TokenKey(std::move(bytes));
}

Result<std::string> TokenKey::SignatureOf(std::string_view text) const {
  std::string signature(kSignatureBytes, '\0');
  unsigned length = 0;
  if (HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(signature.data()), &length) == nullptr ||
      length != kSignatureBytes)
    return Error{ErrorCode::kInternal, "OpenSSL cannot compute an HMAC with SHA-256"};
  return signature;
}

Result<std::string> TokenKey::Sign(const TokenClaims& claims) const {
  ZEUS_RETURN_IF_ERROR(CheckTokenSubject(claims.subject));
  const std::string text =
      ToBase64Url(R"({"alg":"HS256","typ":"JWT"})") + "." + ToBase64Url(JsonText(ToJson(claims)));
  ZEUS_TRY(const std::string signature, SignatureOf(text));
  return text + "." + ToBase64Url(signature);
}

Result<TokenClaims> TokenKey::Verify(std::string_view token) const {
  if (token.size() > kLongestToken) return TokenRefused("is too long");
  const std::size_t first = token.find('.');
  const std::size_t last = token.rfind('.');
  if (first == last || token.find('.', first + 1) != last)
    return TokenRefused("does not have three parts");
  const auto signature = FromBase64Url(token.substr(last + 1));
  ZEUS_TRY(const std::string expected, SignatureOf(token.substr(0, last)));
  // Nothing of a token is looked at before it is known to be genuine.
  if (!signature || signature->size() != kSignatureBytes ||
      CRYPTO_memcmp(signature->data(), expected.data(), kSignatureBytes) != 0)
    return TokenRefused("was not signed with the key of this daemon");
  ZEUS_RETURN_IF_ERROR(CheckTokenHeader(token.substr(0, first)));
  ZEUS_TRY(const Json payload,
           ParseTokenPart(token.substr(first + 1, last - first - 1), "payload"));
  auto claims = ReadClaims(payload);
  if (!claims.ok())
    return TokenRefused(fmt::format("has wrong claims: {}", claims.error().message));
  return claims;
}

Result<std::optional<Seconds>> ParseTokenLifetime(std::string_view text) {
  if (text == "never") return std::optional<Seconds>();
  constexpr std::array kUnits = {std::pair{'s', 1}, std::pair{'m', 60}, std::pair{'h', 3600},
                                 std::pair{'d', 24 * 3600}};
  const auto unit =
      std::ranges::find(kUnits, text.empty() ? ' ' : text.back(), &std::pair<char, int>::first);
  const auto number = ParseUnsigned(text.substr(0, text.empty() ? 0 : text.size() - 1));
  if (unit == kUnits.end() || !number.ok() || number.value() == 0)
    return InvalidArgument(Quote(text) + " is no lifetime: write 7d, 1h, 30m, 90s or never");
  const Seconds lifetime(static_cast<double>(number.value()) * unit->second);
  if (lifetime > kLongestLifetime)
    return InvalidArgument(Quote(text) + " is longer than 100 years: write never");
  return std::optional(lifetime);
}

Result<std::string> IssueToken(const TokenKey& key, const TokenRequest& request,
                               const Clock& clock) {
  if (request.scopes.empty()) return InvalidArgument("a token needs a scope");
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1)
    return Error{ErrorCode::kUnavailable, "the system has no random numbers to make a token from"};
  TokenClaims claims{
      .subject = request.subject,
      .scopes = request.scopes,
      .issued = clock.WallNow(),
      .id = ToBase64Url({reinterpret_cast<const char*>(random.data()), random.size()})};
  if (request.lifetime)
    claims.expires =
        *claims.issued + std::chrono::duration_cast<std::chrono::microseconds>(*request.lifetime);
  return key.Sign(claims);
}

Result<RevokedTokens> ParseRevokedTokens(std::string_view text, const std::string& source) {
  RevokedTokens revoked;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::string_view kind = line.substr(0, line.find_first_of(" \t"));
    const std::string_view name = Trim(line.substr(kind.size()));
    if ((kind != "jti" && kind != "sub") || !IsTokenName(name))
      return InvalidArgument(
          fmt::format("{}:{}: write \"jti ID\" or \"sub NAME\"", Printable(source), number));
    (kind == "jti" ? revoked.ids : revoked.subjects).emplace(name);
  }
  return revoked;
}

Status RevokeToken(const std::filesystem::path& file, RevokeBy by, const std::string& name) {
  if (!IsTokenName(name)) return InvalidArgument(Quote(name) + " names no token");
  auto text = ReadTrustedFile(file);
  if (!text.ok() && text.error().code != ErrorCode::kNotFound) return std::move(text).error();
  std::string lines = text.ok() ? std::move(text).value() : "";
  ZEUS_TRY(const RevokedTokens revoked, ParseRevokedTokens(lines, file.string()));
  if ((by == RevokeBy::kId ? revoked.ids : revoked.subjects).contains(name)) return Ok();
  if (!lines.empty() && lines.back() != '\n') lines += '\n';
  lines += fmt::format("{} {}\n", by == RevokeBy::kId ? "jti" : "sub", name);
  return ReplaceFile(file, lines, Readers::kOwnerOnly);
}

AccessTokens::AccessTokens(TokenKey key, Options options, const Clock& clock)
    : key_(std::move(key)), options_(std::move(options)), clock_(clock) {}

Result<std::unique_ptr<AccessTokens>> AccessTokens::Open(TokenKey key, Options options,
                                                         const Clock& clock) {
  std::unique_ptr<AccessTokens> tokens(new AccessTokens(std::move(key), std::move(options), clock));
  const std::lock_guard lock(tokens->mutex_);
  ZEUS_RETURN_IF_ERROR(tokens->Refresh());
  return tokens;
}

Status AccessTokens::Refresh() {
  if (options_.revoked_file.empty()) return Ok();
  const auto stamp = http::FileStamp::Of(options_.revoked_file);
  if (stamp == stamp_) return Ok();
  stamp_ = stamp;  // A file that cannot be used is complained about once.
  if (stamp == http::FileStamp()) {
    revoked_ = {};
    return Ok();
  }
  ZEUS_TRY(const std::string text, ReadTrustedFile(options_.revoked_file));
  ZEUS_TRY(revoked_, ParseRevokedTokens(text, options_.revoked_file.string()));
  return Ok();
}

Status AccessTokens::CheckRevocation(const TokenClaims& claims) {
  const std::lock_guard lock(mutex_);
  if (const Status fresh = Refresh(); !fresh.ok())
    log::Failure("{}: tokens that were revoked before stay so, others are not",
                 fresh.error().message);
  if (revoked_.subjects.contains(claims.subject) || revoked_.ids.contains(claims.id))
    return TokenRefused("was revoked");
  return Ok();
}

Status AccessTokens::CheckTime(const TokenClaims& claims) const {
  const WallTime now = clock_.WallNow();
  if (claims.expires && *claims.expires + kLeeway <= now) return TokenRefused("has expired");
  if (claims.not_before && *claims.not_before - kLeeway > now)
    return TokenRefused("is not valid yet");
  if (!options_.max_lifetime) return Ok();
  if (!claims.expires) return TokenRefused("never expires, which this daemon does not accept");
  // Where nothing says when it was issued, it was not before now.
  const WallTime issued = std::min(claims.issued.value_or(now), now);
  if (*claims.expires - issued > *options_.max_lifetime + kLeeway)
    return TokenRefused("lives longer than this daemon accepts");
  return Ok();
}

Result<TokenClaims> AccessTokens::Check(std::string_view token) {
  ZEUS_TRY(TokenClaims claims, key_.Verify(token));
  ZEUS_RETURN_IF_ERROR(CheckTime(claims));
  ZEUS_RETURN_IF_ERROR(CheckRevocation(claims));
  return claims;
}

}  // namespace zeus::daemon
