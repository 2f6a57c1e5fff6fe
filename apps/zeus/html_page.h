#pragma once

#include <string>

// The frame of self-contained pages: light or dark as the reader prefers, nothing loaded from
// elsewhere.
namespace zeus::cli {

// `title` is escaped already.
std::string HtmlBegin(const std::string& title);
std::string HtmlEnd();

// What SVG plots look like; explicit colours, for not every renderer knows variables.
extern const char* const kSvgStyle;

}  // namespace zeus::cli
