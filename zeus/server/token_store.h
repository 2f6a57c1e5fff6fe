#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::server {

enum class Role { kRead, kWrite };

// What a file of tokens knows of one: enough to recognise it, nothing to make it from.
struct TokenEntry {
  std::string name{};
  Role role = Role::kWrite;
  std::string salt{};  // Hexadecimal, as is the next.
  std::string hash{};  // SHA-256 of salt and token.
};

// A file with a line `name role salt hash` for each token. Tokens are 32 random bytes, so a salted
// hash is as good as a slow one: there is no dictionary to try. Thread-safe.
class TokenStore {
 public:
  // kNotFound, kPermissionDenied, or kInvalidArgument with the line that makes no sense; a file
  // that others can read or write is refused.
  static Result<TokenStore> Load(const std::filesystem::path& path);

  explicit TokenStore(std::vector<TokenEntry> entries) : entries_(std::move(entries)) {}

  // The entry of a token, compared without telling by its time how much of it was right.
  std::optional<TokenEntry> Find(std::string_view token) const;
  std::size_t size() const { return entries_.size(); }

 private:
  std::vector<TokenEntry> entries_;
};

// Makes a token, adds its hash to the file (made when there is none, for its owner only) and
// returns the token, which nobody will ever see again. kConflict when the name is taken.
Result<std::string> AddToken(const std::filesystem::path& path, const std::string& name, Role role);

}  // namespace zeus::server
