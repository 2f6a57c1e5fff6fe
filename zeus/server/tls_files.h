#pragma once

#include <openssl/ssl.h>

#include "zeus/base/result.h"
#include "zeus/server/http_server.h"

namespace zeus::server {

// Reads certificate and key into a context for servers, TLS 1.2 and later. kInvalidArgument when
// they make no sense. Never asks a terminal. A certificate that is out of date is warned about.
Status LoadTls(const TlsFiles& files, SSL_CTX& context);

}  // namespace zeus::server
