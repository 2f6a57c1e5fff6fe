#include "zeus/http/tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <sstream>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/identifier.h"
#include "zeus/base/text.h"

namespace zeus::http {
namespace {

constexpr std::string_view kTokenStart = "zeus_";  // Lets scanners for leaked secrets recognise it.
constexpr std::size_t kHashDigits = 2 * SHA256_DIGEST_LENGTH;
constexpr std::size_t kLongestName = 100;

std::string Hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

template <std::size_t kSize>
Result<std::string> RandomText() {
  std::array<unsigned char, kSize> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    return Error{ErrorCode::kUnavailable, "the system has no random numbers to make a token from"};
  return Hexadecimal(bytes);
}

std::string HashToken(std::string_view salt, std::string_view token) {
  const std::string text = std::string(salt) + std::string(token);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return Hexadecimal(digest);
}

constexpr std::array kRoles = {std::pair{Role::kRead, std::string_view("read")},
                               std::pair{Role::kWrite, std::string_view("write")},
                               std::pair{Role::kAdmin, std::string_view("admin")}};

std::string_view RoleName(Role role) {
  return std::ranges::find(kRoles, role, &decltype(kRoles)::value_type::first)->second;
}

std::optional<TokenEntry> ParseLine(const std::string& line) {
  std::istringstream words(line);
  TokenEntry entry;
  std::string role;
  std::string extra;
  if (!(words >> entry.name >> role >> entry.salt >> entry.hash)) return std::nullopt;
  words >> entry.name_space;
  if (words >> extra || !CheckIdentifier("", entry.name_space).ok()) return std::nullopt;
  const auto known =
      std::ranges::find(kRoles, std::string_view(role), &decltype(kRoles)::value_type::second);
  if (known == kRoles.end()) return std::nullopt;
  entry.role = known->first;
  if (entry.hash.size() != kHashDigits) return std::nullopt;
  return entry;
}

// A user who can write the file can add a token, so it must belong to its owner alone.
Status CheckMode(const std::filesystem::path& path) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) return FileError(path, errno);
  if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Error{
        ErrorCode::kPermissionDenied,
        fmt::format("{} must be for its owner only: chmod 600 it", Printable(path.string()))};
  return Ok();
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && name.front() != '#' &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

Result<TokenStore> TokenStore::Load(const std::filesystem::path& path) {
  ZEUS_RETURN_IF_ERROR(CheckMode(path));
  ZEUS_RETURN_IF_ERROR(CheckRegularFile(path));
  ZEUS_TRY(const std::string text, ReadSmallFile(path, 1024 * 1024));
  std::vector<TokenEntry> entries;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (Trim(line).empty() || line.front() == '#') continue;
    auto entry = ParseLine(line);
    if (!entry)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: line {} is no token: make one with zeus serve --new-token",
                               Printable(path.string()), number)};
    entries.push_back(*std::move(entry));
  }
  return TokenStore(std::move(entries));
}

std::optional<TokenEntry> TokenStore::Find(std::string_view token) const {
  std::optional<TokenEntry> found;
  for (const TokenEntry& entry : entries_) {
    const std::string hash = HashToken(entry.salt, token);
    if (CRYPTO_memcmp(hash.data(), entry.hash.data(), kHashDigits) == 0) found = entry;
  }
  return found;
}

std::set<std::string> TokenStore::name_spaces() const {
  std::set<std::string> names;
  for (const TokenEntry& entry : entries_) names.insert(entry.name_space);
  return names;
}

Result<std::string> AddToken(const std::filesystem::path& path, const TokenEntry& entry) {
  const std::string& name = entry.name;
  ZEUS_RETURN_IF_ERROR(CheckIdentifier("--namespace", entry.name_space));
  if (!IsName(name))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} cannot be the name of a token: use up to {} printable characters "
                             "without blanks",
                             Quote(name), kLongestName)};
  std::string text;
  if (std::filesystem::exists(path)) {
    // Loading it makes sure that it is a token file before it is rewritten.
    ZEUS_TRY(const TokenStore store, TokenStore::Load(path));
    ZEUS_TRY(text, ReadSmallFile(path, 1024 * 1024));
    if (("\n" + text).find("\n" + name + " ") != std::string::npos)
      return Error{ErrorCode::kConflict,
                   fmt::format("{} has a token of the name {} already: remove its line first",
                               Printable(path.string()), name)};
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  ZEUS_TRY(const std::string secret, RandomText<32>());
  ZEUS_TRY(const std::string salt, RandomText<16>());
  const std::string token = std::string(kTokenStart) + secret;
  text += fmt::format("{} {} {} {}{}{}\n", name, RoleName(entry.role), salt, HashToken(salt, token),
                      entry.name_space.empty() ? "" : " ", entry.name_space);
  ZEUS_RETURN_IF_ERROR(ReplaceFile(path, text, Readers::kOwnerOnly));
  return token;
}

TokenFile::TokenFile(std::filesystem::path path, FileStamp stamp, TokenStore store)
    : path_(std::move(path)),
      stamp_(stamp),
      current_(std::make_shared<const TokenStore>(std::move(store))) {}

Result<std::unique_ptr<TokenFile>> TokenFile::Open(const std::filesystem::path& path) {
  const FileStamp stamp = FileStamp::Of(path);
  ZEUS_TRY(TokenStore store, TokenStore::Load(path));
  if (store.size() == 0)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{0} holds no token: make one with zeus serve --tokens {0} --new-token "
                    "NAME",
                    Printable(path.string()))};
  return std::unique_ptr<TokenFile>(new TokenFile(path, stamp, std::move(store)));
}

std::shared_ptr<const TokenStore> TokenFile::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

Result<bool> TokenFile::Refresh() {
  const FileStamp stamp = FileStamp::Of(path_);
  if (stamp == stamp_) return false;
  stamp_ = stamp;  // An unusable file is reported once, not at every call.
  ZEUS_TRY(TokenStore store, TokenStore::Load(path_));
  auto fresh = std::make_shared<const TokenStore>(std::move(store));
  const std::lock_guard lock(mutex_);
  current_ = std::move(fresh);
  return true;
}

LoginLimiter::Verdict LoginLimiter::Judge(const std::string& address, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  auto found = records_.find(address);
  if (found == records_.end()) {
    if (records_.size() >= kMostAddresses) ForgetOldest();
    found = records_.try_emplace(address, Record{.at = now}).first;
  }
  Record& record = found->second;
  record.failures = std::max(0.0, record.failures - (now - record.at) / kRefill);
  record.at = now;
  if (!name.empty() && record.names.contains(name)) return Verdict::kAccept;
  if (record.failures + 1.0 > kMostFailures) return Verdict::kTooMany;
  if (name.empty()) {
    record.failures += 1.0;
    return Verdict::kReject;
  }
  if (record.names.size() < kMostNames) record.names.insert(name);
  return Verdict::kAccept;
}

// Forgets the address that was silent for the longest time: one that guesses is never silent.
void LoginLimiter::ForgetOldest() {
  const auto oldest =
      std::ranges::min_element(records_, {}, [](const auto& entry) { return entry.second.at; });
  records_.erase(oldest);
}

}  // namespace zeus::http
