// Runs the built program and gives what it wrote.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace halfbyte::e2e {

struct Output {
  int exit = -1;  // -1: ended by a signal, or killed after the time limit
  std::string out, err;
};

struct RunOptions {
  std::string stdin_text;
  std::vector<std::pair<std::string, std::string>> environment;  // on top of the test's own
  int seconds = 120;
};

Output RunProgram(const std::vector<std::string>& arguments, const RunOptions& options = {});

// stdout of a run that must succeed, as JSON; null and a failed test otherwise.
base::Json RunJson(const std::vector<std::string>& arguments, const RunOptions& options = {});

// What the contract says of a failure: exit 1, nothing on stdout, the last line of stderr is the error; with -q nothing but warnings comes before it.
// Gives the line without "halfbyte: ".
std::string FailureOf(std::vector<std::string> arguments, const RunOptions& options = {});

std::vector<std::string> Lines(const std::string& text);  // without the line ends
std::string ReadFile(const std::filesystem::path& path);

}  // namespace halfbyte::e2e
