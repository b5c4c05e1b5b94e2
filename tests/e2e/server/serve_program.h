// `halfbyte serve` as a process of its own, over the demo model.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "unit/checkpoint/test_files.h"

namespace halfbyte::server {

class ServeProgram {
 public:
  // Adds --port 0 and waits until it serves; a failed test where it ends instead.
  explicit ServeProgram(std::vector<std::string> flags = {});
  ~ServeProgram();  // SIGKILL where it still runs

  int port() const { return port_; }
  std::string log() const;
  void Signal(int signal) const;
  // Its exit code; -1 after `seconds`, or where a signal ended it.
  int Wait(int seconds = 60);
  int64_t ResidentBytes() const;
  double CpuSeconds() const;

 private:
  checkpoint::TemporaryFolder folder_;
  pid_t process_ = -1;
  int port_ = 0;
};

}  // namespace halfbyte::server
