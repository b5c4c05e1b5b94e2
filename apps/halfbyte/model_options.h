// The flags that every command with a model shares, and loading with a report and progress on stderr.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "engine/state_plan.h"
#include "model/load.h"

namespace halfbyte::app {

struct ModelOptions {
  std::string model = "demo";
  std::string quantization = "auto";
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> ignore_layers;
  std::string dense_quantization = "none";
  std::string kv_cache_dtype = "auto";
  std::vector<std::pair<std::string, std::string>> kernels;  // op, name
  std::string load_format = "auto";
  bool exact = false, rounded = false;

  // Flags of commands that run a model; inspect takes a part of them.
  void AddTo(CLI::App& command);
  // To be called when the command line has been read: throws wrong usage that takes several flags to see (a kernel that --device does not have).
  void CheckUsage() const;
  model::LoadSettings Settings() const;
  base::Result<std::filesystem::path> Folder() const;
};

// A validator for flags that name a mode: "" where it is one.
std::string CheckMode(const std::string& mode);

// "<what>: bytes, experts, GB/s, time left" on stderr: a line that renews itself on a terminal, one every five seconds elsewhere; nothing in the first two.
quant::ProgressFunction ProgressBar(std::string what);

// Loads with the load report (unless quiet) and progress on stderr. admit: what the command asks of the model, checked before it is loaded.
using Admit = std::function<base::Status(const model::Admission&)>;
base::Result<model::LoadedModel> LoadWithReport(const ModelOptions& options, const Context& context, Admit admit = {});

// --kv-cache-dtype: nothing for `auto`.
std::optional<tensor::DType> KvDtype(const std::string& option);

// For an Admit: whether the KV cache will fit beside the weights; `remedy` names this command's flags ("lower --batch").
base::Status CheckCache(const model::Admission& admission, const engine::StateOptions& state, const std::string& remedy);
// For an Admit: every id is in the vocabulary; `where` says whose they are.
base::Status CheckTokens(const model::Admission& admission, const std::vector<int32_t>& ids, const std::string& where);

}  // namespace halfbyte::app
