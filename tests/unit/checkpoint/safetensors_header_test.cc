// Every malformed header of user case T12 and every fault of the closed list, by name.
#include "checkpoint/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace halfbyte::checkpoint {
namespace {

using tensor::DType;
using tensor::Shape;

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}
std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) { return "{" + Entry("x", dtype, shape, offsets) + "}"; }

// The fault's name, or "accepted".
std::string Fault(const std::string& json, uint64_t data_bytes) {
  auto header = ParseHeader(json, data_bytes);
  return header ? "accepted" : std::string(HeaderFaultName(header.error().fault));
}
std::string Length(uint64_t n, uint64_t file_size) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(n >> (8 * i));
  auto length = ParseHeaderLength(bytes, file_size);
  return length ? std::to_string(*length) : std::string(HeaderFaultName(length.error().fault));
}
std::string Name(HeaderFault f) { return std::string(HeaderFaultName(f)); }

TEST(HeaderLength, MustFitTheFile) {
  EXPECT_EQ(Length(2, 10), "2");
  EXPECT_EQ(Length(0x0102, 1000), "258");
  EXPECT_EQ(Length(~uint64_t{0}, 1000), Name(HeaderFault::kHeaderTooLarge));
  EXPECT_EQ(Length(kMaxHeaderBytes + 1, uint64_t{1} << 40), Name(HeaderFault::kHeaderTooLarge));
  EXPECT_EQ(Length(kMaxHeaderBytes, uint64_t{1} << 40), "100000000");
  EXPECT_EQ(Length(3, 10), Name(HeaderFault::kHeaderBeyondFile));
  EXPECT_EQ(ParseHeaderLength({}, 3).error().fault, HeaderFault::kFileTooShort);
}

TEST(Header, ReadsTensorsMetadataScalarsAndEmptyOnes) {
  std::string json = R"({"__metadata__":{"format":"pt","x":""},)" + Entry("b", "F32", "[2,2]", "[8,24]") + "," + Entry("a", "BF16", "[4]", "[0,8]") + "," +
                     Entry("empty", "U8", "[0,16]", "[24,24]") + "," + Entry("scalar", "F8_E8M0", "[]", "[24,25]") + "," + Entry("u8", "U8", "[3]", "[25,28]") + "}   ";
  auto header = ParseHeader(json, 28);
  ASSERT_TRUE(header) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 5u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].dtype, DType::kBF16);
  EXPECT_EQ(header->tensors[1].name, "b");
  EXPECT_EQ(header->tensors[1].shape, (Shape{2, 2}));
  EXPECT_EQ(header->tensors[1].begin, 8u);
  EXPECT_EQ(header->tensors[1].end, 24u);
  EXPECT_EQ(header->tensors[2].name, "empty");
  EXPECT_EQ(header->tensors[3].shape, Shape());
  EXPECT_THAT(header->metadata, testing::ElementsAre(testing::Pair("format", "pt"), testing::Pair("x", "")));
}

TEST(Header, AcceptsEveryDtypeAndOddAddresses) {
  for (const char* dtype : {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}) {
    int64_t bytes = tensor::DTypeBits(*tensor::DTypeFromName(dtype)) / 8;
    std::string json = "{" + Entry("odd", "U8", "[1]", "[0,1]") + "," + Entry("x", dtype, "[3]", base::StrCat("[1,", 1 + 3 * bytes, "]")) + "}";
    EXPECT_EQ(Fault(json, 1 + 3 * static_cast<uint64_t>(bytes)), "accepted") << dtype;
  }
  EXPECT_EQ(Fault(One("F4", "[2,16]", "[0,16]"), 16), "accepted");  // logical elements, two a byte
}

TEST(Header, AcceptsAHeaderWithoutTensors) {
  EXPECT_EQ(Fault("{}", 0), "accepted");
  EXPECT_EQ(Fault("{}", 1), Name(HeaderFault::kTrailingBytes));
}

TEST(Header, SkipsFieldsThatNobodyKnows) {
  EXPECT_EQ(Fault(R"({"x":{"dtype":"U8","note":{"shape":[9],"deep":[[1,{"dtype":3}],"s"]},"shape":[1],"data_offsets":[0,1],"n":null}})", 1), "accepted");
}

