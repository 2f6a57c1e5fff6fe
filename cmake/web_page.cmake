# The page for reports (web/) becomes a string in libzeus_report: docs/web.md.

# zeus_web_page(VARIABLE): names the generated source. Without node the page in it is empty, and
# `--html` says so.
function(zeus_web_page variable)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/page_template.cc)
  set(${variable} ${source} PARENT_SCOPE)
  find_program(ZEUS_NODE node)
  find_program(ZEUS_NPM npm)
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(work ${PROJECT_BINARY_DIR}/web)
  set(script ${PROJECT_SOURCE_DIR}/cmake/build_web_page.cmake)
  if(NOT ZEUS_NODE OR NOT ZEUS_NPM)
    message(STATUS "Reports without HTML: node and npm were not found")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DWEB=${web} -DWORK=${work} -DNODE=${ZEUS_NODE} -DNPM=${ZEUS_NPM}
            -DSOURCE=${source} -P ${script}
    DEPENDS ${script} ${sources} ${web}/index.html ${web}/package.json ${web}/package-lock.json
            ${web}/.npmrc ${web}/tsconfig.json ${web}/vite.config.ts
    COMMENT "Building the page for reports" VERBATIM)
  add_custom_target(web_page DEPENDS ${source})
endfunction()
