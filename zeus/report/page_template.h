#pragma once

#include <string_view>

namespace zeus::report {

// The page that web/ builds, with kDataPlace where the data belongs; empty in a program that was
// built without node. Defined in the build tree (cmake/web_page.cmake).
std::string_view PageTemplate();

inline constexpr std::string_view kDataPlace = "\"zeus-report-data\"";
inline constexpr std::string_view kTitlePlace = "<title>Zeus report</title>";

}  // namespace zeus::report
