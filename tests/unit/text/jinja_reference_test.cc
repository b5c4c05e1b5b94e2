// The engine against Python's jinja2, by files of its answers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/chat_template.h"
#include "text/jinja.h"

namespace halfbyte::text {
namespace {

using base::Json;

std::string Shared(const std::string& name) { return std::string(HALFBYTE_SOURCE_DIR) + "/../shared/" + name; }

std::vector<Json> Lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto json = Json::Parse(line);
    EXPECT_TRUE(json) << path << ": " << (json ? "" : json.error().ToString());
    if (json) lines.push_back(std::move(*json));
  }
  return lines;
}

// Equal texts, or a refusal on both sides.
::testing::AssertionResult Agrees(const Json* rendered, const base::Result<std::string>& got) {
  if (rendered == nullptr) {
    if (!got) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "an error was expected, got " << Json(*got).Dump();
  }
  if (!got) return ::testing::AssertionFailure() << "expected " << rendered->Dump() << ", got the error " << got.error().ToString();
  if (*got == rendered->as_string()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "expected " << rendered->Dump() << "\n     got " << Json(*got).Dump();
}

base::Result<std::string> RenderLine(const Json& line, const Json& context) {
  JinjaRenderOptions options;
  if (const Json* now = line.Find("now")) { HB_ASSIGN_OR_RETURN(options.now, JinjaTime::Parse(now->as_string())); }
  HB_ASSIGN_OR_RETURN(JinjaTemplate parsed, JinjaTemplate::Parse(line.Find("template")->as_string()));
  return parsed.Render(context, options);
}

TEST(JinjaReference, EveryLineOfTheReferenceFile) {
  std::string path = Shared("reference/text/jinja.jsonl");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  std::vector<Json> lines = Lines(path);
  ASSERT_GT(lines.size(), 200u);
  for (const Json& line : lines) {
    EXPECT_TRUE(Agrees(line.Find("rendered"), RenderLine(line, *line.Find("context")))) << line.Find("template")->Dump();
  }
}

// Made by tools/jinja/differential.py --write: random templates over one context, with the answers of jinja2 3.1.6.
TEST(JinjaReference, GeneratedTemplates) {
  std::vector<Json> lines = Lines(std::string(HALFBYTE_TEST_DATA) + "/jinja/generated.jsonl");
  ASSERT_GT(lines.size(), 400u);
  const Json context = *lines[0].Find("context");
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_TRUE(Agrees(lines[i].Find("rendered"), RenderLine(lines[i], context))) << "line " << i + 1 << ": " << lines[i].Find("template")->Dump();
  }
}

class ChatReference : public ::testing::TestWithParam<std::string> {};

TEST_P(ChatReference, EveryConversation) {
  std::string folder = GetParam() == "demo" ? Shared("demo-model") : Shared("tokenizers/" + GetParam());
  std::string path = Shared("reference/text/" + GetParam() + ".chat.jsonl");
  if (!std::filesystem::exists(folder) || !std::filesystem::exists(path)) GTEST_SKIP() << folder << " or " << path << " is not here";
  auto chat = ChatTemplate::FromFolder(folder);
  ASSERT_TRUE(chat) << chat.error().ToString();
  ASSERT_TRUE(chat->has_value());
  int compared = 0;
  for (const Json& line : Lines(path)) {
    const Json* refused_by = line.Find("error_in");
    if (refused_by != nullptr && refused_by->as_string() == "caller") continue;  // transformers' own checks of its arguments
    const Json* want = line.Find("rendered");
    if (line.Find("rendered_plain") || line.Find("error_plain")) want = line.Find("rendered_plain");
    auto got = (*chat)->Render(*line.Find("messages"), *line.Find("tools"), line.Find("add_generation_prompt")->as_bool(),
                               *line.Find("extra"));
    EXPECT_TRUE(Agrees(want, got)) << line.Find("messages")->Dump();
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

INSTANTIATE_TEST_SUITE_P(Models, ChatReference, ::testing::Values("qwen3", "deepseek_v3", "gptoss", "demo"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace halfbyte::text
