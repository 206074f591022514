// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/schemas.h"

namespace flagos::ctl {

const Schema& DeviceSchema() {
  static const Schema schema = {
      .kind = "Device",
      .fields = {{"index", Unit::kCount},
                 {"memory_total", Unit::kBytes},
                 {"memory_used", Unit::kBytes},
                 {"sessions", Unit::kCount},
                 {"warm_executors", Unit::kCount},
                 {"busy_ratio", Unit::kRatio},
                 {"telemetry.age", Unit::kSeconds},
                 {"telemetry.utilisation", Unit::kRatio},
                 {"telemetry.memory_utilisation", Unit::kRatio},
                 {"telemetry.memory_used", Unit::kBytes},
                 {"telemetry.memory_total", Unit::kBytes},
                 {"telemetry.temperature", Unit::kCelsius},
                 {"telemetry.power", Unit::kWatts},
                 {"telemetry.power_limit", Unit::kWatts},
                 {"telemetry.sm_clock", Unit::kMegahertz},
                 {"telemetry.sm_clock_max", Unit::kMegahertz},
                 {"telemetry.memory_clock", Unit::kMegahertz},
                 {"telemetry.memory_clock_max", Unit::kMegahertz},
                 {"telemetry.ecc_corrected", Unit::kCount},
                 {"telemetry.ecc_uncorrected", Unit::kCount},
                 {"telemetry.processes.memory", Unit::kBytes}},
      .columns = {{"DEV", {"index"}},
                  {"MODEL", {"name"}},
                  {"HEALTH", {"health"}},
                  {"MEM-USED", {"memory_used"}},
                  {"MEM-TOTAL", {"memory_total"}},
                  {"COMPUTE%", {"busy_ratio"}},
                  {"UTIL", {"telemetry.utilisation"}},
                  {"TEMP", {"telemetry.temperature"}},
                  {"POWER", {"telemetry.power", "telemetry.power_limit"}},
                  {"SESS", {"sessions"}},
                  {"WARM", {"warm_executors"}},
                  {"DEV-MEM", {"telemetry.memory_used", "telemetry.memory_total"}, true},
                  {"MEM-UTIL", {"telemetry.memory_utilisation"}, true},
                  {"SM-CLOCK", {"telemetry.sm_clock", "telemetry.sm_clock_max"}, true},
                  {"MEM-CLOCK", {"telemetry.memory_clock", "telemetry.memory_clock_max"}, true},
                  {"HELD-BY", {"telemetry.clocks_held"}, true},
                  {"ECC", {"telemetry.ecc_uncorrected"}, true},
                  {"MODE", {"telemetry.compute_mode"}, true},
                  {"READ", {"telemetry.age"}, true},
                  {"VENDOR", {"vendor"}, true},
                  {"UUID", {"uuid"}, true}},
  };
  return schema;
}

const Schema& SessionSchema() {
  static const Schema schema = {
      .kind = "Session",
      .fields = {{"memory_used", Unit::kBytes},
                 {"memory_peak", Unit::kBytes},
                 {"memory_quota", Unit::kBytes},
                 {"device_time", Unit::kSeconds},
                 {"throttled", Unit::kSeconds},
                 {"weight", Unit::kCount},
                 {"max_percent", Unit::kCount},
                 {"idle", Unit::kSeconds},
                 {"age", Unit::kSeconds},
                 {"calls", Unit::kCount},
                 {"queue_bytes", Unit::kBytes},
                 {"ring_bytes", Unit::kBytes},
                 {"blocked_for", Unit::kSeconds},
                 {"executor_pid", Unit::kCount},
                 {"client_pid", Unit::kCount}},
      .columns = {{"SID", {"id"}},
                  {"OWNER", {"owner"}},
                  {"ORIGIN", {"origin"}},
                  {"DEV", {"devices"}},
                  {"STATE", {"state"}},
                  {"MEM/QUOTA", {"memory_used", "memory_quota"}},
                  {"DEV-TIME", {"device_time"}},
                  {"IDLE", {"idle"}},
                  {"AGE", {"age"}},
                  {"CLASS", {"share_class"}, true},
                  {"WEIGHT", {"weight"}, true},
                  {"MAX%", {"max_percent"}, true},
                  {"QDEPTH", {"queue_bytes"}, true},
                  {"BLOCKED", {"blocked"}, true},
                  {"CALLS", {"calls"}, true},
                  {"EXEC-PID", {"executor_pid"}, true},
                  {"CLIENT-PID", {"client_pid"}, true},
                  {"PROGRAM", {"program"}, true},
                  {"LAST-OP", {"last_operator"}, true}},
  };
  return schema;
}

const Schema& SessionEventSchema() {
  static const Schema schema = {
      .kind = "SessionEvent",
      .fields = SessionSchema().fields,
      .columns = {{"TIME", {"time"}, false, 24},
                  {"EVENT", {"event"}, false, 7},
                  {"SID", {"id"}, false, 5},
                  {"STATE", {"state"}, false, 9},
                  {"OWNER", {"owner"}, false, 10},
                  {"ORIGIN", {"origin"}, false, 12},
                  {"MEM/QUOTA", {"memory_used", "memory_quota"}, false, 14},
                  {"DEV-TIME", {"device_time"}, false, 8},
                  {"CAUSE", {"end_cause"}}},
  };
  return schema;
}

const Schema& LeaseSchema() {
  static const Schema schema = {
      .kind = "Lease",
      .fields = {{"uid", Unit::kCount},
                 {"sessions", Unit::kCount},
                 {"memory_used", Unit::kBytes},
                 {"memory_quota", Unit::kBytes},
                 {"weight", Unit::kCount},
                 {"max_percent", Unit::kCount},
                 {"device_time", Unit::kSeconds},
                 {"devices.index", Unit::kCount},
                 {"devices.memory_used", Unit::kBytes},
                 {"devices.memory_quota", Unit::kBytes}},
      .columns = {{"LEASE", {"lease"}},
                  {"NAME", {"name"}},
                  {"OWNER", {"owner"}},
                  {"SESS", {"sessions"}},
                  {"MEM/QUOTA", {"memory_used", "memory_quota"}},
                  {"LIMIT", {"memory_limit"}},
                  {"CLASS", {"share_class"}},
                  {"WEIGHT", {"weight"}},
                  {"MAX%", {"max_percent"}}},
  };
  return schema;
}

const Schema& OpenedLeaseSchema() {
  static const Schema schema = {
      .kind = "Lease", .fields = {}, .columns = {{"LEASE", {"lease"}}, {"TOKEN", {"token"}}, {"FOLDER", {"folder"}}}};
  return schema;
}

const Schema& ClosedLeaseSchema() {
  static const Schema schema = {.kind = "Lease",
                                .fields = {{"sessions_ended", Unit::kCount}},
                                .columns = {{"LEASE", {"lease"}}, {"SESSIONS-ENDED", {"sessions_ended"}}}};
  return schema;
}

const Schema& VersionSchema() {
  static const Schema schema = {
      .kind = "Version",
      .fields = {{"uptime", Unit::kSeconds}, {"pid", Unit::kCount}},
      .columns = {{"PART", {"part"}},
                  {"VERSION", {"version"}},
                  {"PROTOCOL", {"protocol"}},
                  {"FEATURES", {"features"}},
                  {"SOCKET", {"socket"}, true},
                  {"PID", {"pid"}, true},
                  {"UPTIME", {"uptime"}, true}},
  };
  return schema;
}

const Schema& ConfigKeySchema() {
  static const Schema schema = {
      .kind = "ConfigKey",
      .fields = {},
      .columns = {{"KEY", {"key"}},
                  {"VALUE", {"value"}},
                  {"ORIGIN", {"origin"}},
                  {"EFFECT", {"effect"}},
                  {"NOTE", {"note"}, true}},
  };
  return schema;
}

const Schema& ConfigChangeSchema() {
  static const Schema schema = {
      .kind = "ConfigChange",
      .fields = {},
      .columns = {{"KEY", {"key"}},
                  {"RUNNING", {"running"}},
                  {"FILE", {"value"}},
                  {"ORIGIN", {"origin"}},
                  {"EFFECT", {"effect"}},
                  {"NOTE", {"note"}, true}},
  };
  return schema;
}

const Schema& ConfigMistakeSchema() {
  static const Schema schema = {.kind = "ConfigMistake", .fields = {}, .columns = {{"MISTAKE", {"mistake"}}}};
  return schema;
}

const Schema& CheckSchema() {
  static const Schema schema = {
      .kind = "Check",
      .fields = {},
      .columns = {{"CHECK", {"check"}}, {"RESULT", {"result"}}, {"FOUND", {"found"}}, {"ADVICE", {"advice"}}},
  };
  return schema;
}

const Schema& RuntimeSchema() {
  static const Schema schema = {
      .kind = "Runtime",
      .fields = {{"size", Unit::kBytes}},
      .columns = {{"RUNTIME", {"runtime"}},
                  {"NAME", {"name"}, true},
                  {"VERSION", {"version"}},
                  {"SIZE", {"size"}},
                  {"VENDORS", {"vendors"}},
                  {"STATE", {"state"}},
                  {"INSTALLED", {"installed"}, true},
                  {"SOURCE", {"source"}, true},
                  {"PROBLEM", {"problem"}, true}},
  };
  return schema;
}

const Schema& RuntimeCheckSchema() {
  static const Schema schema = {
      .kind = "RuntimeCheck",
      .fields = {},
      .columns = {{"RUNTIME", {"runtime"}}, {"RESULT", {"result"}}, {"PROBLEMS", {"problems"}}},
  };
  return schema;
}

const Schema& AuditRecordSchema() {
  static const Schema schema = {
      .kind = "AuditRecord",
      .fields = {{"sequence", Unit::kCount}, {"actor.uid", Unit::kCount}, {"actor.pid", Unit::kCount}},
      .columns = {{"RECORD", {"sequence"}},
                  {"TIME", {"time"}},
                  {"ACTOR", {"actor.user"}},
                  {"VERB", {"verb"}},
                  {"TARGET", {"target"}},
                  {"RESULT", {"result"}},
                  {"REASON", {"reason"}},
                  {"UID", {"actor.uid"}, true},
                  {"PID", {"actor.pid"}, true},
                  {"OPERATION", {"operation"}, true},
                  {"BEFORE", {"before"}, true},
                  {"AFTER", {"after"}, true}},
  };
  return schema;
}

const Schema& AuditChainSchema() {
  static const Schema schema = {
      .kind = "AuditChain",
      .fields = {{"records", Unit::kCount}, {"first", Unit::kCount}, {"last", Unit::kCount}},
      .columns = {{"RECORDS", {"records"}}, {"FIRST", {"first"}}, {"LAST", {"last"}}, {"HEAD", {"head"}}},
  };
  return schema;
}

}  // namespace flagos::ctl
