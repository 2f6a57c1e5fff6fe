#pragma once

#include <nlohmann/json_fwd.hpp>

namespace zeus {

// Keeps the order in which fields were written: people read our files. Headers that only name the
// type include this file; json.h, which costs three seconds of compilation, is for those who use
// it.
using Json = nlohmann::ordered_json;

}  // namespace zeus
