#pragma once

#include <string_view>

#include "zeus/base/result.h"

namespace zeus {

// Whether a text can name something that lives in a database and in the path of a URL: letters,
// digits and -_.: only, at most 200. An empty one is let pass. kInvalidArgument begins with
// `field`.
Status CheckIdentifier(std::string_view field, std::string_view text);

}  // namespace zeus
