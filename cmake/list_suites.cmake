# cmake -DPROGRAM=… -DNAME=… -DOUTPUT=… -P list_suites.cmake
# Asks a test program for its suites and writes a ctest file that runs each of them in a process of
# its own. GoogleTest prints a suite as "Name." or "Prefix/Name/0." and its tests indented below it.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listing RESULT_VARIABLE result
  ERROR_VARIABLE complaint)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed (${result}):\n${listing}${complaint}")
endif()
string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\." suites "${listing}")
set(tests "")
foreach(suite IN LISTS suites)
  string(STRIP "${suite}" suite)
  string(REGEX REPLACE "\\.$" "" title "${suite}")
  string(APPEND tests "add_test([==[${NAME}.${title}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}*]==])\n"
    "set_tests_properties([==[${NAME}.${title}]==] PROPERTIES LABELS unit TIMEOUT 900)\n")
endforeach()
if(NOT tests)
  message(FATAL_ERROR "${PROGRAM} has no tests")
endif()
file(WRITE ${OUTPUT} "${tests}")
