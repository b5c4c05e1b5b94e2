#include "e2e/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

namespace halfbyte::e2e {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// stdin, stdout and stderr are files, so that neither side can block the other.
Output RunProgram(const std::vector<std::string>& arguments, const RunOptions& options) {
  checkpoint::TemporaryFolder folder;
  const fs::path in = folder.Write("in", options.stdin_text), out = folder.Write("out", ""), err = folder.Write("err", "");
  std::vector<char*> argv = {const_cast<char*>(HALFBYTE_PROGRAM)};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(options.stdin_path.empty() ? in.c_str() : options.stdin_path.c_str(), O_RDONLY), 0);
    ::dup2(::open(options.stdout_path.empty() ? out.c_str() : options.stdout_path.c_str(), O_WRONLY | O_APPEND), 1);
    ::dup2(::open(options.stderr_path.empty() ? err.c_str() : options.stderr_path.c_str(), O_WRONLY | O_APPEND), 2);
    if (options.closed_stdout) ::close(1);
    for (const std::string& name : options.unset) ::unsetenv(name.c_str());
    for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(HALFBYTE_PROGRAM, argv.data());
    ::_exit(127);
  }
  Output result;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "still running after " << options.seconds << " s: halfbyte " << testing::PrintToString(arguments);
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (WIFEXITED(status)) result.exit = WEXITSTATUS(status);
  result.out = ReadFile(out);
  result.err = ReadFile(err);
  return result;
}

base::Json RunJson(const std::vector<std::string>& arguments, const RunOptions& options) {
  const Output o = RunProgram(arguments, options);
  EXPECT_EQ(o.exit, 0) << testing::PrintToString(arguments) << "\n" << o.err;
  auto json = base::Json::Parse(o.out);
  EXPECT_TRUE(json) << o.out;
  return json ? *json : base::Json();
}

std::string FailureOf(std::vector<std::string> arguments, const RunOptions& options) {
  arguments.push_back("-q");
  const Output quiet = RunProgram(arguments, options);
  EXPECT_EQ(quiet.exit, 1) << testing::PrintToString(arguments) << "\n" << quiet.err;
  EXPECT_EQ(quiet.out, "") << testing::PrintToString(arguments);
  const std::vector<std::string> lines = Lines(quiet.err);
  if (lines.empty()) { ADD_FAILURE() << "no error line: " << testing::PrintToString(arguments); return ""; }
  for (size_t i = 0; i + 1 < lines.size(); ++i) EXPECT_NE(lines[i].find(" warning "), std::string::npos) << lines[i];
  EXPECT_TRUE(lines.back().starts_with("halfbyte: ")) << lines.back();
  EXPECT_LT(lines.back().size(), 1200u);
  return lines.back().substr(std::min(lines.back().size(), std::string("halfbyte: ").size()));
}

std::string WrongUsageOf(const std::vector<std::string>& arguments) {
  const Output o = RunProgram(arguments);
  EXPECT_EQ(o.exit, 2) << testing::PrintToString(arguments) << "\n" << o.err;
  EXPECT_EQ(o.out, "") << testing::PrintToString(arguments);
  EXPECT_LT(Lines(o.err).size(), 4u) << testing::PrintToString(arguments);
  return o.err;
}

ModelCopy::ModelCopy(const fs::path& from) {
  fs::create_directory(path());
  for (const auto& entry : fs::directory_iterator(from))
    if (!entry.path().filename().string().starts_with("expected")) fs::copy(entry.path(), path() / entry.path().filename());
}

fs::path ModelCopy::path() const { return folder_.path() / "model"; }

void ModelCopy::Change(const std::string& file, const std::string& from, const std::string& to) const {
  std::string text = ReadFile(path() / file);
  const size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << from;
  std::ofstream(path() / file, std::ios::binary) << text.replace(at, from.size(), to);
}

}  // namespace halfbyte::e2e
