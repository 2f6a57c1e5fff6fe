# cmake -DWEB=… -DWORK=… -DNODE=… -DNPM=… -DSOURCE=… -DAPPLICATION=… -P build_web_page.cmake
# Builds web/ in the folder WORK of the build tree, and writes the page for reports as C++ to SOURCE
# and the files of the application to APPLICATION. What npm fetched stays in WORK; it is fetched again
# only when package-lock.json changed. Where that cannot be done (no node or an old one, no network on
# first use), both are empty: the rest of Zeus does not need them. A mistake in web/ is an error.

# Leaves both empty and says why; a change below web/ tries again.
function(without_page reason)
  message(NOTICE "Reports without HTML, servers without pages: ${reason}")
  write_source("")
  file(WRITE ${APPLICATION} "#include \"zeus/web/application_files.h\"\n\n\
namespace zeus::web {\n\nconst std::vector<ApplicationFile>& ApplicationFiles() {\n\
  static const std::vector<ApplicationFile> none;\n  return none;\n}\n\n}  // namespace zeus::web\n")
endfunction()

function(write_source page)
  # Compilers limit how long one literal may be, so it is cut into parts.
  set(parts "")
  string(LENGTH "${page}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${page}" ${at} 8000 part)
    string(APPEND parts "    R\"zeus-page(${part})zeus-page\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  file(WRITE ${SOURCE} "#include \"zeus/report/page_template.h\"\n\n\
namespace zeus::report {\n\nstd::string_view PageTemplate() {\n  return \"\"\n${parts}    ;\n}\n\n\
}  // namespace zeus::report\n")
endfunction()

# Runs a program in WORK; sets `failure` to what it said if it failed.
function(try_run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK}
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said TIMEOUT 300)
  set(failure "" PARENT_SCOPE)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    set(failure "${command} failed:\n${said}" PARENT_SCOPE)
  endif()
endfunction()

if(NOT NODE OR NOT NPM)
  without_page("node and npm were not found")
  return()
endif()
execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "v" "" version "${version}")
if(version VERSION_LESS 18)
  without_page("node is ${version}, and 18 or newer is needed")
  return()
endif()

file(REMOVE_RECURSE ${WORK}/src ${WORK}/dist)
file(GLOB settings ${WEB}/*.html ${WEB}/*.json ${WEB}/*.ts ${WEB}/embed.js)
file(COPY ${WEB}/src ${settings} ${WEB}/.npmrc DESTINATION ${WORK})
file(SHA256 ${WEB}/package-lock.json lock)
set(fetched "")
if(EXISTS ${WORK}/fetched)
  file(READ ${WORK}/fetched fetched)
endif()
if(NOT fetched STREQUAL lock)
  try_run(${NPM} ci --prefer-offline --no-audit --no-fund)
  if(failure)
    without_page("${failure}")
    return()
  endif()
  file(WRITE ${WORK}/fetched ${lock})
endif()
try_run(${NPM} run build)
if(failure)
  message(FATAL_ERROR "The pages do not build. ${failure}")
endif()
try_run(${NODE} embed.js dist/app ${APPLICATION})
if(failure)
  message(FATAL_ERROR "The application could not be written as C++. ${failure}")
endif()
file(READ ${WORK}/dist/index.html page)
write_source("${page}")
