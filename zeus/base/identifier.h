#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus {

// Whether a text can name something that lives in a database and in the path of a URL: letters,
// digits and -_.: only, at most 200 of them. An empty text passes. kInvalidArgument begins with
// `field`.
Status CheckIdentifier(std::string_view field, std::string_view text);

// Tenants of one database have a name space each, and the ids of their jobs begin with its name:
// "team/mnist". The default name space is "" and changes no id.
inline constexpr char kNameSpaceEnd = '/';
std::string ScopedId(std::string_view name_space, std::string_view id);
// Returns "team" for "team/mnist" and "" for "mnist".
std::string_view NameSpaceOf(std::string_view id);
// Returns "mnist" for both "team/mnist" and "mnist".
std::string_view WithoutNameSpace(std::string_view id);
// Does the same as CheckIdentifier() for an id that may have a name space.
Status CheckScopedIdentifier(std::string_view field, std::string_view text);

}  // namespace zeus
