# How every target is compiled. Binaries and libraries land in one tree that has the shape of an
# installation (bin/, lib/), so that a program finds its companions the same way in both.
include(GNUInstallDirs)

set(CMAKE_CXX_EXTENSIONS OFF)
# No debug information in what people use: it made the command weigh 400 MB. The preset `dev` has it.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
add_link_options($<$<CONFIG:Release>:-s>)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

add_library(zeus_warnings INTERFACE)
# In a unity build GCC takes every .cc file but the first for a header, and warns of classes that
# contain types of its anonymous namespace.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(zeus_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
target_compile_options(zeus_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<BOOL:${ZEUS_WERROR}>:-Werror>)

find_program(ZEUS_CCACHE ccache)
# Nothing compiled depends on where a checkout is: packages are the same, and checkouts share what ccache has.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
if(ZEUS_CCACHE)
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ZEUS_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()
find_program(ZEUS_MOLD mold)
if(ZEUS_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(ZEUS_TESTS)
  include(CTest)
  find_package(GTest REQUIRED)
endif()
if(ZEUS_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
