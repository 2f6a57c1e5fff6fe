# The parts of a wheel: cmake --install BUILD --component python (build_backend.py calls it).
# The old kind of run-time path holds for the libraries of libraries, too, and those that come along
# (libfmt, libssl, ...) know nothing of the place where they are. The build tree has the same shape.
set(parts "zeus_python|$ORIGIN/_native/lib" "zeus_shared|$ORIGIN" "zeus|$ORIGIN/../lib"
        "nvml_simulator|$ORIGIN/../..")
if(TARGET zeus_servers)
  list(APPEND parts "zeus_servers|$ORIGIN/.." "zeus_http_client|$ORIGIN/..")
endif()
# Packages of a distribution have their libraries where its loader looks.
if(ZEUS_SYSTEM_PACKAGES)
  set(parts "")
endif()
foreach(part IN LISTS parts)
  string(REPLACE "|" ";" part "${part}")
  list(POP_FRONT part target)
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${part}" BUILD_WITH_INSTALL_RPATH ON)
endforeach()

set(in_wheel COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS zeus_python LIBRARY DESTINATION zeus ${in_wheel})
install(TARGETS zeus_shared LIBRARY DESTINATION zeus/_native/lib NAMELINK_SKIP ${in_wheel})
install(TARGETS nvml_simulator LIBRARY DESTINATION zeus/_native/lib/zeus/sim NAMELINK_SKIP
  ${in_wheel})
install(TARGETS zeus RUNTIME DESTINATION zeus/_native/bin ${in_wheel})
if(TARGET zeus_servers)
  install(TARGETS zeus_servers RUNTIME DESTINATION zeus/_native/lib/zeus ${in_wheel})
  install(TARGETS zeus_http_client LIBRARY DESTINATION zeus/_native/lib/zeus ${in_wheel})
endif()
install(DIRECTORY zeus/ DESTINATION zeus ${in_wheel} FILES_MATCHING
  PATTERN __pycache__ EXCLUDE PATTERN *.py PATTERN *.pyi PATTERN py.typed)
