#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>

namespace halfbyte::checkpoint {
namespace {

using base::StrCat;
using nlohmann::json;

template <typename... Parts>
tl::unexpected<HeaderError> Refuse(HeaderFault fault, const Parts&... parts) {
  return tl::unexpected(HeaderError{fault, StrCat(parts...)});
}

// Names come from a hostile file and go into messages: cut what is absurd.
std::string Quoted(std::string_view name) {
  constexpr size_t kMost = 200;
  return name.size() <= kMost ? StrCat('"', name, '"') : StrCat('"', name.substr(0, kMost), "...\"");
}

// Follows nlohmann's SAX events through the few states that a header has; no document is built, so memory stays proportional to the
// tensors found. Members of an entry that are none of the three are skipped, as the safetensors library does.
class HeaderBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Scalar("null"); }
  bool boolean(bool) override { return Scalar("boolean"); }
  bool number_integer(number_integer_t v) override { return state_ == State::kNumbers ? Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " holds ", v) : Scalar("number"); }
  bool number_unsigned(number_unsigned_t v) override {
    if (state_ != State::kNumbers) return Scalar("number");
    if (numbers_.size() == kMostNumbers) return Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " has more than ", kMostNumbers, " numbers");
    if (v > static_cast<uint64_t>(INT64_MAX)) return Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " holds ", v, ", above 2^63-1");
    numbers_.push_back(static_cast<int64_t>(v));
    return true;
  }
  bool number_float(number_float_t, const string_t& text) override {
    return state_ == State::kNumbers ? Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " holds ", text.substr(0, 40), ", an integer is wanted") : Scalar("number");
  }
  bool string(string_t& v) override {
    if (skipped_ == 0 && state_ == State::kMetadata) { header_.metadata.emplace_back(metadata_key_, std::move(v)); return true; }
    if (skipped_ == 0 && state_ == State::kEntry && field_ == "dtype") { dtype_ = std::move(v); return true; }
    return Scalar("string");
  }
  bool binary(binary_t&) override { return Scalar("binary"); }

  bool start_object(std::size_t) override {
    if (skipped_ > 0) return Open();
    switch (state_) {
      case State::kStart: state_ = State::kNames; return true;
      case State::kNames:
        if (name_ == "__metadata__") { state_ = State::kMetadata; return true; }
        state_ = State::kEntry;
        dtype_.reset(); shape_.reset(); offsets_.reset(); fields_.clear();
        return true;
      default: return Open();
    }
  }
  bool end_object() override {
    if (skipped_ > 0) return Close();
    switch (state_) {
      case State::kNames: state_ = State::kEnd; return true;
      case State::kMetadata: state_ = State::kNames; return true;
      default: state_ = State::kNames; return FinishEntry();
    }
  }
  bool start_array(std::size_t) override {
    if (skipped_ > 0) return Open();
    if (state_ == State::kEntry && (field_ == "shape" || field_ == "data_offsets")) { state_ = State::kNumbers; numbers_.clear(); return true; }
    if (state_ == State::kStart || state_ == State::kNames) return Scalar("array");
    return Open();
  }
  bool end_array() override {
    if (skipped_ > 0) return Close();
    state_ = State::kEntry;
    (field_ == "shape" ? shape_ : offsets_) = std::move(numbers_);
    return true;
  }
  bool key(string_t& v) override {
    if (skipped_ > 0) return true;
    switch (state_) {
      case State::kNames:
        if (!names_.insert(v).second) return Stop(HeaderFault::kRepeatedTensor, Quoted(v), " stands twice");
        name_ = std::move(v);
        return true;
      case State::kMetadata:
        if (!metadata_keys_.insert(v).second) return Stop(HeaderFault::kRepeatedField, "\"__metadata__\" has ", Quoted(v), " twice");
        metadata_key_ = std::move(v);
        return true;
      case State::kEntry:
        if (std::find(fields_.begin(), fields_.end(), v) != fields_.end()) return Stop(HeaderFault::kRepeatedField, Quoted(name_), " has \"", v.substr(0, 40), "\" twice");
        if (fields_.size() >= kMostFields) return Stop(HeaderFault::kWrongType, Quoted(name_), " has more than ", kMostFields, " fields");
        fields_.push_back(v);
        field_ = std::move(v);
        return true;
      default: return true;
    }
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string_view what = e.what();
    if (size_t at = what.find("] "); at != what.npos) what.remove_prefix(at + 2);
    return Stop(HeaderFault::kNotJson, "byte ", position, ": ", what.substr(0, 300));
  }

  tl::expected<SafetensorsHeader, HeaderError> Take(bool parsed) {
    if (error_) return tl::unexpected(std::move(*error_));
    if (!parsed || state_ != State::kEnd) return Refuse(HeaderFault::kNotJson, "the header ends early");
    return std::move(header_);
  }

 private:
  enum class State { kStart, kNames, kMetadata, kEntry, kNumbers, kEnd };
  static constexpr int kMostSkippedDepth = 8;
  static constexpr size_t kMostFields = 16;
  static constexpr size_t kMostNumbers = 64;  // ranks above 5 do not occur; a header of nothing but extents must not fill memory

  template <typename... Parts>
  bool Stop(HeaderFault fault, const Parts&... parts) {
    if (!error_) error_ = HeaderError{fault, StrCat(parts...)};
    return false;
  }
  // A value of a type that does not belong where it stands.
  bool Scalar(const char* type) {
    if (skipped_ > 0) return true;
    switch (state_) {
      case State::kStart: return Stop(HeaderFault::kNotAnObject, "the header is a ", type);
      case State::kNames:
        return Stop(name_ == "__metadata__" ? HeaderFault::kMetadataNotStrings : HeaderFault::kNotAnObject, "the entry of ", Quoted(name_), " is a ", type);
      case State::kMetadata: return Stop(HeaderFault::kMetadataNotStrings, "\"__metadata__\" member ", Quoted(metadata_key_), " is a ", type);
      case State::kEntry:
        if (IsKnownField()) return Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " is a ", type);
        return true;
      case State::kNumbers: return Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " holds a ", type);
      case State::kEnd: return true;
    }
    return true;
  }
  // An object or array where none belongs: refused, or skipped below a field that nobody knows.
  bool Open() {
    if (skipped_ > 0) return ++skipped_ <= kMostSkippedDepth || Stop(HeaderFault::kTooDeep, Quoted(name_), " is nested deeper than ", kMostSkippedDepth);
    if (state_ == State::kMetadata) return Stop(HeaderFault::kMetadataNotStrings, "\"__metadata__\" member ", Quoted(metadata_key_), " is no string");
    if (state_ == State::kNumbers) return Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " is nested");
    if (IsKnownField()) return Stop(HeaderFault::kWrongType, "\"", field_, "\" of ", Quoted(name_), " is an object or array");
    skipped_ = 1;
    return true;
  }
  bool Close() {
    --skipped_;
    return true;
  }
  bool IsKnownField() const { return field_ == "dtype" || field_ == "shape" || field_ == "data_offsets"; }

  bool FinishEntry() {
    auto missing = [&](const char* field) { return Stop(HeaderFault::kMissingField, Quoted(name_), " has no \"", field, "\""); };
    if (!dtype_) return missing("dtype");
    if (!shape_) return missing("shape");
    if (!offsets_) return missing("data_offsets");
    std::optional<tensor::DType> dtype = tensor::DTypeFromName(*dtype_);
    if (!dtype) return Stop(HeaderFault::kUnknownDtype, Quoted(name_), " has the dtype ", Quoted(*dtype_), ", which is not known");
    if (offsets_->size() != 2) return Stop(HeaderFault::kOffsetCount, Quoted(name_), " has ", offsets_->size(), " data_offsets, two are wanted");
    int64_t begin = (*offsets_)[0], end = (*offsets_)[1];
    if (end < begin) return Stop(HeaderFault::kOffsetsReversed, Quoted(name_), " ends at ", end, " before it begins at ", begin);
    tensor::Shape shape(std::move(*shape_));
    base::Result<int64_t> elements = shape.CheckedElements();
    int64_t bits = 0;
    if (!elements || __builtin_mul_overflow(*elements, static_cast<int64_t>(tensor::DTypeBits(*dtype)), &bits))
      return Stop(HeaderFault::kShapeOverflow, Quoted(name_), ": shape ", shape.ToString().substr(0, 200), " has more bits than 63 bits count");
    if (bits % 8 != 0) return Stop(HeaderFault::kOpenByte, Quoted(name_), ": shape ", shape.ToString(), " of ", *dtype_, " ends inside a byte");
    if (end - begin != bits / 8)
      return Stop(HeaderFault::kSizeMismatch, Quoted(name_), " has ", end - begin, " bytes, ", *dtype_, " ", shape.ToString(), " needs ", bits / 8);
    header_.tensors.push_back({name_, *dtype, std::move(shape), static_cast<uint64_t>(begin), static_cast<uint64_t>(end)});
    return true;
  }

  State state_ = State::kStart;
  int skipped_ = 0;  // open objects and arrays below a field that nobody knows
  std::string name_, field_, metadata_key_;
  std::vector<std::string> fields_;
  std::unordered_set<std::string> names_, metadata_keys_;
  std::optional<std::string> dtype_;
  std::optional<std::vector<int64_t>> shape_, offsets_;
  std::vector<int64_t> numbers_;
  SafetensorsHeader header_;
  std::optional<HeaderError> error_;
};

