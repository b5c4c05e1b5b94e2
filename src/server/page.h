// The chat page at /: page.html as bytes, made at build time (CMakeLists.txt).
#pragma once

#include <string_view>

namespace halfbyte::server {
extern const std::string_view kChatPage;
}  // namespace halfbyte::server
