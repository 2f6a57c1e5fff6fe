#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/recording/identities.h"

namespace zeus::recording {

// A literal text that says whose machine this is, and the word that stands for it.
struct KnownIdentity {
  std::string text;
  std::string replacement;
};

// The home folder, the user's and the machine's names of this process.
std::vector<KnownIdentity> IdentitiesOfThisProcess();

// Takes secrets and identities out of text that is sent to somebody: values of settings whose names
// speak of passwords, tokens, keys or secrets; user and password in URLs; what follows "Bearer";
// home folders, names of users and machines; UUIDs; addresses of other machines; long words of
// mixed letters and digits, as tokens are. Rather too much than too little. One owner.
class Scrubber {
 public:
  Scrubber(const IdentityMask& mask, std::vector<KnownIdentity> known);

  std::string Text(std::string_view text) const;
  // The same for all strings of a document; values of secret names become "removed".
  Json Document(const Json& json) const;

 private:
  std::string Line(std::string line) const;

  const IdentityMask& mask_;
  std::vector<KnownIdentity> known_;  // The longest first.
};

}  // namespace zeus::recording
