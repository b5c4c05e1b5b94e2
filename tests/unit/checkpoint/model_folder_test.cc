#include "checkpoint/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/checkpoint/test_files.h"

namespace halfbyte::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string Resolve(const std::string& model, const ModelSearch& search) {
  auto path = ResolveModelFolder(model, search);
  return path ? path->string() : "error: " + path.error().ToString();
}

TEST(ResolveModelFolder, AnExistingFolder) {
  TemporaryFolder folder;
  EXPECT_EQ(Resolve(folder.path(), {}), folder.path());
  EXPECT_THAT(Resolve(folder.path() / "none", {}), HasSubstr("there is no folder"));
  EXPECT_THAT(Resolve("", {}), HasSubstr("is empty"));
  EXPECT_THAT(Resolve(folder.Write("m.gguf", "GGUF"), {}), AllOf(HasSubstr("is a file"), HasSubstr("GGUF files are not read")));
}

TEST(ResolveModelFolder, DemoIsTheShippedModel) {
  TemporaryFolder installed;
  fs::create_directories(installed.path() / "demo");
  EXPECT_EQ(Resolve("demo", {.demo = {installed.path() / "none", installed.path() / "demo"}}), installed.path() / "demo");
  EXPECT_THAT(Resolve("demo", {.demo = {installed.path() / "none"}}), HasSubstr("is not installed"));
  auto real = ResolveModelFolder("demo");  // from the build tree: the sources' own
  ASSERT_TRUE(real) << real.error().ToString();
  EXPECT_TRUE(fs::exists(*real / "config.json"));
}

TEST(ResolveModelFolder, AHubNameIsLookedUpInTheLocalCache) {
  TemporaryFolder cache;
  ModelSearch search{.hub_cache = cache.path()};
  EXPECT_THAT(Resolve("org/name", search), AllOf(HasSubstr("neither a folder here nor a model in the Hugging Face cache"), HasSubstr("hf download org/name")));
  cache.Write("models--org--name/snapshots/aaa/config.json", "{}");
  cache.Write("models--org--name/snapshots/bbb/config.json", "{}");
  EXPECT_THAT(Resolve("org/name", search), HasSubstr("hf download org/name"));  // two, and nothing says which
  cache.Write("models--org--name/refs/main", "bbb\n");
  EXPECT_EQ(Resolve("org/name", search), cache.path() / "models--org--name/snapshots/bbb");
  cache.Write("models--org--name/refs/main", "../../../../etc");
  EXPECT_THAT(Resolve("org/name", search), HasSubstr("hf download org/name"));
  cache.Write("models--org--one/snapshots/ccc/config.json", "{}");  // downloaded by revision: no refs/main
  EXPECT_EQ(Resolve("org/one", search), cache.path() / "models--org--one/snapshots/ccc");
  cache.Write("models--gpt2/snapshots/ddd/config.json", "{}");
  EXPECT_EQ(Resolve("gpt2", search), cache.path() / "models--gpt2/snapshots/ddd");
  for (const char* name : {"../etc", "a/b/c", "/etc/x", "org/", "a--b/c", "org/na me"}) EXPECT_THAT(Resolve(name, search), HasSubstr("there is no folder")) << name;
}

class Environment : public testing::Test {
 protected:
  void SetUp() override { for (const char* name : kNames) { const char* v = ::getenv(name); saved_.emplace_back(v ? v : ""); ::unsetenv(name); } ::setenv("HOME", "/h/u", 1); }
  void TearDown() override { for (size_t i = 0; i < saved_.size(); ++i) saved_[i].empty() ? ::unsetenv(kNames[i]) : ::setenv(kNames[i], saved_[i].c_str(), 1); }
  static constexpr const char* kNames[] = {"HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"};
  std::vector<std::string> saved_;
};
TEST_F(Environment, NamesTheHubCache) {
  EXPECT_EQ(ModelSearch::FromEnvironment().hub_cache, "/h/u/.cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(ModelSearch::FromEnvironment().hub_cache, "/xdg/huggingface/hub");
  ::setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(ModelSearch::FromEnvironment().hub_cache, "/h/u/hf/hub");
  ::setenv("HF_HUB_CACHE", "/cache", 1);
  EXPECT_EQ(ModelSearch::FromEnvironment().hub_cache, "/cache");
}

}  // namespace
}  // namespace halfbyte::checkpoint
