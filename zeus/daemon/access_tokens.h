#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/daemon/scope.h"
#include "zeus/http/regular_file.h"

// Tokens as the reference's daemon issues them: JSON web tokens (RFC 7519) that are signed by
// HMAC-SHA256 with a key that only the daemon and the issuing command know. The algorithm is fixed:
// a token that names another one is refused.
namespace zeus::daemon {

// The claims of a token about its bearer.
struct TokenClaims {
  std::string subject{};  // "ci"; never like the daemon's own: "anonymous", "uid:1001", "cert:ci".
  ScopeSet scopes{};
  std::optional<WallTime> expires{};
  std::optional<WallTime> not_before{};
  std::optional<WallTime> issued{};
  std::string id{};  // Empty where the issuer gave none.
};

// The key that tokens are signed with. Immutable.
class TokenKey {
 public:
  static constexpr std::size_t kFewestBytes = 32;

  // The bytes of the file, all of them. kPermissionDenied for a file that others than its owner can
  // read or could have written, kInvalidArgument for less than 32 bytes.
  static Result<TokenKey> Load(const std::filesystem::path& file);
  static Result<TokenKey> Create(std::string bytes);

  // Returns "header.payload.signature". kInvalidArgument for claims that Verify() would refuse.
  Result<std::string> Sign(const TokenClaims& claims) const;
  // The claims of a token that this key has signed, whatever their time. kPermissionDenied says why
  // there are none; no message has a part of the token.
  Result<TokenClaims> Verify(std::string_view token) const;

 private:
  explicit TokenKey(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<std::string> SignatureOf(std::string_view text) const;

  std::string bytes_;
};

// "90s", "30m", "1h", "7d"; nullopt for "never".
Result<std::optional<Seconds>> ParseTokenLifetime(std::string_view text);

// A token to be issued. A random id makes it possible to revoke it alone.
struct TokenRequest {
  std::string subject{};
  ScopeSet scopes{};
  std::optional<Seconds> lifetime{};
};
Result<std::string> IssueToken(const TokenKey& key, const TokenRequest& request,
                               const Clock& clock);

// Tokens that hold no longer, in a file with lines "jti ID" and "sub NAME"; lines that begin with #
// are comments. Immutable.
struct RevokedTokens {
  std::set<std::string, std::less<>> ids{};
  std::set<std::string, std::less<>> subjects{};
};
Result<RevokedTokens> ParseRevokedTokens(std::string_view text, const std::string& source);
// Adds a line to the file, which is created if there is none.
enum class RevokeBy { kId, kSubject };
Status RevokeToken(const std::filesystem::path& file, RevokeBy by, const std::string& name);

// Checks tokens and reads their claims. The file of revoked tokens is read again when it has
// changed; while it cannot be used, what was revoked before stays so, and the log says why.
// Thread-safe; the clock must outlive it.
class AccessTokens {
 public:
  static constexpr Seconds kLeeway{30};  // Clocks of machines differ.

  struct Options {
    std::filesystem::path revoked_file{};   // Empty: nothing is revoked.
    std::optional<Seconds> max_lifetime{};  // Set: tokens that live longer are refused.
  };
  // Fails where the file of revoked tokens cannot be used; that there is none is no failure.
  static Result<std::unique_ptr<AccessTokens>> Open(TokenKey key, Options options,
                                                    const Clock& clock);

  // kPermissionDenied says why a token does not hold.
  Result<TokenClaims> Check(std::string_view token);

 private:
  AccessTokens(TokenKey key, Options options, const Clock& clock);

  Status CheckTime(const TokenClaims& claims) const;
  Status Refresh();                                   // Needs mutex_.
  Status CheckRevocation(const TokenClaims& claims);  // Reads the file if it has changed.

  const TokenKey key_;
  const Options options_;
  const Clock& clock_;
  std::mutex mutex_;
  http::FileStamp stamp_{};  // Guarded by mutex_, as is the next.
  RevokedTokens revoked_{};
};

}  // namespace zeus::daemon
