#pragma once

#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/server/http_message.h"
#include "zeus/server/router.h"

namespace zeus::server {

HttpAnswer JsonAnswer(int status, const Json& json);

// The one place where an error becomes an answer.
HttpAnswer ErrorAnswer(const Error& error, Dialect dialect);

// What the server itself refuses: statuses for which the library has no error code.
HttpAnswer RefusalAnswer(int status, std::string_view code, const std::string& message,
                         Dialect dialect);

}  // namespace zeus::server
