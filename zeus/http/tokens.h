#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/http/regular_file.h"

namespace zeus::http {

enum class Role {
  kRead,   // Reads in its name space.
  kWrite,  // Also changes things there.
  kAdmin,  // Does both in every name space, and sees how much each holds.
};

// A line of a token file. It is enough to recognise a token, and useless for making one.
struct TokenEntry {
  std::string name{};
  Role role = Role::kWrite;
  std::string name_space{};  // Empty: the default one.
  std::string salt{};        // Hexadecimal.
  std::string hash{};        // Hexadecimal SHA-256 of salt and token.
};

// The tokens of a file with a line `name role salt hash [namespace]` for each. Tokens are 32 random
// bytes, so there is no dictionary to try, and a slow hash would protect no better than this one.
// Immutable.
class TokenStore {
 public:
  // Returns kNotFound, kPermissionDenied when others than the owner can read or write the file, or
  // kInvalidArgument with the number of a malformed line.
  static Result<TokenStore> Load(const std::filesystem::path& path);

  explicit TokenStore(std::vector<TokenEntry> entries) : entries_(std::move(entries)) {}

  // Returns the entry of a token. Takes the same time for every wrong token of the same length.
  std::optional<TokenEntry> Find(std::string_view token) const;
  std::size_t size() const { return entries_.size(); }
  std::set<std::string> name_spaces() const;

 private:
  std::vector<TokenEntry> entries_;
};

// Makes a token with the entry's name, role and name space, adds its hash to the file (created for
// its owner only when it does not exist) and returns the token, which is stored nowhere. Returns
// kConflict when the name is taken.
Result<std::string> AddToken(const std::filesystem::path& path, const TokenEntry& entry);

// A token file that can be read again while the server runs. Thread-safe.
class TokenFile {
 public:
  // As TokenStore::Load(); returns kInvalidArgument also when the file holds no token.
  static Result<std::unique_ptr<TokenFile>> Open(const std::filesystem::path& path);

  std::shared_ptr<const TokenStore> current() const;
  // Reads the file if it has changed since the last time, and returns whether it had. When the new
  // content cannot be used, returns an error and keeps the tokens of before. One thread.
  Result<bool> Refresh();

 private:
  TokenFile(std::filesystem::path path, FileStamp stamp, TokenStore store);

  const std::filesystem::path path_;
  FileStamp stamp_;  // Used by Refresh() alone.
  mutable std::mutex mutex_;
  std::shared_ptr<const TokenStore> current_;  // Guarded by mutex_.
};

// Slows down the guessing of tokens. An address that sent kMostFailures wrong tokens gets only one
// further verdict every kRefill, except about tokens that it has used successfully before: clients
// that share an address with an attacker are not shut out. Bounded memory. Thread-safe; the clock
// must outlive it.
class LoginLimiter {
 public:
  static constexpr int kMostFailures = 20;
  static constexpr Seconds kRefill{3};
  static constexpr std::size_t kMostAddresses = 4096;
  static constexpr std::size_t kMostNames = 64;  // Remembered for each address.

  explicit LoginLimiter(const Clock& clock) : clock_(clock) {}

  enum class Verdict { kAccept, kReject, kTooMany };
  // `name` is that of the token, empty when the token is wrong.
  Verdict Judge(const std::string& address, const std::string& name);

 private:
  struct Record {
    double failures = 0.0;          // Decreases with time.
    TimePoint at{};                 // The latest attempt.
    std::set<std::string> names{};  // Tokens that were accepted.
  };

  void ForgetOldest();

  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Record> records_{};  // By address. Guarded by mutex_.
};

}  // namespace zeus::http
