#pragma once

#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/colosseum/arena.h"
#include "zeus/http/message.h"
#include "zeus/http/router.h"

namespace zeus::colosseum {

// Each function adds a family of routes to the table. The arena must outlive the router.
void AddDuelRoutes(Arena& arena, http::Router& router);  // /zeus/…
void AddReferenceRoutes(Arena& arena,
                        http::Router& router);  // As the reference's backend has them.

// The parts that both share.

http::Answer RefusalOf(const Refusal& refusal, http::Dialect dialect);
// A body that is a JSON object; kInvalidArgument otherwise.
Result<Json> BodyOf(const http::Request& request);

// Answers with the stream of a duel's texts: `format` makes the bytes of each news, `last` is set
// for the end of the answers. A duel that failed ends as `failure` says.
enum class FailureEnd { kTold, kCut };
struct StreamShape {
  std::string_view content_type{};
  std::function<std::string(const Follower::News& news)> format{};
  FailureEnd failure = FailureEnd::kTold;
};
http::Answer StreamOf(Arena& arena, const std::string& id, Follower::Position from,
                      StreamShape shape, http::Dialect dialect);

}  // namespace zeus::colosseum
