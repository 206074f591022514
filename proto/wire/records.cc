// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/records.h"

namespace flagos {

const char* RecordKindName(RecordKind kind) {
  switch (kind) {
    case RecordKind::kInvalid: return "invalid";
    case RecordKind::kPad: return "pad";
    case RecordKind::kClose: return "close";
    case RecordKind::kListOperators: return "list-operators";
    case RecordKind::kQueryOperator: return "query-operator";
    case RecordKind::kListKernels: return "list-kernels";
    case RecordKind::kQueryKernel: return "query-kernel";
    case RecordKind::kKernelFigures: return "kernel-figures";
    case RecordKind::kDefineOperator: return "define-operator";
    case RecordKind::kDefineContext: return "define-context";
    case RecordKind::kDefineSignature: return "define-signature";
    case RecordKind::kDropSignature: return "drop-signature";
    case RecordKind::kCall: return "call";
    case RecordKind::kAllocate: return "allocate";
    case RecordKind::kFree: return "free";
    case RecordKind::kMemoryStats: return "memory-stats";
    case RecordKind::kEmptyCache: return "empty-cache";
    case RecordKind::kCreateStream: return "create-stream";
    case RecordKind::kFence: return "fence";
    case RecordKind::kRecordEvent: return "record-event";
    case RecordKind::kWaitEvent: return "wait-event";
    case RecordKind::kDestroyEvent: return "destroy-event";
    case RecordKind::kElapsedTime: return "elapsed-time";
    case RecordKind::kCreateGenerator: return "create-generator";
    case RecordKind::kDestroyGenerator: return "destroy-generator";
    case RecordKind::kSeedGenerator: return "seed-generator";
    case RecordKind::kGetGeneratorState: return "get-generator-state";
    case RecordKind::kSetGeneratorState: return "set-generator-state";
    case RecordKind::kExportMemory: return "export-memory";
    case RecordKind::kImportMemory: return "import-memory";
  }
  return "unknown";
}

}  // namespace flagos
