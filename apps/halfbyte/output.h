// stdout: a command's result, and the one place that writes it.
//
// A result that nobody received is no result: after the first write that fails, what follows is dropped and Finish() says so, whatever the command
// thinks of itself. (stdio and iostreams hide it: a full disk shows up in a flush that nobody looks at.)
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::app {

class Output {
 public:
  void Text(std::string_view text);
  void Line(std::string_view line);                                           // and its end
  void Json(const base::Json& value, int indent = -1) { Line(value.Dump(indent)); }
  void Format(const char* format, ...) __attribute__((format(printf, 2, 3)));

  // What has been written so far is with the reader when this returns; kIo where it is not. Long commands stop on an error.
  base::Status Flush();
  // Flush, and closes stdout: a network file system or a quota may report the loss only then. Nothing may be written after it.
  base::Status Finish();

 private:
  base::Status Lost() const;
  std::string waiting_;
  int error_ = 0;  // errno of the first write that failed
};

// A closed stdin, stdout or stderr would give its number to the next file that is opened, and a result would end up in it. Puts /dev/null there
// in the wrong direction: reading stdin or writing stdout then fails with "Bad file descriptor". Call it before anything is opened.
void ReserveStandardDescriptors();

}  // namespace halfbyte::app
