// From a folder to planned and loaded weights: what must be complete, what must be explained, what options do, and that the result depends on nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "model/weights.h"
#include "unit/model/tiny_model.h"

namespace halfbyte::model {
namespace {

using quant::Action;
using tensor::Format;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

Action ActionOf(const Converted& c, const quant::TensorId& id) { return c.plan.Find(id)->action; }

TEST(Load, OnlyRoutedExpertsAreConverted) {
  const auto c = Convert(TinyModel(), Mode("w4a16"));
  ASSERT_TRUE(c) << c.error().ToString();
  for (const auto& [id, m] : c->matrices) {
    if (checkpoint::IsExpertRole(id.role)) EXPECT_EQ(m.format, Format::Nvfp4()) << id.ToString();
    else EXPECT_EQ(m.format, Format::Bf16()) << id.ToString();
  }
  EXPECT_EQ(c->plan.experts_converted, 2);
  EXPECT_EQ(c->stats.parameters_converted, 2 * 3 * 16 * 32);
}

TEST(Load, MissingTensorsAreListed) {
  TinyModel m({.layers = 2, .experts = 3});
  m.Remove("model.layers.1.mlp.experts.2.up_proj.weight");
  m.Remove("model.layers.0.self_attn.k_norm.weight");
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))),
              HasSubstr("2 tensors are missing: model.layers.0.self_attn.k_norm.weight, model.layers.1.mlp.experts.2.up_proj.weight"));
  m = TinyModel({.layers = 2, .experts = 3});
  std::erase_if(m.tensors, [](const RawTensor& t) { return t.name.starts_with("model.layers.1."); });
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), HasSubstr(" and "));
}

TEST(Load, NamesThatTheFamilyDoesNotKnowAreListed) {
  TinyModel m;
  m.Set("model.layers.0.self_attn.surprise.weight", "BF16", "[1]", Bf16Of({1}));
  m.Set("other.weight", "BF16", "[1]", Bf16Of({1}));
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), AllOf(HasSubstr("2 tensors are not part of this model family"), HasSubstr("model.layers.0.self_attn.surprise.weight"), HasSubstr("other.weight")));
}

TEST(Load, TensorsWithoutAPlaceAreListed) {
  // A bias that the configuration does not announce; an expert more than it says; a scale beside a BF16 weight; KV scales that belong to no K or V.
  for (const char* name : {"model.layers.0.self_attn.q_proj.bias", "model.layers.0.mlp.experts.2.up_proj.weight", "model.layers.0.self_attn.q_proj.weight_scale",
                           "model.embed_tokens.k_scale", "lm_head.v_scale", "model.layers.0.self_attn.q_proj.k_scale", "model.layers.0.self_attn.k_proj.v_scale"}) {
    TinyModel m;
    m.Set(name, "BF16", "[1]", Bf16Of({1}));
    EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), AllOf(HasSubstr("1 tensors have no place in this model"), HasSubstr(name)));
  }
}

TEST(Load, KnownSurplusIsCountedInTheReport) {
  TinyModel m;
  m.config.Set("num_nextn_predict_layers", 1);
  m.Set("model.layers.1.eh_proj.weight", "BF16", "[1]", Bf16Of({1}));             // MTP in an extra layer
  m.Set("mtp.layers.0.input_layernorm.weight", "BF16", "[1]", Bf16Of({1}));
  m.Set("model.visual.patch_embed.weight", "BF16", "[1]", Bf16Of({1}));
  m.Set("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", "[1]", checkpoint::FloatBytes({1}));
  const auto c = Convert(m, Mode("w4a16"));
  ASSERT_TRUE(c) << c.error().ToString();
  EXPECT_EQ(c->plan.skipped, (std::map<std::string, int64_t>{{"MTP layer", 2}, {"vision", 1}, {"rotary table", 1}}));
}

