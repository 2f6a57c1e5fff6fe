#include "zeus/recording/scrubber.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"

namespace zeus::recording {
namespace {

constexpr std::string_view kRemoved = "removed";
constexpr std::size_t kShortestName = 3;    // Shorter names of users are parts of too many words.
constexpr std::size_t kShortestToken = 20;  // Words of letters and digits.
constexpr std::size_t kUuidSize = 36;
constexpr std::array<std::string_view, 10> kSecretWords = {
    "password", "passwd",  "secret", "token",      "api_key",
    "apikey",   "private", "cookie", "credential", "authorization"};

bool IsAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsNamePart(char c) { return IsAlphanumeric(c) || c == '_' || c == '-'; }

bool IsSecretName(std::string_view name) {
  const std::string lower = LowerCase(name);
  return std::ranges::any_of(
      kSecretWords, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

// Replaces a text wherever it stands alone, as a word.
void ReplaceWord(std::string& line, std::string_view word, std::string_view replacement) {
  for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at)) {
    const std::size_t end = at + word.size();
    const bool alone = (at == 0 || !IsAlphanumeric(line[at - 1])) &&
                       (end >= line.size() || !IsAlphanumeric(line[end]));
    if (alone) line.replace(at, word.size(), replacement);
    at += alone ? replacement.size() : 1;
  }
}

// "/home/anna/x" names a user, whoever that is.
void ReplaceHomes(std::string& line) {
  constexpr std::string_view kHomes = "/home/";
  for (std::size_t at = line.find(kHomes); at != std::string::npos; at = line.find(kHomes, at)) {
    at += kHomes.size();
    std::size_t end = at;
    while (end < line.size() && (IsNamePart(line[end]) || line[end] == '.')) ++end;
    line.replace(at, end - at, "user");
  }
}

// "postgresql://anna:pw@host/db" becomes "postgresql://removed@host/db".
void ReplaceUrlUsers(std::string& line) {
  constexpr std::string_view kMark = "://";
  for (std::size_t at = line.find(kMark); at != std::string::npos; at = line.find(kMark, at)) {
    at += kMark.size();
    const std::size_t end = std::min(line.find_first_of("/ \t\"'", at), line.size());
    const std::size_t user = line.substr(at, end - at).rfind('@');
    if (user != std::string::npos) line.replace(at, user, kRemoved);
  }
}

// The value of a setting with a secret name, to the end of the line: it may hold blanks.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void RemoveSecretValues(std::string& line) {
  for (std::size_t at = 0; at < line.size();) {
    if (!IsNamePart(line[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && IsNamePart(line[end])) ++end;
    std::size_t mark = end;
    while (mark < line.size() && (line[mark] == ' ' || line[mark] == '"' || line[mark] == '\''))
      ++mark;
    const bool assigned = mark < line.size() && (line[mark] == '=' || line[mark] == ':');
    const std::string_view name = std::string_view(line).substr(at, end - at);
    // "--token VALUE" of a command line has no mark.
    const bool is_option = name.starts_with("--") && mark < line.size();
    if (IsSecretName(name) && (assigned || is_option)) {
      line.replace(assigned ? mark + 1 : end, std::string::npos, " removed");
      return;
    }
    if (LowerCase(name) == "bearer" || LowerCase(name) == "basic") {
      line.replace(end, std::string::npos, " removed");
      return;
    }
    at = end;
  }
}

bool IsUuid(std::string_view text) {
  for (std::size_t i = 0; i < kUuidSize; ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? text[i] != '-' : std::isxdigit(static_cast<unsigned char>(text[i])) == 0)
      return false;
  }
  return true;
}

// Versions have dots and short parts between them; the parts of a token are long.
bool LooksLikeToken(std::string_view word) {
  constexpr std::ptrdiff_t kEnoughDigits = 4;
  if (const std::size_t dot = word.find('.'); dot != std::string_view::npos)
    return LooksLikeToken(word.substr(0, dot)) || LooksLikeToken(word.substr(dot + 1));
  if (word.size() < kShortestToken) return false;
  const auto digits = std::ranges::count_if(word, IsDigit);
  const auto letters = std::ranges::count_if(
      word, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  return digits >= kEnoughDigits && letters >= kEnoughDigits;
}

// Four numbers with dots between them that are not of this machine itself.
bool IsForeignAddress(std::string_view word) {
  if (std::ranges::count(word, '.') != 3) return false;
  if (!std::ranges::all_of(word, [](char c) { return IsDigit(c) || c == '.'; })) return false;
  return !word.starts_with("127.") && word != "0.0.0.0";
}

std::string ScrubbedWord(std::string_view word, const IdentityMask& mask) {
  constexpr std::array<std::string_view, 3> kPrefixes = {"GPU-", "MIG-", ""};
  for (const std::string_view prefix : kPrefixes)
    if (word.size() == prefix.size() + kUuidSize && word.starts_with(prefix) &&
        IsUuid(word.substr(prefix.size())))
      return mask.Text(word);
  if (IsForeignAddress(word)) return "address";
  return LooksLikeToken(word) ? std::string(kRemoved) : std::string(word);
}

// Words of letters, digits and what stands inside of tokens and addresses.
void ReplaceTokens(std::string& line, const IdentityMask& mask) {
  std::string scrubbed;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && (IsNamePart(line[end]) || line[end] == '.' || line[end] == '+'))
      ++end;
    if (end == at) {
      scrubbed += line[at++];
      continue;
    }
    scrubbed += ScrubbedWord(std::string_view(line).substr(at, end - at), mask);
    at = end;
  }
  line = std::move(scrubbed);
}

}  // namespace

