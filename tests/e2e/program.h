// Runs the built program and gives what it wrote.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::e2e {

struct Output {
  int exit = -1;  // -1: ended by a signal, or killed after the time limit
  std::string out, err;
};

struct RunOptions {
  std::string stdin_text;
  std::vector<std::pair<std::string, std::string>> environment;  // on top of the test's own
  int seconds = 120;
  std::vector<std::string> unset;  // names of the test's environment that the program does not get
  std::string stdin_path, stdout_path, stderr_path;  // instead of files made for the run: "/dev/full", a FIFO
  bool closed_stdout = false;
};

Output RunProgram(const std::vector<std::string>& arguments, const RunOptions& options = {});

// stdout of a run that must succeed, as JSON; null and a failed test otherwise.
base::Json RunJson(const std::vector<std::string>& arguments, const RunOptions& options = {});

// What the contract says of a failure: exit 1, nothing on stdout, the last line of stderr is the error; with -q nothing but warnings comes before it.
// Gives the line without "halfbyte: ".
std::string FailureOf(std::vector<std::string> arguments, const RunOptions& options = {});

// What the contract says of wrong usage: exit 2, nothing on stdout. Gives stderr.
std::string WrongUsageOf(const std::vector<std::string>& arguments);

// A copy of a model's folder to be broken.
class ModelCopy {
 public:
  explicit ModelCopy(const std::filesystem::path& from);
  std::filesystem::path path() const;
  std::string string() const { return path().string(); }
  // Replaces the first `from` in a file, which must be there.
  void Change(const std::string& file, const std::string& from, const std::string& to) const;

 private:
  checkpoint::TemporaryFolder folder_;
};

std::vector<std::string> Lines(const std::string& text);  // without the line ends
std::string ReadFile(const std::filesystem::path& path);

}  // namespace halfbyte::e2e