// A wrong num_hidden_layers would make a model of its first layers alone, quietly.
TEST(Load, LayersThatTheConfigDoesNotCountAreNamed) {
  for (const int declared : {0, 1}) {
    TinyModel m;
    if (declared) m.config.Set("num_nextn_predict_layers", declared);
    m.Set("model.layers.1.mlp.experts.0.up_proj.weight", "BF16", "[1]", Bf16Of({1}));
    m.Set("model.layers.2.input_layernorm.weight", "BF16", "[1]", Bf16Of({1}));
    const std::string error = ErrorOf(Convert(m, Mode("w4a16")));
    EXPECT_THAT(error, AllOf(HasSubstr("model.layers.2.input_layernorm.weight"), HasSubstr("num_hidden_layers"), HasSubstr("num_nextn_predict_layers")));
    EXPECT_THAT(error, HasSubstr(declared ? "(2 to 2)" : "(1 to 2)"));
    EXPECT_EQ(error.find("model.layers.1.mlp") != error.npos, declared == 0) << error;  // a declared one is no surprise
  }
  TinyModel negative;
  negative.config.Set("num_nextn_predict_layers", -1);
  EXPECT_THAT(ErrorOf(Convert(negative, Mode("w4a16"))), HasSubstr("num_nextn_predict_layers"));
}

TEST(Load, WrongShapesAreNamed) {
  for (const char* name : {"model.embed_tokens.weight", "model.layers.0.mlp.experts.1.down_proj.weight", "model.layers.0.mlp.gate.weight", "model.layers.0.input_layernorm.weight", "lm_head.weight"}) {
    TinyModel m;
    m.Set(name, "BF16", "[7,3]", RandomBf16(21, 1));
    EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), AllOf(HasSubstr(name), HasSubstr("[7, 3]")));
  }
  TinyModel m;
  m.Set("model.layers.0.self_attn.q_proj.weight", "I32", "[32,32]", std::string(4096, 0));
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), AllOf(HasSubstr("q_proj.weight"), HasSubstr("I32")));
}

TEST(Load, ATiedHeadIsTheEmbedding) {
  TinyModel said, silent;
  said.config.Set("tie_word_embeddings", true);
  std::erase_if(silent.config.as_object(), [](const auto& member) { return member.first == "tie_word_embeddings"; });
  for (TinyModel m : {said, silent}) {
    m.Remove("lm_head.weight");
    const auto c = Convert(m, Mode("w4a16"));
    ASSERT_TRUE(c) << c.error().ToString();
    EXPECT_TRUE(c->plan.tied);
    EXPECT_EQ(c->matrices.at({quant::TensorRole::kLmHead, -1, -1}), c->matrices.at({quant::TensorRole::kEmbedding, -1, -1}));
  }
  // A head that stands in the file is the head, whatever config.json says.
  TinyModel untied;
  untied.config.Set("tie_word_embeddings", true);
  const auto u = Convert(untied, Mode("w4a16"));
  ASSERT_TRUE(u);
  EXPECT_FALSE(u->plan.tied);
  EXPECT_FALSE(u->matrices.at({quant::TensorRole::kLmHead, -1, -1}) == u->matrices.at({quant::TensorRole::kEmbedding, -1, -1}));
}

// config.json says that the head is a tensor of its own: without it the download is incomplete, and the embedding is no substitute.
TEST(Load, AHeadThatShouldBeThereIsMissed) {
  TinyModel m;
  m.config.Set("tie_word_embeddings", false);
  m.Remove("lm_head.weight");
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), HasSubstr("1 tensors are missing: lm_head.weight"));
}

TEST(Load, IgnoredLayersKeepTheirExperts) {
  const TinyModel m({.layers = 2});
  LoadSettings s = Mode("w4a16");
  s.ignore_layers = {"model.layers.1.mlp", "model.layers.7"};
  const auto c = Convert(m, s);
  ASSERT_TRUE(c) << c.error().ToString();
  EXPECT_EQ(ActionOf(*c, Up(0, 0)), Action::kQuantize);
  EXPECT_EQ(ActionOf(*c, Up(0, 1)), Action::kKeep);
  EXPECT_EQ(c->matrices.at(Down(1, 1)).format, Format::Bf16());
  EXPECT_EQ(c->plan.experts_converted, 2);
  EXPECT_THAT(c->plan.warnings, Contains(HasSubstr("\"model.layers.7\" of --ignore-layers matches no expert")));
  ASSERT_EQ(c->plan.patterns.size(), 2u);
  EXPECT_EQ(c->plan.patterns[0].matches, 6);
}

