// Where a model is, and which of its files may be read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "platform/file_reader.h"

namespace halfbyte::checkpoint {

// Where names are looked up; from the program's own place and the environment unless a test says otherwise.
struct ModelSearch {
  std::vector<std::filesystem::path> demo;  // the first that is a folder is the model "demo"
  std::filesystem::path hub_cache;          // Hugging Face's local cache: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub; empty where there is no home

  static ModelSearch FromEnvironment();
};

// The folder that --model means. In this order:
//   "demo"            the model shipped with the project (a folder of that name is ./demo)
//   an existing path  that folder
//   "org/name"        the snapshot of refs/main in the local Hugging Face cache; kNotFound with the `hf download` line to run
base::Result<std::filesystem::path> ResolveModelFolder(const std::string& model);
base::Result<std::filesystem::path> ResolveModelFolder(const std::string& model, const ModelSearch& search);

// A file name that came out of a file: no separators, not "", "." or "..", no control characters.
base::Status CheckPlainFileName(std::string_view name);

// A model's folder, opened once. Files are named without any path, must be regular, and must lie in the folder itself; a symbolic link may
// leave it only into the blobs of the same model in a Hugging Face cache (that is how the cache stores snapshots). So no index can make
// this program read /etc/passwd or hang on a FIFO (user case T12).
class ModelFolder {
 public:
  static base::Result<ModelFolder> Open(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  // Something of this name is there (whatever it is). False for names that are no plain file names.
  bool Has(std::string_view name) const;
  // Names in the folder that end with `suffix`, sorted; hidden ones are left out.
  base::Result<std::vector<std::string>> List(std::string_view suffix) const;
  base::Result<platform::ReadOnlyFile> OpenFile(std::string_view name, platform::FileOptions options = {}) const;
  base::Result<std::string> ReadText(std::string_view name, uint64_t limit, platform::FileOptions options = {}) const;

 private:
  base::Result<std::filesystem::path> Locate(std::string_view name) const;

  std::filesystem::path path_;                  // canonical
  std::optional<std::filesystem::path> blobs_;  // canonical, where the folder is a snapshot of a Hugging Face cache
};

// The JSON files of a model that say what it is. What is not there is null, config.json excepted, which must be there.
struct ModelConfigs {
  base::Json config;             // config.json
  base::Json generation_config;  // generation_config.json
  base::Json hf_quant_config;    // hf_quant_config.json, ModelOpt's own
};
base::Result<ModelConfigs> ReadModelConfigs(const ModelFolder& folder, const platform::FileOptions& options = {});

// One such file, wherever it lies: regular, of bounded size, a JSON object; errors name the path.
base::Result<base::Json> ReadConfigFile(const std::filesystem::path& path);

// JSON as configuration files have it: also bare Infinity and NaN, and transformers 5's {"__float__": "Infinity"} (both become numbers).
base::Result<base::Json> ParseConfigJson(std::string_view text);

}  // namespace halfbyte::checkpoint
