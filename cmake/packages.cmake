# Debian packages, by CPack: one per component. `./dev deb` makes them, of the preset `deb`, which installs into /usr.
# Every install rule that names no component would be in no package.
set(ZEUS_PACKAGES zeus dev)
set(ZEUS_PACKAGE_OF_zeus zeus)
set(ZEUS_PACKAGE_OF_dev libzeus-dev)
set(ZEUS_PACKAGE_OF_zeusd zeusd)
set(ZEUS_PACKAGE_OF_sim zeus-sim)
set(ZEUS_PACKAGE_OF_python3 python3-zeus)
set(ZEUS_PACKAGE_OF_slurm zeus-slurm)
list(APPEND ZEUS_PACKAGES sim)
if(TARGET zeusd)
  list(APPEND ZEUS_PACKAGES zeusd)
endif()
if(TARGET zeus_python)
  list(APPEND ZEUS_PACKAGES python3)
endif()
if(TARGET spank_zeus)
  list(APPEND ZEUS_PACKAGES slurm)
endif()

set(ZEUS_MAINTAINER "Zeus maintainers <maintainers@zeus.invalid>" CACHE STRING
  "Who makes the packages, with an address")
set(CPACK_PACKAGE_CONTACT ${ZEUS_MAINTAINER})
set(CPACK_PACKAGE_NAME zeus)
set(CPACK_PACKAGE_VENDOR "The Zeus authors")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_VERSION ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL ${ZEUS_PACKAGES})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_SET_DESTDIR ON)  # For files in /etc.
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES OFF)  # The linker did.
set(CPACK_THREADS 2)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
# Packs the packages again: CPack takes the times of files and the order of folders as they are.
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/repack.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# zeus_package(COMPONENT "summary" "description" SECTION … DEPENDS … RECOMMENDS … SUGGESTS … CONTROL files)
function(zeus_package component summary description)
  cmake_parse_arguments(ARG "" "SECTION;DEPENDS;PREDEPENDS;RECOMMENDS;SUGGESTS" "CONTROL" ${ARGN})
  string(TOUPPER ${component} upper)
  set(prefix CPACK_DEBIAN_${upper})
  set(${prefix}_PACKAGE_NAME ${ZEUS_PACKAGE_OF_${component}} PARENT_SCOPE)
  set(${prefix}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  set(${prefix}_PACKAGE_SECTION ${ARG_SECTION} PARENT_SCOPE)
  foreach(relation DEPENDS PREDEPENDS RECOMMENDS SUGGESTS)
    set(${prefix}_PACKAGE_${relation} "${ARG_${relation}}" PARENT_SCOPE)
  endforeach()
  set(control "")
  foreach(file IN LISTS ARG_CONTROL)
    # debian/zeusd.postinst becomes postinst.
    get_filename_component(name ${file} LAST_EXT)
    string(SUBSTRING ${name} 1 -1 name)
    set(copy ${PROJECT_BINARY_DIR}/packaging/control/${component}/${name})
    configure_file(${PROJECT_SOURCE_DIR}/packaging/debian/${file} ${copy} COPYONLY)
    list(APPEND control ${copy})
  endforeach()
  set(${prefix}_PACKAGE_CONTROL_EXTRA "${control}" PARENT_SCOPE)
endfunction()

set(same "(= ${CPACK_DEBIAN_VERSION})")
zeus_package(zeus "energy of deep-learning work: measured and lowered"
"The command zeus measures the energy of programs on GPUs and CPUs, and finds
the batch size and the power limit with which a training costs least.
Man pages, completion for shells and the shared library are part of it."
  SECTION science RECOMMENDS "zeusd" SUGGESTS "zeus-sim, python3-zeus" CONTROL zeus.conffiles zeus.triggers)
zeus_package(zeusd "daemon that lends power limits and clocks"
"zeusd is the one privileged process of a machine with Zeus: it turns power
limits and clocks for programs without rights, within bounds, and puts them
back when a program ends, however it ends."
  SECTION admin PREDEPENDS "init-system-helpers (>= 1.54~)"
  DEPENDS "systemd | systemd-standalone-sysusers | systemd-sysusers, passwd"
  CONTROL zeusd.conffiles zeusd.postinst zeusd.prerm zeusd.postrm)
zeus_package(dev "energy of deep-learning work: headers and libraries"
"Headers, static libraries, a CMake package and pkg-config files for programs
that measure energy or choose power limits and batch sizes with Zeus."
  SECTION libdevel DEPENDS "zeus ${same}, libfmt-dev, nlohmann-json3-dev"
  SUGGESTS "libspdlog-dev, libcpp-httplib-dev, liblzma-dev, libzstd-dev, zlib1g-dev, libsqlite3-dev")
zeus_package(sim "simulated GPUs that every NVML program sees"
"A library with the name of NVIDIA's shows simulated GPUs to programs that
know nothing of them, and nvidia-smi shows and sets them."
  SECTION science RECOMMENDS "zeus")
if(TARGET zeus_python)
  execute_process(COMMAND ${ZEUS_PYTHON} -c "import sys; print('%d.%d;%d.%d' % (*sys.version_info[:2], sys.version_info[0], sys.version_info[1] + 1))"
    OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  list(POP_FRONT python this_python)
  zeus_package(python3 "energy of deep-learning work: Python"
"The module zeus measures windows of Python programs, and finds the power limit
and the batch size with which a training costs least."
    SECTION python DEPENDS
    "zeus ${same}, python3 (>= ${this_python}~), python3 (<< ${python}~)"
    SUGGESTS "zeus-sim, python3-torch, python3-pandas" CONTROL python3-zeus.postinst python3-zeus.prerm)
endif()
if(TARGET spank_zeus)
  # The loader of Slurm insists on its own major and minor version.
  pkg_check_modules(SLURM QUIET slurm)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" slurm "${SLURM_VERSION}")
  set(slurmd slurmd)
  if(slurm)
    set(slurmd "slurmd (>= ${slurm}), slurmd (<< ${slurm}.999)")
  endif()
  zeus_package(slurm "energy of the jobs of a Slurm cluster"
"Two plugins give every job of Slurm its energy, as sacct shows it, and power
limits that end with the job."
    SECTION admin DEPENDS "zeusd" RECOMMENDS "${slurmd}" SUGGESTS "zeus")
endif()

include(CPack)

# All that is in packages.
get_property(components GLOBAL PROPERTY ZEUS_COMPONENTS)
get_property(standalone GLOBAL PROPERTY ZEUS_STANDALONE_COMPONENTS)
list(TRANSFORM components PREPEND zeus_)
list(TRANSFORM standalone PREPEND zeus_)
add_custom_target(package_files)
foreach(target IN LISTS components standalone ITEMS zeus zeus_servers zeus_http_client zeusd zeus_shared nvml_recorder nvml_replay
    nvml_simulator nvidia_smi
    zeus_python spank_zeus acct_gather_energy_zeus)
  if(TARGET ${target})
    add_dependencies(package_files ${target})
  endif()
endforeach()
