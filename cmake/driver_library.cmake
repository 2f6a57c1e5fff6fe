# Libraries that programs load instead of NVIDIA's: each exports every function of NVML.

# zeus_nvml_functions(VARIABLE): the lines of zeus/device/nvml/functions.txt, a function and its arguments each.
function(zeus_nvml_functions variable)
  set(list ${PROJECT_SOURCE_DIR}/zeus/device/nvml/functions.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} lines REGEX "^nvml")
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

# zeus_numbered_nvml_functions(VARIABLE MACRO): "MACRO(name, number)" for each function, and for the one that
# returns a text.
function(zeus_numbered_nvml_functions variable macro)
  zeus_nvml_functions(lines)
  list(APPEND lines "nvmlErrorString code")
  set(text "")
  set(number 0)
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^[^ ]+" name "${line}")
    string(APPEND text "${macro}(${name}, ${number})\n")
    math(EXPR number "${number} + 1")
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# zeus_driver_library(NAME FOLDER … COMPONENT … SOURCES … DEPENDS …): a library with the name of NVIDIA's, so it
# lives in a directory of its own, lib/zeus/FOLDER. all_functions.cc.in has the place of ZEUS_NVML_FUNCTIONS.
function(zeus_driver_library name)
  cmake_parse_arguments(PARSE_ARGV 1 DRIVER "" "FOLDER;COMPONENT" "SOURCES;DEPENDS")
  set(exports ${PROJECT_SOURCE_DIR}/apps/nvml_simulator/exports.map)
  configure_file(all_functions.cc.in ${CMAKE_CURRENT_BINARY_DIR}/all_functions.cc @ONLY)
  add_library(${name} SHARED ${DRIVER_SOURCES} ${CMAKE_CURRENT_BINARY_DIR}/all_functions.cc)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${DRIVER_DEPENDS} zeus_warnings)
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${exports} -Wl,--exclude-libs,ALL -Wl,--as-needed)
  # Strangers' processes may have another C++ run-time library. Sanitizers bring their own operator
  # new, which a second copy of operator delete does not know.
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE -static-libgcc -static-libstdc++)
  endif()
  set_target_properties(${name} PROPERTIES
    OUTPUT_NAME nvidia-ml SOVERSION 1 NO_SONAME OFF CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/zeus/${DRIVER_FOLDER} LINK_DEPENDS ${exports})
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/zeus/${DRIVER_FOLDER}
          COMPONENT ${DRIVER_COMPONENT} NAMELINK_SKIP)
endfunction()
