// A result that nobody received: exit 1 and a line that says so, for every command that has one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace halfbyte::e2e {
namespace {

using testing::HasSubstr;

struct Case { std::vector<std::string> arguments; std::string in; };

std::vector<Case> Cases(const checkpoint::TemporaryFolder& folder) {
  const std::string documents = folder.Write("d.jsonl", "{\"text\": \"Olga saves $23 every week.\"}\n").string();
  const std::string problems = folder.Write("p.jsonl", "{\"question\": \"2 + 2?\", \"answer\": \"4\"}\n").string();
  const std::string tiny = HALFBYTE_TEST_DATA "/models/qwen3_moe";
  return {
      {{"--help"}, ""}, {{"--version"}, ""}, {{"eval", "logits", "--help"}, ""},
      {{"generate", "--prompt", "Olga", "--max-tokens", "3"}, ""},
      {{"generate", "--prompt", "Olga", "--max-tokens", "3", "--json"}, ""},
      {{"generate", "--model", tiny, "--tokens", "1,2", "--max-tokens", "3"}, ""},
      {{"chat", "--max-tokens", "3"}, "hello\n"},
      {{"inspect"}, ""}, {{"inspect", "--json"}, ""},
      {{"eval", "perplexity", "--documents", documents}, ""}, {{"eval", "perplexity", "--documents", documents, "--json"}, ""},
      {{"eval", "compare", "--documents", documents, "--against", "none"}, ""},
      {{"eval", "gsm8k", "--file", problems, "--max-tokens", "3"}, ""},
      {{"bench", "--prompt-tokens", "4", "--decode-tokens", "2", "--repeat", "1"}, ""},
      {{"tokenize", "--text", "Olga"}, ""}, {{"tokenize", "--jsonl"}, "{\"text\": \"Olga\"}\n"},
      {{"detokenize", "--ids", "1,2"}, ""}, {{"detokenize", "--jsonl"}, "{\"ids\": [1]}\n"},
      {{"template"}, "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}"}, {{"template", "--jsonl"}, "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n"},
      {{"devices"}, ""}, {{"devices", "--json"}, ""},
  };
}

void ExpectLoss(const std::vector<std::string>& arguments, const RunOptions& options) {
  const Output o = RunProgram(arguments, options);
  EXPECT_EQ(o.exit, 1) << testing::PrintToString(arguments) << o.err;
  ASSERT_FALSE(Lines(o.err).empty()) << testing::PrintToString(arguments);
  EXPECT_THAT(Lines(o.err).back(), HasSubstr("stdout cannot be written: ")) << testing::PrintToString(arguments);
}

TEST(Stdout, AFullDiskIsAFailure) {
  const checkpoint::TemporaryFolder folder;
  for (const Case& c : Cases(folder)) ExpectLoss(c.arguments, {.stdin_text = c.in, .stdout_path = "/dev/full"});
  ExpectLoss({"quantize", "--out", (folder.path() / "out").string()}, {.stdout_path = "/dev/full"});
}

TEST(Stdout, AClosedOneIsAFailure) {
  const checkpoint::TemporaryFolder folder;
  for (const Case& c : Cases(folder)) {
    if (c.arguments[0] != "bench") ExpectLoss(c.arguments, {.stdin_text = c.in, .closed_stdout = true});  // its probes take seconds
  }
}

// The first file that is opened must not become stdout: the checkpoint is whole although nobody hears of it.
TEST(Stdout, AClosedOneDoesNotEndUpInAFile) {
  const checkpoint::TemporaryFolder folder;
  const auto lost = folder.path() / "lost", heard = folder.path() / "heard";
  ExpectLoss({"quantize", "--out", lost.string(), "--max-shard-size", "4MB"}, {.closed_stdout = true});
  ASSERT_EQ(RunProgram({"quantize", "--out", heard.string(), "--max-shard-size", "4MB"}).exit, 0);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(heard)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_EQ(ReadFile(lost / entry.path().filename()), ReadFile(entry.path())) << entry.path().filename();
  }
  EXPECT_GT(files, 3);
}

// A reader that has gone ends a long answer at once instead of after its last token.
TEST(Stdout, AnErrorEndsTheAnswer) {
  const Output o = RunProgram({"generate", "--prompt", "Olga saves", "--max-tokens", "1000000"}, {.seconds = 60, .stdout_path = "/dev/full"});
  EXPECT_EQ(o.exit, 1) << o.err;
}

}  // namespace
}  // namespace halfbyte::e2e