// The data section must be covered exactly: sorted by offset, each tensor begins where the one before ended.
std::optional<HeaderError> CheckCoverage(SafetensorsHeader& header, uint64_t data_bytes) {
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const HeaderTensor& a, const HeaderTensor& b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
  auto fault = [](HeaderFault f, std::string message) { return HeaderError{f, std::move(message)}; };
  for (const HeaderTensor& t : tensors)
    if (t.end > data_bytes)
      return fault(HeaderFault::kBeyondEnd, StrCat(Quoted(t.name), " ends at byte ", t.end, " of the data, the file has only ", data_bytes, " bytes of data"));
  uint64_t covered = 0;
  std::string_view previous;
  for (const HeaderTensor& t : tensors) {
    if (t.begin < covered) return fault(HeaderFault::kOverlap, StrCat(Quoted(t.name), " begins at ", t.begin, " inside ", Quoted(previous), ", which ends at ", covered));
    if (t.begin > covered) return fault(HeaderFault::kHole, StrCat("bytes ", covered, " to ", t.begin, " before ", Quoted(t.name), " belong to no tensor"));
    covered = t.end;
    previous = t.name;
  }
  if (covered != data_bytes) return fault(HeaderFault::kTrailingBytes, StrCat("bytes ", covered, " to ", data_bytes, " after the last tensor belong to no tensor"));
  return std::nullopt;
}

}  // namespace

