#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/ranks/rank_place.h"

namespace zeus {

// Where the chair of a meeting of ranks listens, and the secret that admits to it.
struct MeetingAddress {
  std::vector<std::string> hosts{};  // To be tried in this order.
  std::uint16_t port = 0;
  std::string token{};
};

// How the ranks of a launch find their chair: by a file, readable by its user alone, in a folder
// that all nodes see, as home folders of clusters are. There may be one chair after the other; each
// has a term, counted from 0. Where no such folder exists, ZEUS_RANKS_ADDRESS=host:port names the
// machine and port of rank 0 instead, and then there is one term only. One owner.
class MeetingPoint {
 public:
  // Uses ZEUS_RANKS_ADDRESS with ZEUS_RANKS_TOKEN, else the folder ZEUS_RANKS_DIR, else one in the
  // home folder of the user. kInvalidArgument for a malformed address, kUnavailable where there is
  // no folder.
  static Result<MeetingPoint> Of(const RankPlace& place, const Environment& environment);
  // The same in a given folder, which is made if need be.
  static Result<MeetingPoint> In(std::filesystem::path folder, const RankPlace& place);

  // Makes this process the chair of a term, listening on `port`: its token. kConflict when the term
  // has a chair already.
  Result<std::string> Claim(int term, std::uint16_t port);
  // The port on which a chair must listen; 0: any.
  std::uint16_t port() const { return address_ ? address_->port : 0; }

  // Where ranks look for their chair, for people: "in the folder …", "at host:port …".
  std::string Where() const;

  // The chair of a term; nullopt as long as there is none.
  std::optional<MeetingAddress> Find(int term) const;
  // Whether a further term can begin.
  bool has_term(int term) const { return term == 0 || !address_; }

  // Takes away what Claim() wrote for the term.
  void Dissolve(int term) const;

 private:
  std::filesystem::path FileOf(int term) const;

  std::filesystem::path folder_;
  std::string name_;
  std::optional<MeetingAddress> address_;  // Given by the user; then there is no folder.
};

}  // namespace zeus
