# The page for reports (web/) becomes a string in libzeus_report: docs/web.md.

# zeus_web_page(VARIABLE): names the generated source. Without node, or before web/ exists, the page
# in it is empty.
function(zeus_web_page variable)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/page_template.cc)
  set(${variable} ${source} PARENT_SCOPE)
  file(GENERATE OUTPUT ${source} CONTENT [[
#include "zeus/report/page_template.h"
std::string_view zeus::report::PageTemplate() { return {}; }
]])
endfunction()
