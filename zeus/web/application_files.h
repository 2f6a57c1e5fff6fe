#pragma once

#include <string_view>
#include <vector>

namespace zeus::web {

// A file of the application in web/, as cmake/build_web_page.cmake built it.
struct ApplicationFile {
  std::string_view name;   // "app.js"
  std::string_view tag;    // Names this content: other content has another tag.
  std::string_view plain;  // The file as it is.
  std::string_view gzip;   // The same, compressed.
};

// app.html, app.js and app.css. Empty where the build had no node.
const std::vector<ApplicationFile>& ApplicationFiles();

}  // namespace zeus::web
