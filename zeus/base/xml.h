#pragma once

#include <string>
#include <string_view>

namespace zeus {

// For the text of XML and HTML, and for attributes in double quotes. Control characters that XML
// cannot hold become blanks.
std::string EscapeXml(std::string_view text);

}  // namespace zeus
