// What a command reads besides the model: files the user names, and stdin. Every read has a bound, and nothing here waits for ever: /dev/zero, a FIFO
// or a folder in place of a file is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace halfbyte::app {

// One text: a prompt, a template's variables, a line of --jsonl. The longest contexts there are (10 M tokens) take about 40 MB.
constexpr uint64_t kTextLimit = uint64_t{256} << 20;
// Files of documents and problems.
constexpr uint64_t kDocumentsLimit = uint64_t{4} << 30;

// A regular file, or stdin where the path is "-"; an error names the flag it was given with.
base::Result<std::string> ReadInput(const std::string& path, std::string_view flag, uint64_t limit);
// All of stdin, kTextLimit at most.
base::Result<std::string> ReadStdin();

// Lines of stdin without their ends.
class InputLines {
 public:
  struct Line { std::string text; bool too_long = false; };  // too_long: over kTextLimit; the text is empty, the whole line was read past
  // nullopt: the end. The last line needs no end.
  base::Result<std::optional<Line>> Next();
  // Whether Next would give a line without reading: whoever talks to the command line by line waits for the answer to this one first.
  bool HasLine() const { return buffer_.find('\n', at_) != buffer_.npos; }

 private:
  std::string buffer_;
  size_t at_ = 0;
  bool end_ = false;
};

// `text`, with a warning where it is not UTF-8: the tokenizer reads each part that is not as one U+FFFD, and nobody would see why.
void WarnOfInvalidUtf8(std::string_view text, std::string_view what);

}  // namespace halfbyte::app
