#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "apps/zeus/commands.h"

namespace zeus::cli {

// A verb and the function that declares its options.
struct VerbEntry {
  std::string_view name;
  std::function<void(Verb app, Action& action, const CommandTail& tail)> add;
};

// The function of a verb that runs no command.
inline std::function<void(Verb, Action&, const CommandTail&)> WithoutTail(void (*add)(Verb,
                                                                                      Action&)) {
  return [add](Verb app, Action& action, const CommandTail& /*tail*/) { add(app, action); };
}

// The verbs of this program, by their names: all of them in verbs.cc, and in server_verbs.cc those
// that go on in zeus-servers.
std::vector<VerbEntry> Verbs();

// Whether these are all verbs of zeus, as in verbs.cc.
extern const bool kHasAllVerbs;

}  // namespace zeus::cli
