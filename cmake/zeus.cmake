# A few functions keep every CMakeLists.txt short. Which headers are installed is decided in
# public_headers.cmake.
include(public_headers)

# zeus_library(device SOURCES ... HEADERS ... DEPENDS zeus::base PRIVATE_DEPENDS ...)
# STANDALONE: no part of libzeus.so, since it needs what not every machine has.
function(zeus_library name)
  cmake_parse_arguments(ARG "STANDALONE" "" "SOURCES;HEADERS;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(zeus_${name} STATIC ${ARG_SOURCES})
  add_library(zeus::${name} ALIAS zeus_${name})
  zeus_add_headers(zeus_${name} ${ARG_HEADERS})
  target_compile_features(zeus_${name} PUBLIC cxx_std_20)
  target_link_libraries(zeus_${name} PUBLIC ${ARG_DEPENDS}
    PRIVATE ${ARG_PRIVATE_DEPENDS} $<BUILD_INTERFACE:zeus_warnings>)
  set_target_properties(zeus_${name} PROPERTIES EXPORT_NAME ${name})
  if(ARG_STANDALONE)
    set_property(GLOBAL APPEND PROPERTY ZEUS_STANDALONE_COMPONENTS ${name})
  else()
    set_property(GLOBAL APPEND PROPERTY ZEUS_COMPONENTS ${name})
  endif()
endfunction()

# zeus_sources(device SOURCES ... HEADERS ...): a sub-folder's part of a layer.
function(zeus_sources name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(zeus_${name} PRIVATE ${ARG_SOURCES})
  zeus_add_headers(zeus_${name} ${ARG_HEADERS})
endfunction()

# zeus_test(device_test SOURCES ... DEPENDS zeus::device): a test program; ctest runs each of its
# suites in one process. A second call with the same name adds to the program: there is one per
# layer, since every further program costs a link and a compilation of the headers.
function(zeus_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;DEFINITIONS" ${ARGN})
  if(NOT ZEUS_TESTS)
    return()
  endif()
  if(NOT TARGET ${name})
    add_executable(${name})
    target_link_libraries(${name} PRIVATE zeus_warnings GTest::gmock_main)
    # The library under test is optimised, its tests are not: that halves the time to compile them.
    target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O0>)
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    zeus_discover_suites(${name})
  endif()
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_compile_definitions(${name} PRIVATE ${ARG_DEFINITIONS})
endfunction()

# Registers the suites of a test program with ctest, when the program has been linked.
function(zeus_discover_suites name)
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  if(NOT EXISTS ${suites})
    file(WRITE ${suites} "add_test(${name}_is_not_built ${name}_is_not_built)\n")
  endif()
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> -DNAME=${name} -DOUTPUT=${suites}
            -P ${PROJECT_SOURCE_DIR}/cmake/list_suites.cmake
    BYPRODUCTS ${suites} VERBATIM)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites})
endfunction()

# zeus_benchmark(device_benchmark SOURCES ... DEPENDS ...)
function(zeus_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ZEUS_BENCHMARKS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} zeus_warnings benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endfunction()

# zeus_fuzz(gpu_metrics_fuzz SOURCES ... DEPENDS ...): a libFuzzer target; exists only with clang
# and ZEUS_FUZZ=ON.
function(zeus_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ZEUS_FUZZ)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} zeus_warnings)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  add_dependencies(fuzz_targets ${name})
endfunction()
