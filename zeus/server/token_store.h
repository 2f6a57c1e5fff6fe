#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/server/regular_file.h"

namespace zeus::server {

enum class Role {
  kRead,   // Sees what is in its name space.
  kWrite,  // Also changes it.
  kAdmin,  // Does both in every name space, and sees how much each holds.
};

// What a file of tokens knows of one: enough to recognise it, nothing to make it from.
struct TokenEntry {
  std::string name{};
  Role role = Role::kWrite;
  std::string name_space{};  // Empty: the default one.
  std::string salt{};        // Hexadecimal, as is the next.
  std::string hash{};        // SHA-256 of salt and token.
};

// A file with a line `name role salt hash [namespace]` for each token. Tokens are 32 random bytes,
// so a salted hash is as good as a slow one: there is no dictionary to try. Thread-safe.
class TokenStore {
 public:
  // kNotFound, kPermissionDenied, or kInvalidArgument with the line that makes no sense; a file
  // that others can read or write is refused.
  static Result<TokenStore> Load(const std::filesystem::path& path);

  explicit TokenStore(std::vector<TokenEntry> entries) : entries_(std::move(entries)) {}

  // The entry of a token, compared without telling by its time how much of it was right.
  std::optional<TokenEntry> Find(std::string_view token) const;
  std::size_t size() const { return entries_.size(); }
  std::set<std::string> name_spaces() const;

 private:
  std::vector<TokenEntry> entries_;
};

// Makes a token, adds its hash to the file (made when there is none, for its owner only) and
// returns the token, which nobody will ever see again. Of the entry, name, role and name space are
// used. kConflict when the name is taken.
Result<std::string> AddToken(const std::filesystem::path& path, const TokenEntry& entry);

// The tokens of a file as it is now. Thread-safe.
class TokenFile {
 public:
  // As TokenStore::Load(); kInvalidArgument also when the file holds no token.
  static Result<std::unique_ptr<TokenFile>> Open(const std::filesystem::path& path);

  std::shared_ptr<const TokenStore> current() const;
  // Reads the file if it has changed since it was read last. Whether it had. What cannot be used
  // is an error, and the tokens of before stay.
  Result<bool> Refresh();

 private:
  TokenFile(std::filesystem::path path, FileStamp stamp, TokenStore store);

  const std::filesystem::path path_;
  FileStamp stamp_;  // Used by the caller of Refresh() alone.
  mutable std::mutex mutex_;
  std::shared_ptr<const TokenStore> current_;  // Guarded by mutex_.
};

}  // namespace zeus::server
