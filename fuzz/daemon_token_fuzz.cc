// Verifies tokens, both as they come and with the input as their genuinely signed payload: the
// first must never pass, and claims that pass are signed and verified again.
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "zeus/daemon/access_tokens.h"

namespace {

const std::string kSecret = "0123456789abcdef0123456789abcdef";

void Require(bool promise) {
  if (!promise) std::abort();
}

std::string Encoded(const unsigned char* bytes, std::size_t size) {
  std::string text(4 * (size / 3 + 1) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes, static_cast<int>(size));
  text.resize(static_cast<std::size_t>(length));
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string Signed(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  HMAC(EVP_sha256(), kSecret.data(), static_cast<int>(kSecret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(), &size);
  return text + "." + Encoded(bytes.data(), size);
}

void FuzzClaims(const zeus::daemon::TokenKey& key, const std::string& token) {
  const auto claims = key.Verify(token);
  if (!claims.ok()) return;
  Require(!claims.value().subject.empty() && !claims.value().subject.starts_with("uid:"));
  const auto again = key.Sign(claims.value());
  Require(again.ok());
  Require(key.Verify(again.value()).value().subject == claims.value().subject);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kKey = zeus::daemon::TokenKey::Create(kSecret).value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Require(!kKey.Verify(text).ok());
  // eyJhbGciOiJIUzI1NiJ9 is {"alg":"HS256"}.
  FuzzClaims(kKey, Signed("eyJhbGciOiJIUzI1NiJ9." + Encoded(data, size)));
  FuzzClaims(kKey, Signed(std::string(text)));
  (void)zeus::daemon::ParseTokenLifetime(text);
  (void)zeus::daemon::ParseRevokedTokens(text, "revoked");
  return 0;
}
