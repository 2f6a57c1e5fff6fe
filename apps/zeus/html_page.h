#pragma once

#include <string>

// The frame of self-contained pages, which follow the reader's light or dark theme and load nothing
// from elsewhere.
namespace zeus::cli {

// `title` must be escaped already.
std::string HtmlBegin(const std::string& title);
std::string HtmlEnd();

// The style of SVG plots. Colours are explicit, because not every renderer supports variables.
extern const char* const kSvgStyle;

}  // namespace zeus::cli
