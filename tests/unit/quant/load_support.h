// The load pipeline over tensors written by hand, without a model: names, shapes and layouts are the test's to choose.
#pragma once

#include <gtest/gtest.h>

#include "quant/load_pipeline.h"
#include "quant/plan.h"
#include "support/recording_sink.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::quant {

using checkpoint::NameRule;
using checkpoint::RawTensor;
using checkpoint::TemporaryFolder;

struct HandMade {
  std::vector<RawTensor> tensors;
  std::vector<NameRule> rules = {{"model.layers.{L}.mlp.experts.{E}.gate_proj", TensorRole::kExpertGate},
                                 {"model.layers.{L}.mlp.experts.{E}.up_proj", TensorRole::kExpertUp},
                                 {"model.layers.{L}.mlp.experts.{E}.down_proj", TensorRole::kExpertDown}};
  std::vector<ExpectedTensor> expected;
  SourceOptions source;
  PlanOptions plan{.mode = QuantMode::kW4A16, .contract = numerics::WeightContract::Online()};

  void ExpectMatrix(TensorRole role, int64_t rows, int64_t cols, int32_t expert = 0) { expected.push_back({{role, 0, expert}, TensorPart::kWeight, rows, cols}); }

  struct Loaded {
    std::map<TensorId, test::RecordedMatrix> matrices;
    std::map<TensorId, Action> actions;
    LoadStats stats;
    int64_t discarded = 0;  // companions that the mode does not read
  };
  base::Result<Loaded> Load(int workers = 1, platform::PreadFunction pread = {}) const {
    TemporaryFolder folder;
    folder.Write("config.json", "{}");
    folder.Write("model.safetensors", checkpoint::SafetensorsBytes(tensors));
    checkpoint::CheckpointOptions options;
    options.file.pread = std::move(pread);
    HB_ASSIGN_OR_RETURN(const checkpoint::Checkpoint files, checkpoint::Checkpoint::Open(folder.path(), options));
    HB_ASSIGN_OR_RETURN(SourceMap map, MapSources(files, checkpoint::NameMap(rules, 8), expected, source));
    HB_ASSIGN_OR_RETURN(const QuantPlan made, MakePlan(std::move(map), plan));
    test::RecordingSink sink;
    Loaded loaded;
    HB_ASSIGN_OR_RETURN(loaded.stats, RunLoad(files, made, sink, {workers, {}}));
    for (const PlannedMatrix& m : made.matrices) loaded.actions[m.source.id] = m.action;
    loaded.matrices = std::move(sink.matrices);
    loaded.discarded = made.discarded;
    return loaded;
  }
  std::string Error() const {
    auto result = Load();
    EXPECT_FALSE(result.has_value()) << "an error was wanted";
    return result ? std::string() : result.error().ToString();
  }
};

inline TensorId Id(TensorRole role, int expert = 0) { return {role, 0, expert}; }

}  // namespace halfbyte::quant
