#include "text/chat_template.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace halfbyte::text {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Json;

class ChatTemplateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("chat_template_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(Folder());
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path Folder() const { return root_ / "model"; }
  void Write(const std::string& name, const std::string& text) { std::ofstream(Folder() / name) << text; }
  static Json Parse(const char* text) { return Json::Parse(text).value(); }

  base::Result<std::string> Render(const char* messages, bool prompt = false, const char* extra = "{}", const char* tools = "null") {
    HB_ASSIGN_OR_RETURN(std::optional<ChatTemplate> chat, ChatTemplate::FromFolder(Folder()));
    if (!chat) return base::Fail(ErrorCode::kNotFound, "no template");
    return chat->Render(Parse(messages), Parse(tools), prompt, Parse(extra));
  }

  fs::path root_;
};

constexpr const char* kHi = R"([{"role": "user", "content": "hi"}])";

TEST_F(ChatTemplateTest, NoTemplateIsNoError) {
  auto none = ChatTemplate::FromFolder(Folder());
  ASSERT_TRUE(none) << none.error().ToString();
  EXPECT_FALSE(none->has_value());
  Write("tokenizer_config.json", R"({"chat_template": null, "bos_token": "<s>"})");
  EXPECT_FALSE(ChatTemplate::FromFolder(Folder())->has_value());
}

TEST_F(ChatTemplateTest, TheFileGoesBeforeTheConfiguration) {
  Write("tokenizer_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(Render(kHi).value(), "config");
  Write("chat_template.jinja", "file");
  EXPECT_EQ(Render(kHi).value(), "file");
}

TEST_F(ChatTemplateTest, OfSeveralTemplatesToolsChooseToolUse) {
  Write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]})");
  EXPECT_EQ(Render(kHi).value(), "D");
  EXPECT_EQ(Render(kHi, false, "{}", "[{}]").value(), "T");
  Write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "R"}]})");
  EXPECT_EQ(Render(kHi).error().code(), ErrorCode::kUnsupported);
}

TEST_F(ChatTemplateTest, SpecialTokensAsStringsOrObjects) {
  Write("tokenizer_config.json", R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "unk_token": null,
      "model_max_length": Infinity, "extra_special_tokens": {"image_token": "<image>"},
      "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ image_token }}{{ unk_token is defined }}"})");
  Write("special_tokens_map.json", R"({"eos_token": "other", "pad_token": {"content": "<pad>"}})");
  EXPECT_EQ(Render(kHi).value(), "<s></s><pad><image>False");
  EXPECT_EQ(Render(kHi, false, R"({"bos_token": "mine"})").value(), "mine</s><pad><image>False");
}

TEST_F(ChatTemplateTest, WhatTheTemplateSees) {
  Write("chat_template.jinja", "{{ messages|length }}{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ enable_thinking }}{{ strftime_now('%Y') }}");
  EXPECT_EQ(Render(kHi, true, R"({"enable_thinking": false, "now": "1999-01-02"})").value(), "1NoneNoneTrueFalse1999");
}

TEST_F(ChatTemplateTest, ContinueFinalMessage) {
  const char* chat = R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": " so far "}])";
  const char* extra = R"({"continue_final_message": true})";
  Write("chat_template.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}");
  EXPECT_EQ(Render(chat, false, extra).value(), "<user>a</><assistant> so far ");
  Write("chat_template.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</>{% endfor %}");
  EXPECT_EQ(Render(chat, false, extra).value(), "<user>a</><assistant>so far");
  const char* parts = R"([{"role": "assistant", "content": [{"type": "text", "text": "one"}, {"type": "image"}]}])";
  Write("chat_template.jinja", "{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}");
  EXPECT_EQ(Render(parts, false, extra).value(), "[one");
  EXPECT_EQ(Render(chat, true, extra).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Render("[]", false, extra).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Render(R"([{"role": "assistant", "content": null}])", false, extra).error().code(), ErrorCode::kInvalidArgument);
  Write("chat_template.jinja", "nothing of it");
  EXPECT_EQ(Render(chat, false, extra).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ChatTemplateTest, ErrorsKeepTheirKind) {
  Write("chat_template.jinja", "line one\n{% if %}");
  auto broken = ChatTemplate::FromFolder(Folder());
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code(), ErrorCode::kBadFile);
  EXPECT_NE(broken.error().ToString().find("line 2"), std::string::npos) << broken.error().ToString();
  Write("chat_template.jinja", "{{ raise_exception('only users') }}");
  auto raised = Render(kHi);
  EXPECT_EQ(raised.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(raised.error().message(), "only users");
  Write("chat_template.jinja", "{{ messages[0].content + 1 }}");
  EXPECT_EQ(Render(kHi).error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(Render(kHi, false, "[]").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Render(kHi, false, R"({"now": "yesterday"})").error().code(), ErrorCode::kInvalidArgument);
  Write("chat_template.jinja", "");
  Write("tokenizer_config.json", "[1]");
  EXPECT_EQ(ChatTemplate::FromFolder(Folder()).error().code(), ErrorCode::kBadFile);
}

TEST_F(ChatTemplateTest, OnlyFilesOfTheFolderAreRead) {
  std::ofstream(root_ / "outside.jinja") << "secret";
  fs::create_symlink(root_ / "outside.jinja", Folder() / "chat_template.jinja");
  EXPECT_EQ(ChatTemplate::FromFolder(Folder()).error().code(), ErrorCode::kBadFile);
  fs::remove(Folder() / "chat_template.jinja");
  ASSERT_EQ(mkfifo((Folder() / "chat_template.jinja").c_str(), 0600), 0);
  EXPECT_EQ(ChatTemplate::FromFolder(Folder()).error().code(), ErrorCode::kBadFile);  // and does not wait for a writer
  fs::remove(Folder() / "chat_template.jinja");
  fs::create_directory(Folder() / "chat_template.jinja");
  EXPECT_FALSE(ChatTemplate::FromFolder(Folder()));
}

TEST_F(ChatTemplateTest, ASnapshotOfTheHubCacheLinksToItsBlobs) {
  fs::path repository = root_ / "models--org--name", snapshot = repository / "snapshots" / "abc";
  fs::create_directories(snapshot);
  fs::create_directories(repository / "blobs");
  std::ofstream(repository / "blobs" / "0123") << "from a blob";
  fs::create_symlink("../../blobs/0123", snapshot / "chat_template.jinja");
  auto chat = ChatTemplate::FromFolder(snapshot);
  ASSERT_TRUE(chat) << chat.error().ToString();
  EXPECT_EQ((*chat)->Render(Parse("[]"), Json(), false, Json()).value(), "from a blob");
}

TEST_F(ChatTemplateTest, AFileOfTheUsersChoice) {
  Write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "unused"})");
  std::ofstream(root_ / "mine.jinja") << "{{ bos_token }}mine\n";
  auto chat = ChatTemplate::FromFile(root_ / "mine.jinja", Folder());
  ASSERT_TRUE(chat) << chat.error().ToString();
  EXPECT_EQ(chat->Render(Parse(kHi), Json(), false, Json()).value(), "<s>mine");
  EXPECT_EQ(ChatTemplate::FromFile(root_ / "absent.jinja", Folder()).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace halfbyte::text