TEST(HeaderFault, NotJson) {
  for (const char* text : {"", "{", "{\"x\"", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}", "{\"\xff\":{}}", "{'x':1}", "{\"x\":Infinity}"})
    EXPECT_EQ(Fault(text, 1), Name(HeaderFault::kNotJson)) << text;
  EXPECT_EQ(Fault(One("U8", "[1]", "[0,1]") + "x", 1), Name(HeaderFault::kNotJson));
  EXPECT_EQ(Fault(One("U8", "[1]", "[0,1]") + std::string(1, '\0'), 1), Name(HeaderFault::kNotJson));
}
TEST(HeaderFault, TooDeep) {
  std::string open, close;
  for (int i = 0; i < 10'000; ++i) { open += "["; close += "]"; }
  EXPECT_EQ(Fault(R"({"x":{"note":)" + open + close + R"(,"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1), Name(HeaderFault::kTooDeep));
  EXPECT_EQ(Fault(open + close, 1), Name(HeaderFault::kNotAnObject));
  EXPECT_EQ(Fault(R"({"x":{"shape":)" + open, 1), Name(HeaderFault::kWrongType));
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += R"({"a":)";
  EXPECT_EQ(Fault(objects, 1), Name(HeaderFault::kTooDeep));
}
TEST(HeaderFault, NotAnObject) {
  for (const char* text : {"[]", "3", "\"x\"", "null", "true", R"({"x":[]})", R"({"x":1})", R"({"x":null})", R"({"x":"y"})"}) EXPECT_EQ(Fault(text, 0), Name(HeaderFault::kNotAnObject)) << text;
}
TEST(HeaderFault, RepeatedTensor) {
  EXPECT_EQ(Fault("{" + Entry("x", "U8", "[1]", "[0,1]") + "," + Entry("x", "U8", "[1]", "[1,2]") + "}", 2), Name(HeaderFault::kRepeatedTensor));
  EXPECT_EQ(Fault("{" + Entry("x", "U8", "[1]", "[0,1]") + "," + Entry("\\u0078", "U8", "[1]", "[0,1]") + "}", 1), Name(HeaderFault::kRepeatedTensor));
  EXPECT_EQ(Fault(R"({"__metadata__":{},"__metadata__":{}})", 0), Name(HeaderFault::kRepeatedTensor));
}
TEST(HeaderFault, RepeatedField) {
  EXPECT_EQ(Fault(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[5,6]}})", 1), Name(HeaderFault::kRepeatedField));
  EXPECT_EQ(Fault(R"({"__metadata__":{"a":"1","a":"2"}})", 0), Name(HeaderFault::kRepeatedField));
}
TEST(HeaderFault, MissingField) {
  for (const char* entry : {R"("shape":[1],"data_offsets":[0,1])", R"("dtype":"U8","data_offsets":[0,1])", R"("dtype":"U8","shape":[1])", ""})
    EXPECT_EQ(Fault(std::string("{\"x\":{") + entry + "}}", 1), Name(HeaderFault::kMissingField)) << entry;
}
TEST(HeaderFault, WrongType) {
  for (const char* shape : {"1", "\"1\"", "null", "{}", "[1.0]", "[-1]", "[\"1\"]", "[null]", "[[1]]", "[{}]", "[9223372036854775808]", "[1e0]", "[99999999999999999999999]", "true"})
    EXPECT_EQ(Fault(One("U8", shape, "[0,1]"), 1), Name(HeaderFault::kWrongType)) << shape;
  EXPECT_EQ(Fault(One("U8", "[1]", "[-1,0]"), 1), Name(HeaderFault::kWrongType));
  EXPECT_EQ(Fault(One("U8", "[1]", "[0,18446744073709551615]"), 1), Name(HeaderFault::kWrongType));
  EXPECT_EQ(Fault(R"({"x":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", 1), Name(HeaderFault::kWrongType));
  EXPECT_EQ(Fault(R"({"x":{"dtype":["U8"],"shape":[1],"data_offsets":[0,1]}})", 1), Name(HeaderFault::kWrongType));
  std::string many = "[1";
  for (int i = 0; i < 1000; ++i) many += ",1";
  EXPECT_EQ(Fault(One("U8", many + "]", "[0,1]"), 1), Name(HeaderFault::kWrongType));
}
TEST(HeaderFault, UnknownDtype) {
  EXPECT_EQ(Fault(One("Q9", "[4]", "[0,999999]"), 4), Name(HeaderFault::kUnknownDtype));
  EXPECT_EQ(Fault(One("bf16", "[4]", "[0,8]"), 8), Name(HeaderFault::kUnknownDtype));
}
TEST(HeaderFault, OffsetCount) {
  for (const char* offsets : {"[]", "[0]", "[0,1,1]"}) EXPECT_EQ(Fault(One("U8", "[1]", offsets), 1), Name(HeaderFault::kOffsetCount)) << offsets;
}
TEST(HeaderFault, OffsetsReversed) { EXPECT_EQ(Fault(One("U8", "[64]", "[64,0]"), 64), Name(HeaderFault::kOffsetsReversed)); }
TEST(HeaderFault, ShapeOverflow) {
  EXPECT_EQ(Fault(One("F32", "[8589934592,8589934592]", "[0,16]"), 16), Name(HeaderFault::kShapeOverflow));
  EXPECT_EQ(Fault(One("F32", "[4294967296,1073741824]", "[0,16]"), 16), Name(HeaderFault::kShapeOverflow));  // 2^62 elements fit, their bits do not
  EXPECT_EQ(Fault(One("F32", "[8589934592,8589934592,0]", "[0,0]"), 0), Name(HeaderFault::kShapeOverflow));
}
TEST(HeaderFault, OpenByte) { EXPECT_EQ(Fault(One("F4", "[3]", "[0,2]"), 2), Name(HeaderFault::kOpenByte)); }
TEST(HeaderFault, SizeMismatch) {
  EXPECT_EQ(Fault(One("F32", "[32,8]", "[0,65536]"), 65536), Name(HeaderFault::kSizeMismatch));
  EXPECT_EQ(Fault(One("F32", "[]", "[0,0]"), 0), Name(HeaderFault::kSizeMismatch));
  EXPECT_EQ(Fault(One("F32", "[0]", "[0,4]"), 4), Name(HeaderFault::kSizeMismatch));
}
TEST(HeaderFault, BeyondEnd) { EXPECT_EQ(Fault(One("U8", "[64]", "[0,64]"), 63), Name(HeaderFault::kBeyondEnd)); }
TEST(HeaderFault, Overlap) {
  EXPECT_EQ(Fault("{" + Entry("x", "U8", "[8]", "[0,8]") + "," + Entry("y", "U8", "[8]", "[4,12]") + "}", 12), Name(HeaderFault::kOverlap));
  EXPECT_EQ(Fault("{" + Entry("x", "U8", "[8]", "[0,8]") + "," + Entry("y", "U8", "[8]", "[0,8]") + "}", 8), Name(HeaderFault::kOverlap));
}
TEST(HeaderFault, Hole) {
  EXPECT_EQ(Fault("{" + Entry("x", "U8", "[4]", "[0,4]") + "," + Entry("y", "U8", "[4]", "[8,12]") + "}", 12), Name(HeaderFault::kHole));
  EXPECT_EQ(Fault(One("U8", "[4]", "[4,8]"), 8), Name(HeaderFault::kHole));
}
TEST(HeaderFault, TrailingBytes) { EXPECT_EQ(Fault(One("U8", "[4]", "[0,4]"), 5), Name(HeaderFault::kTrailingBytes)); }
TEST(HeaderFault, MetadataNotStrings) {
  for (const char* metadata : {"{\"a\":1}", "{\"a\":null}", "{\"a\":{}}", "{\"a\":[\"b\"]}", "null", "[]", "\"pt\""})
    EXPECT_EQ(Fault(std::string("{\"__metadata__\":") + metadata + "}", 0), Name(HeaderFault::kMetadataNotStrings)) << metadata;
}

TEST(HeaderFault, MessagesNameTheTensorAndCutHugeNames) {
  auto bad = ParseHeader("{" + Entry(std::string(5000, 'n'), "U8", "[64]", "[0,64]") + "}", 63);
  ASSERT_FALSE(bad);
  EXPECT_LT(bad.error().message.size(), 400u);
  EXPECT_THAT(ParseHeader(One("U8", "[64]", "[0,64]"), 63).error().ToError().ToString(),
              "tensor ends beyond the file: \"x\" ends at byte 64 of the data, the file has only 63 bytes of data (the file is truncated; download it again)");
}

}  // namespace
}  // namespace halfbyte::checkpoint
