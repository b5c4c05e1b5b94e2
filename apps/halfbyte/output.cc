#include "output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace halfbyte::app {

namespace {

// Enough to make system calls rare, little enough that a reader sees the lines of a long --jsonl run come.
constexpr size_t kBlock = 64 << 10;

}  // namespace

void Output::Text(std::string_view text) {
  if (error_ != 0) return;
  waiting_ += text;
  if (waiting_.size() >= kBlock) (void)Flush();  // an error is kept for the next Flush
}

void Output::Line(std::string_view line) {
  Text(line);
  Text("\n");
}

void Output::Format(const char* format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  const int size = std::vsnprintf(nullptr, 0, format, list);
  va_end(list);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  text.pop_back();
  Text(text);
}

base::Status Output::Flush() {
  std::string_view left = waiting_;
  while (error_ == 0 && !left.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, left.data(), left.size());
    if (n >= 0) { left.remove_prefix(static_cast<size_t>(n)); continue; }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {  // somebody made the terminal or pipe non-blocking
      pollfd wait{STDOUT_FILENO, POLLOUT, 0};
      (void)::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  waiting_.clear();
  return Lost();
}

base::Status Output::Finish() {
  HB_RETURN_IF_ERROR(Flush());
  if (::close(STDOUT_FILENO) != 0 && errno != EINTR) error_ = errno;
  return Lost();
}

base::Status Output::Lost() const {
  if (error_ == 0) return {};
  return base::Fail(base::ErrorCode::kIo, "stdout cannot be written: ", std::strerror(error_), "; the result is lost");
}

void ReserveStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one: those below are taken. Messages to a closed stderr are nobody's loss, so that one is writable.
    (void)!::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

}  // namespace halfbyte::app
