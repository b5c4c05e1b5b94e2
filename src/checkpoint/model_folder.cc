#include "checkpoint/model_folder.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <limits>
#include <pwd.h>
#include <unistd.h>

namespace halfbyte::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Fail;
using base::Json;
using base::StrCat;

constexpr uint64_t kMaxConfigBytes = uint64_t{64} << 20;  // exclude lists with every expert by name reach some MB

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// As Python's expanduser: $HOME, else what the user database says, else nothing.
std::string Home() {
  if (std::string home = Environment("HOME"); !home.empty()) return home;
  const passwd* user = ::getpwuid(::getuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

fs::path HubCache() {
  const std::string home = Home();
  auto expand = [&](const std::string& p) { return p == "~" || p.starts_with("~/") ? fs::path(home + p.substr(1)) : fs::path(p); };
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (std::string v = Environment(name); !v.empty()) return expand(v);
  if (std::string v = Environment("HF_HOME"); !v.empty()) return expand(v) / "hub";
  if (std::string v = Environment("XDG_CACHE_HOME"); !v.empty()) return expand(v) / "huggingface" / "hub";
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "huggingface" / "hub";
}

bool IsFolder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

// "org/name" or "name", of letters, digits, '-', '_', '.' as the hub allows them; also keeps ".." and absolute paths out of the cache.
bool IsHubName(std::string_view name) {
  if (name.empty() || name.size() > 193 || std::count(name.begin(), name.end(), '/') > 1) return false;
  if (name.find("..") != name.npos || name.find("--") != name.npos || name.front() == '/' || name.back() == '/') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/'; });
}

// The snapshot that refs/main names, or the only one there is.
std::optional<fs::path> Snapshot(const fs::path& repository) {
  if (auto revision = platform::ReadWholeFile(repository / "refs" / "main", 1024)) {
    while (!revision->empty() && std::isspace(static_cast<unsigned char>(revision->back()))) revision->pop_back();
    if (CheckPlainFileName(*revision) && IsFolder(repository / "snapshots" / *revision)) return repository / "snapshots" / *revision;
  }
  std::error_code ec;
  std::vector<fs::path> found;
  for (fs::directory_iterator i(repository / "snapshots", ec), end; !ec && i != end; i.increment(ec))
    if (IsFolder(i->path())) found.push_back(i->path());
  if (found.size() == 1) return found.front();
  return std::nullopt;
}

// share/halfbyte/models/demo of the prefix that a file is installed under, at most three folders up.
void AddInstalledDemo(const fs::path& file, std::vector<fs::path>& out) {
  fs::path prefix = file.parent_path();
  for (int i = 0; i < 3 && prefix.has_relative_path(); ++i) {
    prefix = prefix.parent_path();
    out.push_back(prefix / "share" / "halfbyte" / "models" / "demo");
  }
}

bool LiesIn(const fs::path& file, const fs::path& folder) { return file.parent_path() == folder; }

void RestoreFloats(Json& v) {
  if (v.is_array()) for (Json& e : v.as_array()) RestoreFloats(e);
  if (!v.is_object()) return;
  const Json* text = v.Find("__float__");
  if (text && text->is_string() && v.as_object().size() == 1) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (text->as_string() == "Infinity") { v = Json(kInf); return; }
    if (text->as_string() == "-Infinity") { v = Json(-kInf); return; }
    if (text->as_string() == "NaN") { v = Json(std::numeric_limits<double>::quiet_NaN()); return; }
  }
  for (auto& member : v.as_object()) RestoreFloats(member.second);
}

}  // namespace

ModelSearch ModelSearch::FromEnvironment() {
  ModelSearch search;
  // Beside the program, and beside the library where that is what runs: prefix/bin/halfbyte, prefix/lib/libhalfbyte.so, prefix/lib/x86_64-linux-gnu/...
  std::error_code ec;
  if (fs::path program = fs::read_symlink("/proc/self/exe", ec); !ec) AddInstalledDemo(program, search.demo);
  Dl_info object;
  static const char here = 0;
  if (dladdr(&here, &object) && object.dli_fname) AddInstalledDemo(fs::absolute(object.dli_fname, ec), search.demo);
  search.demo.push_back(fs::path(HALFBYTE_SOURCE_MODELS) / "demo");
  search.hub_cache = HubCache();
  return search;
}