std::vector<KnownIdentity> IdentitiesOfThisProcess() {
  std::vector<KnownIdentity> known;
  const auto add = [&](const char* text, const char* replacement) {
    if (text == nullptr || std::string_view(text).size() < kShortestName) return;
    if (std::string_view(text) != "root") known.push_back({text, replacement});
  };
  add(std::getenv("HOME"), "~");
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) add(std::getenv(variable), "user");
  if (const auto* const user = ::getpwuid(::getuid()); user != nullptr) {
    add(user->pw_name, "user");
    add(user->pw_dir, "~");
  }
  const std::string host = HostName();
  if (host != "localhost") add(host.c_str(), "host");
  add(host.substr(0, host.find('.')).c_str(), host == "localhost" ? "localhost" : "host");
  return known;
}

Scrubber::Scrubber(const IdentityMask& mask, std::vector<KnownIdentity> known)
    : mask_(mask), known_(std::move(known)) {
  std::ranges::stable_sort(known_, std::ranges::greater{},
                           [](const KnownIdentity& identity) { return identity.text.size(); });
}

std::string Scrubber::Line(std::string line) const {
  if (!mask_.hides()) {
    RemoveSecretValues(line);
    return line;
  }
  ReplaceUrlUsers(line);
  for (const KnownIdentity& identity : known_)
    ReplaceWord(line, identity.text, identity.replacement);
  ReplaceHomes(line);
  RemoveSecretValues(line);
  ReplaceTokens(line, mask_);
  return line;
}

std::string Scrubber::Text(std::string_view text) const {
  std::string scrubbed;
  while (true) {
    const std::size_t end = text.find('\n');
    scrubbed += Line(std::string(text.substr(0, end)));
    if (end == std::string_view::npos) return scrubbed;
    scrubbed += '\n';
    text.remove_prefix(end + 1);
  }
}

Json Scrubber::Document(const Json& json) const {
  if (json.is_string()) return Text(json.get<std::string>());
  if (json.is_array()) {
    Json scrubbed = Json::array();
    for (const Json& element : json) scrubbed.push_back(Document(element));
    return scrubbed;
  }
  if (!json.is_object()) return json;
  Json scrubbed = Json::object();
  for (const auto& [name, value] : json.items())
    scrubbed[Text(name)] = IsSecretName(name) && !value.is_structured()
                               ? Json(std::string(kRemoved))
                               : Document(value);
  return scrubbed;
}

}  // namespace zeus::recording
