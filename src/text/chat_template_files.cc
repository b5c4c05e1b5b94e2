#include "text/chat_template_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace halfbyte::text {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Fail;

constexpr size_t kMaxJson = 64u << 20;  // tokenizer_config.json may list every added token

// Closes on the way out.
class File {
 public:
  explicit File(const fs::path& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() { if (fd_ >= 0) close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool LiesIn(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  fs::path real = fs::canonical(file, error), home = fs::canonical(folder, error);
  if (error) return false;
  if (real.parent_path() == home) return true;
  fs::path snapshots = home.parent_path();
  return snapshots.filename() == "snapshots" && real.parent_path() == snapshots.parent_path() / "blobs";
}

// The text of a token: "x" or {"content": "x", ...}.
const base::Json* TokenText(const base::Json& token) {
  const base::Json* text = token.is_object() ? token.Find("content") : &token;
  return text != nullptr && text->is_string() ? text : nullptr;
}

}  // namespace

base::Result<std::optional<std::string>> ReadSmallFile(const fs::path& file, size_t limit) {
  File handle(file);
  if (handle.fd() < 0) {
    if (errno == ENOENT) return std::nullopt;
    return Fail(ErrorCode::kIo, file.string(), ": ", std::strerror(errno));
  }
  struct stat info{};
  if (fstat(handle.fd(), &info) != 0) return Fail(ErrorCode::kIo, file.string(), ": ", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return Fail(ErrorCode::kBadFile, file.string(), " is not a regular file");
  if (static_cast<uint64_t>(info.st_size) > limit) {
    return Fail(ErrorCode::kBadFile, file.string(), " has ", info.st_size, " bytes, ", limit, " are allowed");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = read(handle.fd(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(ErrorCode::kIo, file.string(), ": ", std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

base::Result<std::optional<std::string>> ReadFolderFile(const fs::path& folder, const std::string& name, size_t limit) {
  fs::path file = folder / name;
  std::error_code error;
  if (!fs::exists(file, error) && !error) return std::nullopt;
  if (!LiesIn(file, folder)) return Fail(ErrorCode::kBadFile, file.string(), " is a link that leaves the model's folder");
  return ReadSmallFile(file, limit);
}

base::Result<base::Json> ReadFolderJson(const fs::path& folder, const std::string& name) {
  HB_ASSIGN_OR_RETURN(std::optional<std::string> text, ReadFolderFile(folder, name, kMaxJson));
  if (!text) return base::Json::MakeObject();
  base::Json::ParseOptions options;
  options.allow_nonfinite = true;
  HB_ASSIGN_OR_RETURN_AT(base::Json json, base::Json::Parse(*text, options), (folder / name).string());
  if (!json.is_object()) return Fail(ErrorCode::kBadFile, (folder / name).string(), ": an object is wanted");
  return json;
}

base::Result<base::Json> ReadSpecialTokens(const fs::path& folder, const base::Json& tokenizer_config) {
  static constexpr const char* kNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                           "pad_token", "cls_token", "mask_token"};
  HB_ASSIGN_OR_RETURN(base::Json map, ReadFolderJson(folder, "special_tokens_map.json"));
  base::Json tokens = base::Json::MakeObject();
  for (const char* name : kNames) {
    const base::Json* token = tokenizer_config.Find(name);
    if (token == nullptr) token = map.Find(name);
    if (token == nullptr) continue;
    if (const base::Json* text = TokenText(*token)) tokens.Set(name, *text);
  }
  // A model's own named tokens: {"image_token": "<image>"}; a list of them has no names.
  if (const base::Json* more = tokenizer_config.Find("extra_special_tokens"); more != nullptr && more->is_object()) {
    for (const auto& [name, token] : more->as_object()) {
      if (const base::Json* text = TokenText(token)) tokens.Set(name, *text);
    }
  }
  return tokens;
}

}  // namespace halfbyte::text
