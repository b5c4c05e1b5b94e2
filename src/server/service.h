// Service: the routes over an engine, behind one HTTP server.
#pragma once

#include "server/context.h"
#include "server/http_server.h"

namespace halfbyte::server {

// Borrowed context; it must outlive the server that uses the handler.
HttpHandler MakeHandler(Context& context);

// Keys of a file: one a line, blank lines and lines with # left out. kInvalidArgument where there is none.
base::Result<std::vector<std::string>> ReadApiKeys(const std::filesystem::path& file);

// Whether the Authorization header carries one of the keys. Takes the same time whichever byte differs.
bool Authorized(const std::vector<std::string>& keys, std::string_view authorization);

// A few tokens through the model, so that the first client does not pay for what is made on first use.
base::Status WarmUp(Context& context);

}  // namespace halfbyte::server
