# Five functions keep every CMakeLists.txt short. Headers listed in zeus_library() are the public
# ones: they are installed, and checked to compile alone (CMAKE_VERIFY_INTERFACE_HEADER_SETS).

# zeus_library(device SOURCES ... HEADERS ... DEPENDS zeus::base PRIVATE_DEPENDS ...)
# STANDALONE: no part of libzeus.so, since it needs what not every machine has.
function(zeus_library name)
  cmake_parse_arguments(ARG "STANDALONE" "" "SOURCES;HEADERS;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(zeus_${name} STATIC ${ARG_SOURCES})
  add_library(zeus::${name} ALIAS zeus_${name})
  target_sources(zeus_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
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
  list(TRANSFORM ARG_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(zeus_${name} PRIVATE ${ARG_SOURCES}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
endfunction()

# zeus_test(device_test SOURCES ... DEPENDS zeus::device): one executable, one ctest per TEST().
function(zeus_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ZEUS_TESTS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} zeus_warnings GTest::gmock_main)
  # What is tested is optimised, the tests are not: that halves the time to compile them.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0;-g0>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  # Instances are called as their test calls them, not as the bytes of their parameter look.
  gtest_discover_tests(${name} NO_PRETTY_VALUES PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
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
endfunction()
