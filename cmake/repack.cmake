# Packs Debian packages again, so that the same files always give the same bytes: every file has the time SOURCE_DATE_EPOCH,
# and dpkg-deb sorts them. CPack runs this after it has written the packages.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  return()
endif()
foreach(package IN LISTS CPACK_PACKAGE_FILES)
  set(tree ${package}.tree)
  file(REMOVE_RECURSE ${tree})
  foreach(command
      "dpkg-deb --raw-extract ${package} ${tree}"
      "find ${tree} -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} +"
      "dpkg-deb --root-owner-group -Zxz --build ${tree} ${package}")
    separate_arguments(command UNIX_COMMAND "${command}")
    execute_process(COMMAND ${command} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(REMOVE_RECURSE ${tree})
endforeach()
