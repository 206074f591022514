// SPDX-License-Identifier: Apache-2.0
// The wire, byte for byte. A change that fails here changes the protocol: it needs a new version or a new feature, and
// a line in proto/README.md.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "proto/shm/layout.h"
#include "proto/wire/attach.h"
#include "proto/wire/definitions.h"
#include "proto/wire/kernels.h"
#include "proto/wire/records.h"
#include "proto/wire/reply.h"
#include "proto/wire/signature.h"
#include "server/common/executor_channel.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

using testing::Hex;
using testing::HexOf;

struct KindNumber {
  RecordKind kind;
  int number;
};
constexpr KindNumber kKinds[] = {
    {RecordKind::kPad, 1},
    {RecordKind::kClose, 2},
    {RecordKind::kListOperators, 3},
    {RecordKind::kQueryOperator, 4},
    {RecordKind::kListKernels, 5},
    {RecordKind::kQueryKernel, 6},
    {RecordKind::kKernelFigures, 7},
    {RecordKind::kDefineOperator, 16},
    {RecordKind::kDefineContext, 17},
    {RecordKind::kDefineSignature, 18},
    {RecordKind::kDropSignature, 19},
    {RecordKind::kCall, 32},
    {RecordKind::kAllocate, 48},
    {RecordKind::kFree, 49},
    {RecordKind::kMemoryStats, 50},
    {RecordKind::kEmptyCache, 51},
    {RecordKind::kCreateStream, 64},
    {RecordKind::kFence, 65},
    {RecordKind::kRecordEvent, 66},
    {RecordKind::kWaitEvent, 67},
    {RecordKind::kDestroyEvent, 68},
    {RecordKind::kElapsedTime, 69},
    {RecordKind::kCreateGenerator, 80},
    {RecordKind::kDestroyGenerator, 81},
    {RecordKind::kSeedGenerator, 82},
    {RecordKind::kGetGeneratorState, 83},
    {RecordKind::kSetGeneratorState, 84},
    {RecordKind::kExportMemory, 144},
    {RecordKind::kImportMemory, 145},
};

TEST(Golden, RecordKindsKeepTheirNumbers) {
  for (const auto& [kind, number] : kKinds) {
    EXPECT_EQ(static_cast<int>(kind), number);
    EXPECT_STRNE(RecordKindName(kind), "unknown");
  }
  size_t named = 0;
  for (int number = 1; number < 0x10000; ++number) {
    named += std::string_view(RecordKindName(static_cast<RecordKind>(number))) != "unknown";
  }
  EXPECT_EQ(named, std::size(kKinds)) << "a kind is missing from this test";
}

TEST(Golden, TheReadmeListsEveryRecord) {
  std::ifstream file(FLAGOS_PROTO_README);
  std::stringstream readme;
  readme << file.rdbuf();
  for (const auto& [kind, number] : kKinds) {
    const std::string row = "| " + std::to_string(number) + " | " + RecordKindName(kind) + " |";
    EXPECT_TRUE(readme.str().find(row) != std::string::npos) << "proto/README.md has no row that starts with: " << row;
  }
}

// Tags have tables of their own there; the rows are told apart by what they stand for.
TEST(Golden, TheReadmeListsEveryTag) {
  std::ifstream file(FLAGOS_PROTO_README);
  std::stringstream readme;
  readme << file.rdbuf();
  const auto table = [&](const std::string& from, const std::string& to) {
    const size_t begin = readme.str().find(from);
    return readme.str().substr(begin, readme.str().find(to, begin) - begin);
  };
  const std::string arguments = table("| tag | argument |", "**Geometry**");
  for (int tag = 0; tag < kArgTagCount; ++tag)
    EXPECT_NE(arguments.find("\n| " + std::to_string(tag) + " |"), std::string::npos) << "argument tag " << tag;
  const std::string outputs = table("| tag | output |", "### Reply");
  for (int tag = 0; tag < kOutputTagCount; ++tag) {
    const std::string number = std::to_string(tag);
    const bool alone = outputs.find("\n| " + number + " |") != std::string::npos;
    EXPECT_TRUE(alone || (tag >= 4 && tag <= 7)) << "output tag " << tag;
  }
  EXPECT_NE(outputs.find("\n| 4, 5, 6, 7 |"), std::string::npos);
}

// Hexadecimal digits without the spaces that set the fields apart.
std::string Packed(std::string text) {
  std::erase(text, ' ');
  return text;
}

TEST(Golden, RecordHeader) {
  const RecordHeader header = {0x11121314, 0x2122, 0x3132, 0x41, kFlagSync | kFlagNotify, 0, 0x51525354};
  EXPECT_EQ(HexOf(header), Packed("14131211 2221 3231 41 03 0000 54535251"));
}

