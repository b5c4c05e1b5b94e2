#include "serve_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

namespace halfbyte::server {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

ServeProgram::ServeProgram(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {HALFBYTE_PROGRAM, "serve", "-q", "--port", "0"});
  std::vector<char*> argv;
  for (std::string& f : flags) argv.push_back(f.data());
  argv.push_back(nullptr);
  const std::filesystem::path log = folder_.Write("log", "");
  process_ = ::fork();
  if (process_ == 0) {
    const int file = ::open(log.c_str(), O_WRONLY | O_APPEND);
    ::dup2(file, 1);
    ::dup2(file, 2);
    ::execv(HALFBYTE_PROGRAM, argv.data());
    ::_exit(127);
  }
  for (int i = 0; i < 6000; ++i) {
    const std::string text = this->log();
    const size_t at = text.find("serving "), colon = text.rfind(':');
    if (at != text.npos && text.back() == '\n') {
      port_ = std::atoi(text.c_str() + colon + 1);
      return;
    }
    if (::waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = -1;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "halfbyte serve did not start: " << this->log();
}

ServeProgram::~ServeProgram() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string ServeProgram::log() const { return ReadFile(folder_.path() / "log"); }

void ServeProgram::Signal(int signal) const { ::kill(process_, signal); }

int ServeProgram::Wait(int seconds) {
  for (int i = 0; i < seconds * 100; ++i) {
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      process_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return -1;
}

int64_t ServeProgram::ResidentBytes() const {
  std::istringstream pages(ReadFile(base::StrCat("/proc/", process_, "/statm")));
  int64_t size = 0, resident = 0;
  pages >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

double ServeProgram::CpuSeconds() const {
  const std::string text = ReadFile(base::StrCat("/proc/", process_, "/stat"));
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace halfbyte::server
