// The header of a safetensors file, checked before anything else is believed.
//
// A file is: u64 little-endian N, N bytes of JSON, the data section. Each JSON member is a tensor
//     "name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}      offsets count from the start of the data section
// or "__metadata__": {string: string}. Data is row-major, little-endian and fills the section without overlap, hole or rest. Scalars
// (shape []) and empty tensors are fine. Nothing promises alignment: old files start tensors at odd addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace halfbyte::checkpoint {

// Every way in which a header can be wrong; a closed list, each with a test of its own.
enum class HeaderFault {
  kFileTooShort,        // not even eight bytes
  kHeaderTooLarge,      // N above kMaxHeaderBytes
  kHeaderBeyondFile,    // N above what the file has
  kNotJson,             // syntax, or text that is not UTF-8
  kTooDeep,             // more nesting than a header can have
  kNotAnObject,         // the header, or a tensor's entry, is something else
  kRepeatedTensor,      // two members with one name
  kRepeatedField,       // two "data_offsets" in one entry
  kMissingField,        // no dtype, shape or data_offsets
  kWrongType,           // shape is a string, an extent is 1.5 or negative or above 2^63-1, ...
  kUnknownDtype,
  kOffsetCount,         // data_offsets is not a pair
  kOffsetsReversed,     // end before begin
  kShapeOverflow,       // the product of the extents, or its bits, exceed 63 bits
  kOpenByte,            // a sub-byte type that ends inside a byte
  kSizeMismatch,        // end - begin is not what dtype and shape need
  kBeyondEnd,           // end above the data section's size
  kOverlap,
  kHole,                // bytes that no tensor owns between two tensors, or before the first
  kTrailingBytes,       // ... or after the last
  kMetadataNotStrings,
};
std::string_view HeaderFaultName(HeaderFault fault);

struct HeaderError {
  HeaderFault fault;
  std::string message;  // what and which tensor
  base::Error ToError() const;
};

// Same limit as the safetensors library: a header for some 500,000 tensors.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct HeaderTensor {
  std::string name;
  tensor::DType dtype;
  tensor::Shape shape;
  uint64_t begin = 0, end = 0;  // bytes of the data section
};

struct SafetensorsHeader {
  std::vector<HeaderTensor> tensors;  // by begin, then end; then by name
  std::vector<std::pair<std::string, std::string>> metadata;
};

// N from the file's first eight bytes; fewer bytes are fine to pass and refused.
tl::expected<uint64_t, HeaderError> ParseHeaderLength(std::span<const std::byte> first_eight, uint64_t file_size);

// The N bytes of JSON, for a data section of data_bytes bytes.
tl::expected<SafetensorsHeader, HeaderError> ParseHeader(std::string_view json, uint64_t data_bytes);

}  // namespace halfbyte::checkpoint