TEST(Golden, PartsOfPayloads) {
  EXPECT_EQ(HexOf(ReplyTarget{0x01020304, 0}), Packed("04030201 00000000"));
  EXPECT_EQ(HexOf(CallHeader{0x0102, 0x0304, 0x05060708}), Packed("0201 0403 08070605"));
  EXPECT_EQ(HexOf(ArenaRange{1, 0, 2, 3}), Packed("01000000 00000000 0200000000000000 0300000000000000"));
  EXPECT_EQ(HexOf(ContextState{1, 2, 3, 4, 5, 6, 7, 8, 9, {}}), Packed("0102030405060708 0900000000000000"));
  EXPECT_EQ(HexOf(MemoryStats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
            Packed("0100000000000000 0200000000000000 0300000000000000 0400000000000000"
                   " 0500000000000000 0600000000000000 0700000000000000 0800000000000000"
                   " 0900000000000000 0a00000000000000 0b00000000000000 0c00000000000000"));
}

// 2 x 3 float32, contiguous, at offset 1 of device 2.
const Geometry kGeometry = {DType::kFloat32, kTensorNeg, 2, 1, {2, 3}, {3, 1}};
constexpr char kGeometryHex[] =
    "07 04 02 02 0100000000000000 0200000000000000 0300000000000000 0300000000000000 0100000000000000";

TEST(Golden, Signature) {
  Signature signature;
  signature.op = 5;
  signature.context = 1;
  signature.arguments.resize(4);
  signature.arguments[0].tag = ArgTag::kTensor;
  signature.arguments[0].tensor = kGeometry;
  signature.arguments[1].tag = ArgTag::kScalar;
  signature.arguments[1].scalar = ScalarKind::kDouble;
  signature.arguments[2].tag = ArgTag::kIntList;
  signature.arguments[2].integers = {-1};
  signature.arguments[3].tag = ArgTag::kString;
  signature.arguments[3].text = "sum";
  ByteWriter out;
  EncodeSignature(out, signature);
  EXPECT_EQ(Hex(out.bytes()), Packed(std::string("05000000 01000000 0400 0000") + "01" + kGeometryHex +
                                     "05 01 0b 01000000 ffffffffffffffff 0a 03000000 73756d"));
}

TEST(Golden, Sparse) {
  Signature signature;
  Argument& argument = signature.arguments.emplace_back();
  argument.tag = ArgTag::kSparseTensor;
  argument.sparse = {Layout::kSparse, DType::kFloat32, true, 1, 1, {5, 2}};
  argument.list.resize(2);
  for (Argument& component : argument.list) component.tag = ArgTag::kTensor;
  argument.list[0].tensor = {DType::kInt64, 0, 0, 0, {1, 3}, {3, 1}};
  argument.list[1].tensor = {DType::kFloat32, 0, 0, 0, {3, 2}, {2, 1}};
  const std::string shape = "01 07 01 01 01 02 0500000000000000 0200000000000000";
  const std::string indices =
      "05 00 00 02 0000000000000000 0100000000000000 0300000000000000 0300000000000000 0100000000000000";
  const std::string values =
      "07 00 00 02 0000000000000000 0300000000000000 0200000000000000 0200000000000000 0100000000000000";
  ByteWriter out;
  EncodeSignature(out, signature);
  EXPECT_EQ(Hex(out.bytes()), Packed("00000000 00000000 0100 0000 16" + shape + "01" + indices + "01" + values));

  Outcome outcome;
  Output& output = outcome.outputs.emplace_back();
  output.tag = OutputTag::kSparse;
  output.sparse = argument.sparse;
  output.list.resize(2);
  output.list[0].tag = OutputTag::kAlias;
  output.list[1].tag = OutputTag::kTensor;
  for (size_t i = 0; i < 2; ++i) {
    output.list[i].geometry = argument.list[i].tensor;
    output.list[i].storage_bytes = 24;
  }
  out.clear();
  EncodeOutcome(out, outcome);
  EXPECT_EQ(Hex(out.bytes()),
            Packed("0100 0a" + shape + "02 0000" + indices + "1800000000000000 01" + values + "1800000000000000 0000"));
}

TEST(Golden, Outcome) {
  Outcome outcome;
  outcome.outputs.resize(3);
  outcome.outputs[0].tag = OutputTag::kAlias;
  outcome.outputs[0].alias = 7;
  outcome.outputs[0].geometry = kGeometry;
  outcome.outputs[0].storage_bytes = 28;
  outcome.outputs[1].tag = OutputTag::kBool;
  outcome.outputs[1].integer = 1;
  outcome.outputs[2].tag = OutputTag::kList;
  outcome.outputs[2].list.resize(1);
  outcome.resized = {{3, kGeometry, 32}};
  ByteWriter out;
  EncodeOutcome(out, outcome);
  EXPECT_EQ(Hex(out.bytes()), Packed(std::string("0300") + "02 0700" + kGeometryHex + "1c00000000000000" + "06 01" +
                                     "03 01000000 00" + "0100 0300" + kGeometryHex + "2000000000000000"));
}

TEST(Golden, Reply) {
  const std::vector<Warning> warnings = {{WarningKind::kDeprecation, "w"}};
  ByteWriter out;
  EncodeReplyHead(out, MakeError(ErrorCode::kValue, "bad"), true, warnings);
  EXPECT_EQ(Hex(out.bytes()), Packed("0300 01 01 01 01000000 77 03000000 626164"));
  out.clear();
  EncodeReplyHead(out, Error::Ok(), false, {});
  EXPECT_EQ(Hex(out.bytes()), Packed("0000 00 00"));
}

TEST(Golden, OperatorDefinitionAndList) {
  ByteWriter out;
  EncodeOperatorDefinition(out, {"a::b", "c", 2, {ReturnKind::kTensorList, ReturnKind::kMutatedArgument}});
  EXPECT_EQ(Hex(out.bytes()), Packed("04000000 613a3a62 01000000 63 0200 0200 01 03"));
  out.clear();
  EncodeOperatorDefinition(out, {"a", "", 0, {ReturnKind::kTensor}, "lib"});
  EXPECT_EQ(Hex(out.bytes()), Packed("01000000 61 00000000 0000 0100 00 03000000 6c6962"));
  out.clear();
  const std::vector<std::string> names = {"a::b.c", "d"};
  EncodeOperatorList(out, names);
  EXPECT_EQ(Hex(out.bytes()), Packed("02000000 06000000 613a3a622e63 01000000 64"));
}

TEST(Golden, KernelLibrariesAndFigures) {
  ByteWriter out;
  const KernelLibraryInfo library = {"l", "d", "e", {"a::b"}};
  EncodeKernelLibraries(out, std::span(&library, 1));
  EXPECT_EQ(Hex(out.bytes()), Packed("01000000 01000000 6c 01000000 64 01000000 65 01000000 04000000 613a3a62"));
  out.clear();
  const KernelFigures figure = {0x0102, "l", 0x0304};
  EncodeKernelFigures(out, std::span(&figure, 1));
  EXPECT_EQ(Hex(out.bytes()), Packed("01000000 02010000 01000000 6c 0403000000000000"));
}

TEST(Golden, FeaturesKeepTheirBits) {
  EXPECT_EQ(kFeatureBase, 1u);
  EXPECT_EQ(kFeatureKernels, 2u);
  uint64_t named = 0;
  for (const FeatureName& feature : kFeatureNames) named |= feature.bit;
  EXPECT_EQ(named, kFeatures);
}

// A field's place in a fixed record.
struct Place {
  size_t offset, size, expected_offset, expected_size;
};
#define PLACE(record, field, offset, size) \
  { offsetof(record, field), sizeof(record::field), offset, size }

void ExpectPlaces(std::initializer_list<Place> places, size_t record_size) {
  size_t end = 0;
  for (const Place& place : places) {
    EXPECT_EQ(place.offset, place.expected_offset);
    EXPECT_EQ(place.size, place.expected_size) << "at " << place.offset;
    EXPECT_EQ(place.offset, end) << "a gap or a field that this test does not know";
    end = place.offset + place.size;
  }
  EXPECT_EQ(end, record_size);
}

TEST(Golden, AttachRequest) {
  ExpectPlaces(
      {PLACE(AttachRequest, magic, 0, 8), PLACE(AttachRequest, size, 8, 4), PLACE(AttachRequest, version_min, 12, 2),
       PLACE(AttachRequest, version_max, 14, 2), PLACE(AttachRequest, features, 16, 8),
       PLACE(AttachRequest, kind, 24, 2), PLACE(AttachRequest, reserved, 26, 2), PLACE(AttachRequest, pid, 28, 4),
       PLACE(AttachRequest, device_mask, 32, 8), PLACE(AttachRequest, token, 40, 32),
       PLACE(AttachRequest, name, 72, 64), PLACE(AttachRequest, torch_version, 136, 32),
       PLACE(AttachRequest, padding, 168, 88)},
      256);
  const std::string hex = HexOf(MakeAttachRequest(AttachKind::kOpen));
  EXPECT_EQ(hex.substr(0, 64), Packed("464c41474f534131 00010000 0100 0100 0300000000000000 0200 0000 00000000"));
}

TEST(Golden, AttachReply) {
  ExpectPlaces({PLACE(AttachReply, magic, 0, 8), PLACE(AttachReply, size, 8, 4), PLACE(AttachReply, version, 12, 2),
                PLACE(AttachReply, status, 14, 2), PLACE(AttachReply, features, 16, 8),
                PLACE(AttachReply, session, 24, 8), PLACE(AttachReply, generation, 32, 4),
                PLACE(AttachReply, device_count, 36, 4), PLACE(AttachReply, ring_bytes, 40, 8),
                PLACE(AttachReply, arena_bytes, 48, 8), PLACE(AttachReply, descriptors, 56, 4),
                PLACE(AttachReply, executor_pid, 60, 4), PLACE(AttachReply, vendor, 64, 32),
                PLACE(AttachReply, executor_torch, 96, 32), PLACE(AttachReply, session_name, 128, 32),
                PLACE(AttachReply, message, 160, 512), PLACE(AttachReply, padding, 672, 352)},
               1024);
  const std::string hex = HexOf(MakeAttachReply(MakeError(ErrorCode::kVersion, "no")));
  EXPECT_EQ(hex.substr(0, 32), Packed("464c41474f534131 00040000 0000 0b00"));
  EXPECT_EQ(hex.substr(320, 8), Packed("6e6f0000"));
}

TEST(Golden, DeviceRecord) {
  ExpectPlaces({PLACE(DeviceRecord, name, 0, 64), PLACE(DeviceRecord, total_memory, 64, 8),
                PLACE(DeviceRecord, multi_processor_count, 72, 4), PLACE(DeviceRecord, major, 76, 2),
                PLACE(DeviceRecord, minor, 78, 2), PLACE(DeviceRecord, uuid, 80, 16),
                PLACE(DeviceRecord, dtypes, 96, 8), PLACE(DeviceRecord, padding, 104, 24)},
               128);
}

TEST(Golden, ChannelRecord) {
  ExpectPlaces({PLACE(ChannelRecord, kind, 0, 4), PLACE(ChannelRecord, status, 4, 4),
                PLACE(ChannelRecord, session, 8, 8), PLACE(ChannelRecord, ring_bytes, 16, 8),
                PLACE(ChannelRecord, arena_bytes, 24, 8), PLACE(ChannelRecord, pid, 32, 4),
                PLACE(ChannelRecord, lease_entry, 36, 4), PLACE(ChannelRecord, device_count, 40, 4),
                PLACE(ChannelRecord, flags, 44, 4), PLACE(ChannelRecord, vendor, 48, 32),
                PLACE(ChannelRecord, torch_version, 80, 32), PLACE(ChannelRecord, message, 112, 400)},
               512);
}

TEST(Golden, SharedRegions) {
  EXPECT_EQ(offsetof(ClientPage, head), 0u);
  EXPECT_EQ(offsetof(ClientPage, sleepers), 64u);
  EXPECT_EQ(offsetof(ClientPage, blocked_reason), 128u);
  EXPECT_EQ(offsetof(ClientPage, blocked_since_ns), 136u);
  EXPECT_EQ(offsetof(ClientPage, blocked_count), 144u);
  EXPECT_EQ(offsetof(ExecutorPage, tail), 0u);
  EXPECT_EQ(offsetof(ExecutorPage, sleeping), 64u);
  EXPECT_EQ(offsetof(ExecutorPage, state), 128u);
  EXPECT_EQ(offsetof(ExecutorPage, exit_signal), 136u);
  EXPECT_EQ(offsetof(ExecutorPage, exit_code), 140u);
  EXPECT_EQ(offsetof(ExecutorPage, end_cause), 144u);
  EXPECT_EQ(offsetof(ExecutorPage, running_sequence), 704u);
  EXPECT_EQ(offsetof(ExecutorPage, calls), 768u);
  EXPECT_EQ(offsetof(ExecutorPage, devices), 832u);
  EXPECT_EQ(offsetof(ExecutorPage, completed), 2880u);
  EXPECT_EQ(offsetof(ExecutorPage, operator_names), 11072u);
  EXPECT_EQ(kReplyOffset, 274432u);
  EXPECT_EQ(kExecutorRegionBytes, 274432u + 32 * 262144);
}

TEST(Golden, NumbersOfTheWire) {
  EXPECT_EQ(kArgTagCount, static_cast<int>(ArgTag::kSparseTensor) + 1);
  EXPECT_EQ(kOutputTagCount, static_cast<int>(OutputTag::kSparse) + 1);
  EXPECT_EQ(kDTypeCount, static_cast<int>(DType::kUint64) + 1);
  EXPECT_EQ(kScalarKindCount, static_cast<int>(ScalarKind::kUnsigned) + 1);
  EXPECT_EQ(static_cast<int>(ErrorCode::kTimeout), 17);
  EXPECT_EQ(static_cast<int>(DType::kBFloat16), 13);
  EXPECT_EQ(static_cast<int>(ArgTag::kTensorList), 14);
  EXPECT_EQ(static_cast<int>(ReturnKind::kMutatedArgument), 3);
  EXPECT_EQ(static_cast<int>(ChannelKind::kEnded), 5);
}

}  // namespace
}  // namespace flagos
