#pragma once

#include <string>
#include <string_view>

#include "zeus/server/http_message.h"

namespace zeus::server {

enum class Connection { kKeepAlive, kClose };
enum class Body { kSent, kOmitted };  // Omitted: the answer to HEAD.

// The bytes of an answer. One of a stream has no length: it ends with the connection.
std::string ResponseText(const HttpAnswer& answer, std::string_view request_id,
                         Connection connection, Body body);

}  // namespace zeus::server