TEST(Load, TheSourcesOwnExcludeListIsObeyedByModeloptFp4Only) {
  TinyModel m({.layers = 2});
  m.config.Set("quantization_config", *base::Json::Parse(R"({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128], "modules_to_not_convert": ["model.layers.1.mlp.experts"]})"));
  const auto w4a16 = Convert(m, Mode("w4a16")), modelopt = Convert(m, Mode("modelopt_fp4"));
  ASSERT_TRUE(w4a16) << w4a16.error().ToString();
  ASSERT_TRUE(modelopt) << modelopt.error().ToString();
  EXPECT_EQ(ActionOf(*w4a16, Up(0, 1)), Action::kQuantize);
  EXPECT_THAT(w4a16->plan.warnings, Contains(HasSubstr("6 expert matrices that the checkpoint's exclude list names are converted")));
  EXPECT_EQ(ActionOf(*modelopt, Up(0, 1)), Action::kKeep);
  EXPECT_EQ(ActionOf(*modelopt, Up(0, 0)), Action::kQuantize);
}

TEST(Load, AModeThatCanDoNothingIsAnError) {
  TinyModel dense;
  dense.config.Set("model_type", "qwen3");
  std::erase_if(dense.tensors, [](const RawTensor& t) { return t.name.find("mlp") != t.name.npos; });
  for (auto [name, shape] : {std::pair{"gate", "[64,32]"}, {"up", "[64,32]"}, {"down", "[32,64]"}}) dense.Set(base::StrCat("model.layers.0.mlp.", name, "_proj.weight"), "BF16", shape, RandomBf16(64 * 32, 9));
  EXPECT_TRUE(Convert(dense, Mode("auto")));
  EXPECT_TRUE(Convert(dense, Mode("none")));
  EXPECT_THAT(ErrorOf(Convert(dense, Mode("w4a16"))), AllOf(HasSubstr("--quantization w4a16: this model has no experts"), HasSubstr("--dense-quantization")));
  LoadSettings s = Mode("w4a16");
  s.dense = quant::DenseQuantization::kFp8;
  const auto c = Convert(dense, s);
  ASSERT_TRUE(c) << c.error().ToString();
  EXPECT_EQ(c->matrices.at({quant::TensorRole::kDenseGate, 0, -1}).format, Format::Fp8(tensor::Outer::kPerRow));
  EXPECT_EQ(c->matrices.at({quant::TensorRole::kEmbedding, -1, -1}).format, Format::Bf16());
  EXPECT_THAT(ErrorOf(Convert(dense, Mode("w5a5"))), AllOf(HasSubstr("w5a5"), HasSubstr("w4a16")));
}

TEST(Load, HiddenSizesThatNvfp4CannotHoldAreRefusedByName) {
  const TinyModel m({.hidden = 40});
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), AllOf(HasSubstr("model.layers.0.mlp.experts.0.gate_proj.weight"), HasSubstr("40 columns are not a multiple of 16")));
  EXPECT_TRUE(Convert(m, Mode("none")));
  LoadSettings s = Mode("w4a16");
  s.ignore_layers = {"model.layers.0"};
  EXPECT_TRUE(Convert(m, s));
}

TEST(Load, BytesDoNotDependOnWorkersOrOnTheOrderOfTheFiles) {
  const TinyModel m({.layers = 3, .experts = 5, .hidden = 64, .f = 48});
  const auto want = Convert(m, Mode("w4a16"));
  ASSERT_TRUE(want) << want.error().ToString();
  std::mt19937 random(7);
  for (int shards : {1, 2, 4}) {
    for (int workers : {1, 2, 5}) {
      std::vector<size_t> order(m.tensors.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), random);
      TemporaryFolder folder;
      m.Write(folder, shards, order);
      const auto have = Convert(folder.path(), Mode("w4a16"), workers);
      ASSERT_TRUE(have) << have.error().ToString();
      EXPECT_EQ(have->matrices, want->matrices) << shards << " shards, " << workers << " workers";
      EXPECT_EQ(have->vectors, want->vectors);
    }
  }
}