base::Result<fs::path> ResolveModelFolder(const std::string& model) { return ResolveModelFolder(model, ModelSearch::FromEnvironment()); }

base::Result<fs::path> ResolveModelFolder(const std::string& model, const ModelSearch& search) {
  if (model.empty()) return Fail(ErrorCode::kInvalidArgument, "the model's name is empty; give a folder, org/name or demo");
  if (model == "demo") {
    for (const fs::path& path : search.demo) if (IsFolder(path)) return path;
    return Fail(ErrorCode::kNotFound, "the demo model is not installed (looked for ", search.demo.empty() ? "nothing" : search.demo.back().string(), ")");
  }
  std::error_code ec;
  if (IsFolder(model)) return fs::path(model);
  if (fs::exists(model, ec)) {
    base::Error error(ErrorCode::kInvalidArgument, StrCat(model, " is a file, a model is a folder with config.json and *.safetensors"));
    return Fail(model.ends_with(".gguf") ? std::move(error).Hint("GGUF files are not read") : std::move(error));
  }
  if (!IsHubName(model)) return Fail(ErrorCode::kNotFound, "there is no folder ", model);

  std::string repository = "models--" + model;
  if (size_t slash = repository.find('/'); slash != repository.npos) repository.replace(slash, 1, "--");
  if (search.hub_cache.empty() && model.find('/') != model.npos)
    return Fail(base::Error(ErrorCode::kNotFound, StrCat(model, " is no folder here, and where the Hugging Face cache is, nobody knows")).Hint("set HF_HOME, HF_HUB_CACHE or HOME"));
  if (std::optional<fs::path> snapshot = Snapshot(search.hub_cache / repository)) return *snapshot;
  if (model.find('/') == model.npos) return Fail(ErrorCode::kNotFound, "there is no folder ", model);
  return Fail(base::Error(ErrorCode::kNotFound, StrCat(model, " is neither a folder here nor a model in the Hugging Face cache ", search.hub_cache.string()))
                  .Hint("to fetch it: hf download " + model));
}

base::Status CheckPlainFileName(std::string_view name) {
  bool control = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (name.empty() || name == "." || name == ".." || name.size() > 255 || control || name.find('/') != name.npos || name.find('\\') != name.npos) {
    std::string shown;
    for (char c : name.substr(0, 200)) shown += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    return Fail(ErrorCode::kBadFile, "\"", shown, "\" is no plain file name; files of a model lie in its folder");
  }
  return {};
}

base::Result<ModelFolder> ModelFolder::Open(const fs::path& path) {
  std::error_code ec;
  ModelFolder folder;
  folder.path_ = fs::canonical(path, ec);
  if (ec) return Fail(ErrorCode::kNotFound, path.string(), ": ", ec.message());
  if (!IsFolder(folder.path_)) return Fail(ErrorCode::kInvalidArgument, path.string(), " is no folder");
  fs::path snapshots = folder.path_.parent_path();
  if (snapshots.filename() == "snapshots") {
    fs::path blobs = fs::canonical(snapshots.parent_path() / "blobs", ec);
    if (!ec) folder.blobs_ = blobs;
  }
  return folder;
}

bool ModelFolder::Has(std::string_view name) const {
  std::error_code ec;
  return CheckPlainFileName(name).has_value() && fs::symlink_status(path_ / name, ec).type() != fs::file_type::not_found && !ec;
}