std::string_view HeaderFaultName(HeaderFault fault) {
  switch (fault) {
    case HeaderFault::kFileTooShort: return "file too short";
    case HeaderFault::kHeaderTooLarge: return "header too large";
    case HeaderFault::kHeaderBeyondFile: return "header ends beyond the file";
    case HeaderFault::kNotJson: return "header is not valid JSON";
    case HeaderFault::kTooDeep: return "header nested too deep";
    case HeaderFault::kNotAnObject: return "not a JSON object";
    case HeaderFault::kRepeatedTensor: return "repeated tensor name";
    case HeaderFault::kRepeatedField: return "repeated field";
    case HeaderFault::kMissingField: return "missing field";
    case HeaderFault::kWrongType: return "field of a wrong type";
    case HeaderFault::kUnknownDtype: return "unknown dtype";
    case HeaderFault::kOffsetCount: return "data_offsets is not a pair";
    case HeaderFault::kOffsetsReversed: return "data_offsets run backwards";
    case HeaderFault::kShapeOverflow: return "shape overflows";
    case HeaderFault::kOpenByte: return "tensor ends inside a byte";
    case HeaderFault::kSizeMismatch: return "size does not fit dtype and shape";
    case HeaderFault::kBeyondEnd: return "tensor ends beyond the file";
    case HeaderFault::kOverlap: return "tensors overlap";
    case HeaderFault::kHole: return "hole between tensors";
    case HeaderFault::kTrailingBytes: return "bytes after the last tensor";
    case HeaderFault::kMetadataNotStrings: return "metadata is not text";
  }
  return "?";
}

base::Error HeaderError::ToError() const {
  base::Error error(base::ErrorCode::kBadFile, StrCat(HeaderFaultName(fault), ": ", message));
  if (fault == HeaderFault::kBeyondEnd || fault == HeaderFault::kHeaderBeyondFile || fault == HeaderFault::kFileTooShort)
    return std::move(error).Hint("the file is truncated; download it again");
  return error;
}

tl::expected<uint64_t, HeaderError> ParseHeaderLength(std::span<const std::byte> first_eight, uint64_t file_size) {
  if (first_eight.size() < 8 || file_size < 8) return Refuse(HeaderFault::kFileTooShort, "the file has ", file_size, " bytes, the header's length alone takes 8");
  uint64_t n = 0;
  for (int i = 7; i >= 0; --i) n = n << 8 | static_cast<uint64_t>(first_eight[static_cast<size_t>(i)]);
  if (n > kMaxHeaderBytes) return Refuse(HeaderFault::kHeaderTooLarge, "the header claims ", n, " bytes, at most ", kMaxHeaderBytes, " are read; this may be no safetensors file");
  if (n > file_size - 8) return Refuse(HeaderFault::kHeaderBeyondFile, "the header claims ", n, " bytes, the file has ", file_size - 8, " after the length");
  return n;
}

tl::expected<SafetensorsHeader, HeaderError> ParseHeader(std::string_view text, uint64_t data_bytes) {
  // The parser takes a zero byte for the end of its input; JSON has none, not even inside strings.
  if (size_t zero = text.find('\0'); zero != text.npos) return Refuse(HeaderFault::kNotJson, "zero byte at ", zero);
  HeaderBuilder builder;
  bool parsed = json::sax_parse(text.begin(), text.end(), &builder, nlohmann::json::input_format_t::json, /*strict=*/true);
  tl::expected<SafetensorsHeader, HeaderError> header = builder.Take(parsed);
  if (!header) return header;
  if (std::optional<HeaderError> error = CheckCoverage(*header, data_bytes)) return tl::unexpected(std::move(*error));
  return header;
}

}  // namespace halfbyte::checkpoint
