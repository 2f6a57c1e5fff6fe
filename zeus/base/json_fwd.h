#pragma once

#include <nlohmann/json_fwd.hpp>

namespace zeus {

// Keeps the order in which fields were written: people read our files. Headers that only name the
// type include this file; json.h costs three seconds of compilation and is for .cc files.
using Json = nlohmann::ordered_json;

}  // namespace zeus