// Counts how often each byte of each file is read, below every reader of ours. Not the first eight: a header's length is asked for before the header.
class ReadCounter {
 public:
  platform::PreadFunction Function() {
    return [this](int fd, void* out, size_t bytes, off_t offset) -> ssize_t {
      const ssize_t n = ::pread(fd, out, bytes, offset);
      struct stat file;  // descriptors are reused, inodes of a folder are not
      EXPECT_EQ(::fstat(fd, &file), 0);
      std::lock_guard lock(mutex_);
      for (ssize_t i = offset < 8 ? 8 - offset : 0; i < n; ++i) ++counts_[{file.st_ino, offset + i}];
      return n;
    };
  }
  int most() const {
    int most = 0;
    for (const auto& [at, n] : counts_) most = std::max(most, n);
    return most;
  }
  size_t bytes() const { return counts_.size(); }

 private:
  std::mutex mutex_;
  std::map<std::pair<ino_t, off_t>, int> counts_;
};

TEST(Load, EveryByteIsReadOnce) {
  TinyModel m({.layers = 2, .experts = 3});
  m.config.Set("tie_word_embeddings", true);  // the embedding is used twice
  m.Remove("lm_head.weight");
  TemporaryFolder folder;
  m.Write(folder);
  for (int workers : {1, 3}) {
    ReadCounter counter;
    LoadSettings s = Mode("w4a16");
    s.files.file.pread = counter.Function();
    const auto prepared = Prepare(folder.path(), s, "cpu");
    ASSERT_TRUE(prepared) << prepared.error().ToString();
    test::RecordingSink sink;
    ASSERT_TRUE(quant::RunLoad(*prepared->files, prepared->plan, sink, {workers, {}}));
    EXPECT_EQ(counter.most(), 1);
    size_t total = 0;
    for (const RawTensor& t : m.tensors) total += t.data.size();
    EXPECT_GE(counter.bytes(), total);
  }
}

TEST(Load, TheEndOfALoadProvesCompleteness) {
  const TinyModel m;
  TemporaryFolder folder;
  m.Write(folder);
  const auto prepared = Prepare(folder.path(), Mode("w4a16"), "reference");
  ASSERT_TRUE(prepared) << prepared.error().ToString();
  test::RecordingSink recorded;
  ASSERT_TRUE(quant::RunLoad(*prepared->files, prepared->plan, recorded, {1, {}}));
  auto load = [&](auto leave_out) {
    auto loaded = LoadModel(folder.path(), [&] { LoadSettings s = Mode("w4a16"); s.device = "reference"; return s; }());
    EXPECT_TRUE(loaded);
    auto weights = *Weights::Create(loaded->model->backend(), prepared->spec, prepared->plan, Arithmetic::kExact);
    for (const auto& [id, r] : recorded.matrices) {
      if (leave_out(id)) continue;
      EXPECT_TRUE(weights->PutMatrix(id, 0, {r.format, r.rows.rbegin()->first + r.rows.rbegin()->second, r.cols, r.elements.data(), r.block_scales.data(), r.outer.data()}));
    }
    for (const auto& [key, v] : recorded.vectors) {
      if (leave_out(key.first)) continue;
      EXPECT_TRUE(weights->PutVector(key.first, key.second, v));
    }
    return weights->CheckComplete(prepared->plan);
  };
  EXPECT_TRUE(load([](const quant::TensorId&) { return false; }));
  EXPECT_THAT(ErrorOf(load([](const quant::TensorId& id) { return id == Up(1); })), HasSubstr("layer 0, expert 1, experts.up: 0 of 16 rows arrived"));
  EXPECT_THAT(ErrorOf(load([](const quant::TensorId& id) { return id.role == quant::TensorRole::kKNorm; })), HasSubstr("layer 0, attention.k_norm weight: arrived 0 times"));
}

}  // namespace
}  // namespace halfbyte::model