base::Result<std::vector<std::string>> ModelFolder::List(std::string_view suffix) const {
  std::error_code ec;
  std::vector<std::string> names;
  for (fs::directory_iterator i(path_, ec), end; !ec && i != end; i.increment(ec)) {
    std::string name = i->path().filename().string();
    if (name.ends_with(suffix) && !name.starts_with(".")) names.push_back(std::move(name));
  }
  if (ec) return Fail(ErrorCode::kIo, path_.string(), ": ", ec.message());
  std::sort(names.begin(), names.end());
  return names;
}

base::Result<fs::path> ModelFolder::Locate(std::string_view name) const {
  HB_RETURN_IF_ERROR(CheckPlainFileName(name));
  std::error_code ec;
  fs::path real = fs::canonical(path_ / name, ec);
  if (ec == std::errc::no_such_file_or_directory) {
    bool dangling = fs::symlink_status(path_ / name).type() == fs::file_type::symlink;
    return Fail(base::Error(ErrorCode::kNotFound, StrCat((path_ / name).string(), dangling ? " is a link to nothing" : " is not there")).Hint("the download may be incomplete"));
  }
  if (ec) return Fail(ErrorCode::kIo, (path_ / name).string(), ": ", ec.message());
  if (LiesIn(real, path_) || (blobs_ && LiesIn(real, *blobs_))) return real;
  return Fail(base::Error(ErrorCode::kBadFile, StrCat((path_ / name).string(), " is a link that leaves the model's folder (to ", real.string(), ")"))
                  .Hint("copy the file into the folder"));
}

base::Result<platform::ReadOnlyFile> ModelFolder::OpenFile(std::string_view name, platform::FileOptions options) const {
  HB_ASSIGN_OR_RETURN(fs::path real, Locate(name));
  options.follow_last_link = false;  // resolved above; a link put there since then is refused
  return platform::ReadOnlyFile::Open(real, std::move(options));
}

base::Result<std::string> ModelFolder::ReadText(std::string_view name, uint64_t limit, platform::FileOptions options) const {
  HB_ASSIGN_OR_RETURN(fs::path real, Locate(name));
  options.follow_last_link = false;
  return platform::ReadWholeFile(real, limit, std::move(options));
}

base::Result<Json> ParseConfigJson(std::string_view text) {
  HB_ASSIGN_OR_RETURN(Json value, Json::Parse(text, {.allow_nonfinite = true}));
  RestoreFloats(value);
  return value;
}

namespace {

base::Result<Json> ParseConfigObject(std::string_view text, const fs::path& path) {
  HB_ASSIGN_OR_RETURN_AT(Json value, ParseConfigJson(text), path.string());
  if (!value.is_object()) return Fail(ErrorCode::kBadFile, path.string(), " holds a JSON ", value.type_name(), ", an object is wanted");
  return value;
}

}  // namespace

base::Result<Json> ReadConfigFile(const fs::path& path) {
  HB_ASSIGN_OR_RETURN(const std::string text, platform::ReadWholeFile(path, kMaxConfigBytes));
  return ParseConfigObject(text, path);
}

base::Result<ModelConfigs> ReadModelConfigs(const ModelFolder& folder, const platform::FileOptions& options) {
  auto read = [&](const char* name, Json& out) -> base::Status {
    HB_ASSIGN_OR_RETURN(std::string text, folder.ReadText(name, kMaxConfigBytes, options));
    HB_ASSIGN_OR_RETURN(out, ParseConfigObject(text, folder.path() / name));
    return {};
  };
  ModelConfigs configs;
  if (!folder.Has("config.json"))
    return Fail(base::Error(ErrorCode::kNotFound, StrCat(folder.path().string(), " has no config.json")).Hint("a model is a Hugging Face folder with config.json and *.safetensors"));
  HB_RETURN_IF_ERROR(read("config.json", configs.config));
  if (folder.Has("generation_config.json")) HB_RETURN_IF_ERROR(read("generation_config.json", configs.generation_config));
  if (folder.Has("hf_quant_config.json")) HB_RETURN_IF_ERROR(read("hf_quant_config.json", configs.hf_quant_config));
  return configs;
}

}  // namespace halfbyte::checkpoint
