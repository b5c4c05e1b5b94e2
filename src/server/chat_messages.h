// OpenAI's messages and tools, checked and brought into the form that chat templates read.
#pragma once

#include "server/fields.h"

namespace halfbyte::server {

// `messages`: roles and types checked; text parts of a content array joined; "arguments" of past tool calls turned from JSON text into the object that
// templates expect; null content stays null where there are tool calls and is "" elsewhere. Other keys pass through. What this server cannot
// show a model (images, audio) is an error.
base::Json ReadMessages(Fields& fields);

// `tools`, null where absent or empty.
base::Json ReadTools(Fields& fields);

}  // namespace halfbyte::server
