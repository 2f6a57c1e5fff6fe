# The server half: Boost.Beast, in server.cc alone.
find_package(OpenSSL REQUIRED)
find_package(Boost 1.74 REQUIRED)

zeus_library(http_server STANDALONE
  SOURCES access_control.cc access_log.cc departure_watch.cc limits.cc message.cc openapi.cc openapi_document.cc pushed_response.cc readiness.cc routed_handler.cc router.cc server.cc socket_file.cc tokens.cc
          worker_pool.cc
  HEADERS access_control.h access_log.h courier.h departure_watch.h limits.h message.h openapi.h openapi_document.h pushed_response.h readiness.h routed_handler.h router.h server.h
          socket_file.h tokens.h worker_pool.h
  DEPENDS zeus::http
  PRIVATE_DEPENDS Boost::headers OpenSSL::SSL Threads::Threads)
# Boost 1.74 does not see that clang has coroutines.
set_source_files_properties(server.cc PROPERTIES
  COMPILE_DEFINITIONS "BOOST_ASIO_HAS_CO_AWAIT=1;BOOST_ASIO_HAS_STD_COROUTINE=1;BOOST_ASIO_NO_DEPRECATED=1")
# The thread sanitizer does not understand Asio's fences, and GCC warns of that.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(server.cc PROPERTIES COMPILE_OPTIONS -Wno-tsan)
endif()

zeus_test(http_test
  SOURCES access_control_test.cc access_log_test.cc departure_watch_test.cc limits_test.cc pushed_response_test.cc
          router_test.cc server_peer_test.cc server_test.cc socket_file_test.cc
          tokens_test.cc worker_pool_test.cc
  DEPENDS zeus::http_server)
