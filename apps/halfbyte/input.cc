#include "input.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "platform/file_reader.h"
#include "text/unicode.h"

namespace halfbyte::app {
namespace {

using base::ErrorCode;
using base::Fail;

// Appends what one read gives; false at the end.
base::Result<bool> ReadMore(std::string& out) {
  constexpr size_t kPiece = 64 << 10;
  const size_t had = out.size();
  out.resize(had + kPiece);
  ssize_t got;
  do got = ::read(STDIN_FILENO, out.data() + had, kPiece); while (got < 0 && errno == EINTR);
  out.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return Fail(ErrorCode::kIo, "stdin cannot be read: ", std::strerror(errno));
  return got > 0;
}

base::Result<std::string> ReadStdinUpTo(uint64_t limit) {
  std::string text;
  for (;;) {
    HB_ASSIGN_OR_RETURN(const bool more, ReadMore(text));
    if (text.size() > limit) return Fail(ErrorCode::kInvalidArgument, "stdin has more than ", limit >> 20, " MiB, the most that is read");
    if (!more) return text;
  }
}

}  // namespace

base::Result<std::string> ReadInput(const std::string& path, std::string_view flag, uint64_t limit) {
  if (path == "-") return ReadStdinUpTo(limit);
  auto text = platform::ReadWholeFile(path, limit);
  if (text) return text;
  base::Error error = std::move(text).error();
  if (error.code() == ErrorCode::kBadFile) return Fail(std::move(error).Hint(base::StrCat(flag, " - reads stdin")).At(std::string(flag)));
  return Fail(std::move(error).At(std::string(flag)));
}

base::Result<std::string> ReadStdin() { return ReadStdinUpTo(kTextLimit); }

base::Result<std::optional<InputLines::Line>> InputLines::Next() {
  Line line;
  for (size_t looked = at_;;) {
    if (const size_t end = buffer_.find('\n', looked); end != buffer_.npos) {
      if (!line.too_long) line.text = buffer_.substr(at_, end - at_);
      at_ = end + 1;
      return line;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    if (end_) {
      if (buffer_.empty() && !line.too_long) return std::nullopt;
      if (!line.too_long) line.text = std::move(buffer_);
      buffer_.clear();
      return line;
    }
    if (buffer_.size() > kTextLimit) line.too_long = true;
    if (line.too_long) buffer_.clear();
    looked = buffer_.size();
    HB_ASSIGN_OR_RETURN(const bool more, ReadMore(buffer_));
    end_ = !more;
  }
}

void WarnOfInvalidUtf8(std::string_view text, std::string_view what) {
  if (text::IsValidUtf8(text)) return;
  int64_t parts = 0;
  while (!text.empty()) {
    const text::Utf8Step step = text::StepUtf8(text);
    parts += step.kind != text::Utf8Step::kCharacter;
    text.remove_prefix(step.size);
  }
  base::LogWarning(what, " is not UTF-8 in ", parts, parts == 1 ? " place" : " places", "; each is read as U+FFFD");
}

}  // namespace halfbyte::app
