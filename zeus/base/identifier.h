#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus {

// Whether a text can name something that lives in a database and in the path of a URL: letters,
// digits and -_.: only, at most 200. An empty one is let pass. kInvalidArgument begins with
// `field`.
Status CheckIdentifier(std::string_view field, std::string_view text);

// Tenants of one database have a name space each. The id of what belongs to one begins with its
// name: "team/mnist". The name space of everybody else is "", and changes no id.
inline constexpr char kNameSpaceEnd = '/';
std::string ScopedId(std::string_view name_space, std::string_view id);
// "team" of "team/mnist", "" of "mnist".
std::string_view NameSpaceOf(std::string_view id);
// "mnist" of "team/mnist", and of "mnist".
std::string_view WithoutNameSpace(std::string_view id);
// As CheckIdentifier(), for an id that may be that of a tenant.
Status CheckScopedIdentifier(std::string_view field, std::string_view text);

}  // namespace zeus
