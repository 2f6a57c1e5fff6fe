# `cmake --install` gives to other projects: one static library per layer (zeus::base,
# zeus::device, ...), all of them in one shared library (zeus::zeus), the public headers, a CMake
# package and a pkg-config file. Included after every zeus_library().
include(CMakePackageConfigHelpers)

get_property(components GLOBAL PROPERTY ZEUS_COMPONENTS)
list(TRANSFORM components PREPEND zeus_ OUTPUT_VARIABLE static_libraries)

add_library(zeus_shared SHARED)
add_library(zeus::zeus ALIAS zeus_shared)
foreach(library IN LISTS static_libraries)
  target_sources(zeus_shared PRIVATE $<TARGET_OBJECTS:${library}>)
endforeach()
# The objects are already inside; the static libraries only bring what they themselves link to.
target_link_libraries(zeus_shared
  PRIVATE ${static_libraries} PUBLIC fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(zeus_shared INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_SOURCE_DIR}/zeus/c>"
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(zeus_shared PUBLIC cxx_std_20)
# Calls within the library need no symbol: Python resolves all of them when it imports the library.
target_link_options(zeus_shared PRIVATE -Wl,-Bsymbolic-functions)
set_target_properties(zeus_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME zeus EXPORT_NAME zeus
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/zeus)
install(TARGETS ${static_libraries} zeus_shared EXPORT zeusTargets
  LIBRARY COMPONENT zeus NAMELINK_COMPONENT dev ARCHIVE COMPONENT dev
  FILE_SET HEADERS COMPONENT dev)
install(EXPORT zeusTargets NAMESPACE zeus:: DESTINATION ${package_folder} COMPONENT dev)

# Each in a file of its own, which only who asks for it includes: the others need no MPI.
get_property(standalone GLOBAL PROPERTY ZEUS_STANDALONE_COMPONENTS)
foreach(component IN LISTS standalone)
  get_target_property(has_public_headers zeus_${component} ZEUS_HAS_PUBLIC_HEADERS)
  if(NOT has_public_headers)
    list(REMOVE_ITEM standalone ${component})
    continue()
  endif()
  install(TARGETS zeus_${component} EXPORT zeus_${component} ARCHIVE COMPONENT dev
    FILE_SET HEADERS COMPONENT dev)
  install(EXPORT zeus_${component} NAMESPACE zeus:: DESTINATION ${package_folder} COMPONENT dev)
endforeach()

list(APPEND components zeus ${standalone})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/zeusConfig.cmake.in
  ${PROJECT_BINARY_DIR}/zeusConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zeusConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH prefix_from_here /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
foreach(package zeus zeus-c)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc
    @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/zeusConfig.cmake ${PROJECT_BINARY_DIR}/zeusConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/zeus.pc ${PROJECT_BINARY_DIR}/zeus-c.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
