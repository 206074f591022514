// SPDX-License-Identifier: Apache-2.0
// What flagosctl prints, character for character: scripts read it.
#include <gtest/gtest.h>

#include "server/ctl/message_json.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"
#include "server/ctl/session_row.h"
#include "tests/unit/ctl_sessions.h"

namespace flagos::ctl {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Seconds(testing::kNow);

Listing Sessions() {
  return {&SessionSchema(), {SessionRow(testing::RunningSession(), kNow), SessionRow(testing::FaultedSession(), kNow)}};
}

std::string List(const View& view, const Listing& listing = Sessions()) {
  const auto text = RenderList(listing, view);
  return text.ok() ? *text : "error: " + std::string(text.status().message());
}

View In(Format format) {
  View view;
  view.format = format;
  return view;
}

TEST(Table, IsAligned) {
  EXPECT_EQ(List({}),
            "SID  OWNER  ORIGIN     DEV  STATE      MEM/QUOTA  DEV-TIME   IDLE    AGE\n"
            "s1   alice  host:4711  0,1  RUNNING  1.5GiB/8GiB     3m12s  250ms  2h05m\n"
            "s12  bob    host:99    -    FAULTED         0B/-        0s     0s  30.0s\n");
}

TEST(Table, WideShowsMore) {
  View view = In(Format::kWide);
  view.fields = {"sid", "qdepth", "blocked", "calls", "exec-pid", "client-pid", "last-op"};
  EXPECT_EQ(List(view),
            "SID  QDEPTH  BLOCKED     CALLS  EXEC-PID  CLIENT-PID  LAST-OP\n"
            "s1    64KiB  ring full  123456      4712        4711  aten::add.Tensor\n"
            "s12      0B  -               0         0           0  -\n");
  EXPECT_NE(List(In(Format::kWide)).find("PROGRAM"), std::string::npos);
}

TEST(Table, DoesWithoutHeadersAndKeepsToUnits) {
  View view;
  view.headers = false;
  view.fields = {"SID", "MEM/QUOTA", "DEV-TIME"};
  view.units = Units::kRaw;
  EXPECT_EQ(List(view),
            "s1   1610612736/8589934592  192.000\n"
            "s12                    0/-    0.000\n");
}

TEST(Table, IsOnlyItsHeadersWhereThereIsNothing) {
  EXPECT_EQ(List({}, {&SessionSchema(), {}}), "SID  OWNER  ORIGIN  DEV  STATE  MEM/QUOTA  DEV-TIME  IDLE  AGE\n");
}

TEST(Table, ShowsDevices) {
  const Listing devices = {&DeviceSchema(), {ToJson(testing::DeviceOf(0)), ToJson(testing::DeviceOf(1))}};
  EXPECT_EQ(List({}, devices),
            "DEV  MODEL  HEALTH   MEM-USED  MEM-TOTAL  COMPUTE%  UTIL  TEMP  POWER  SESS  WARM\n"
            "  0  CPU    HEALTHY    1.5GiB      16GiB       50%     -     -      -     1     1\n"
            "  1  CPU    HEALTHY        0B      16GiB        0%     -     -      -     0     1\n");
}

TEST(Table, ShowsWhatDevicesTell) {
  const Listing devices = {&DeviceSchema(), {ToJson(testing::WatchedDevice()), ToJson(testing::DeviceOf(1))}};
  View view = In(Format::kWide);
  view.fields = {"dev", "util", "temp", "power", "dev-mem", "sm-clock", "mem-clock", "held-by", "ecc", "mode", "read"};
  EXPECT_EQ(List(view, devices),
            "DEV  UTIL  TEMP     POWER     DEV-MEM  SM-CLOCK  MEM-CLOCK  HELD-BY  ECC  MODE   READ\n"
            "  0   42%   41C  65W/700W  3GiB/16GiB  345MHz/-          -  none       0  -     250ms\n"
            "  1     -     -         -           -         -          -  -          -  -         -\n");
  view.fields = {"dev"};
  view.headers = false;
  view.sort = "-temp";
  EXPECT_EQ(List(view, {&DeviceSchema(), {ToJson(testing::DeviceOf(1)), ToJson(testing::WatchedDevice())}}), "0\n1\n");
}

TEST(Details, EnterWhatDevicesTell) {
  const auto text = RenderItem(DeviceSchema(), ToJson(testing::WatchedDevice()), {});
  ASSERT_TRUE(text.ok());
  for (const char* const line : {"telemetry temperature         41C\n", "telemetry power limit         700W\n",
                                 "telemetry driver              -\n", "telemetry mig                 no\n",
                                 "telemetry processes           pid 4712, memory 1.5GiB\n",
                                 "telemetry processes           pid 4713, memory -\n"}) {
    EXPECT_NE(text->find(line), std::string::npos) << line << *text;
  }
}

TEST(Table, NeverSteersTheTerminal) {
  View view;
  view.fields = {"program"};
  EXPECT_EQ(List(view), "PROGRAM\ntrain.py, \"fast\"\nevil?[2J\n");
}

TEST(Sort, OrdersByValueNotByText) {
  View view;
  view.headers = false;
  view.fields = {"sid"};
  view.sort = "age";
  EXPECT_EQ(List(view), "s12\ns1\n");
  view.sort = "-age";
  EXPECT_EQ(List(view), "s1\ns12\n");
  view.sort = "mem/quota";
  EXPECT_EQ(List(view), "s12\ns1\n");
}

TEST(Fields, UnknownOnesAreRefusedWithTheKnown) {
  View view;
  view.fields = {"colour"};
  EXPECT_EQ(List(view).substr(0, 50), "error: there is no column \"colour\"\n--fields and --");
  EXPECT_NE(List(view).find("SID OWNER"), std::string::npos);
  view = {};
  view.sort = "colour";
  EXPECT_EQ(RenderList(Sessions(), view).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Csv, FollowsRfc4180) {
  View view = In(Format::kCsv);
  view.fields = {"sid", "dev", "mem/quota", "idle", "program"};
  EXPECT_EQ(List(view),
            "id,devices,memory_used_bytes,memory_quota_bytes,idle_seconds,program\r\n"
            "s1,0 1,1610612736,8589934592,0.25,\"train.py, \"\"fast\"\"\"\r\n"
            "s12,,0,0,0.0,evil\x1b[2J\r\n");
}

TEST(Csv, NamesTheUnitsOfFigures) {
  View view = In(Format::kCsv);
  view.fields = {"dev", "util", "temp", "power", "sm-clock"};
  EXPECT_EQ(List(view, {&DeviceSchema(), {ToJson(testing::WatchedDevice()), ToJson(testing::DeviceOf(1))}}),
            "index,telemetry.utilisation_ratio,telemetry.temperature_celsius,telemetry.power_watts,"
            "telemetry.power_limit_watts,telemetry.sm_clock_mhz,telemetry.sm_clock_max_mhz\r\n"
            "0,0.42,41.0,65.25,700.0,345.0,\r\n"
            "1,,,,,,\r\n");
}

TEST(JsonText, KeepsObjectsInObjectsAndTellsWhatIsAbsent) {
  View view = In(Format::kJson);
  const Listing devices = {&DeviceSchema(), {ToJson(testing::WatchedDevice()), ToJson(testing::DeviceOf(1))}};
  const Json items = Json::parse(List(view, devices)).at("items");
  EXPECT_EQ(items.at(0).at("telemetry").at("power"), 65.25);
  EXPECT_EQ(items.at(0).at("telemetry").at("ecc_uncorrected"), 0);
  EXPECT_EQ(items.at(0).at("telemetry").at("ecc_corrected"), nullptr);
  EXPECT_EQ(items.at(0).at("telemetry").at("processes").at(1).at("memory"), nullptr);
  EXPECT_EQ(items.at(1).at("telemetry"), nullptr);
  view.fields = {"dev", "temp"};
  const Json narrow = Json::parse(List(view, devices)).at("items");
  EXPECT_EQ(narrow.at(0), (Json{{"index", 0}, {"telemetry", {{"temperature", 41.0}}}}));
  EXPECT_EQ(narrow.at(1), (Json{{"index", 1}, {"telemetry", {{"temperature", nullptr}}}}));
}

TEST(JsonText, HasTheEnvelopeAndBaseUnits) {
  const Json document = Json::parse(List(In(Format::kJson)));
  EXPECT_EQ(document.at("apiVersion"), "flagos/v1");
  EXPECT_EQ(document.at("kind"), "SessionList");
  const Json& session = document.at("items").at(0);
  EXPECT_EQ(session.at("state"), "RUNNING");
  EXPECT_EQ(session.at("memory_used"), 1610612736);
  EXPECT_TRUE(session.at("memory_used").is_number_integer()) << "not a text, as Protobuf's own JSON has it";
  EXPECT_EQ(session.at("devices"), Json({0, 1}));
  EXPECT_EQ(session.at("started"), "2023-11-14T20:08:20.000Z");
  EXPECT_EQ(session.at("ended"), nullptr);
  EXPECT_EQ(session.at("age"), 7500.0);
  EXPECT_EQ(document.at("items").at(1).at("program"), "evil\x1b[2J") << "whole, and escaped";
}

TEST(JsonText, HasEveryFieldOfTheMessage) {
  const Json session = Json::parse(List(In(Format::kJson))).at("items").at(1);
  const auto* const type = v1::Session::descriptor();
  for (int i = 0; i < type->field_count(); ++i)
    EXPECT_TRUE(session.contains(type->field(i)->name())) << type->field(i)->name();
}

TEST(JsonText, IsOneLineWhereItIsWatched) {
  View view = In(Format::kJson);
  view.one_line = true;
  view.fields = {"sid", "mem/quota"};
  EXPECT_EQ(List(view),
            "{\"apiVersion\":\"flagos/v1\",\"kind\":\"SessionList\",\"items\":["
            "{\"id\":\"s1\",\"memory_used\":1610612736,\"memory_quota\":8589934592},"
            "{\"id\":\"s12\",\"memory_used\":0,\"memory_quota\":0}]}\n");
}

TEST(JsonText, SurvivesBytesThatAreNoUtf8) {
  EXPECT_EQ(RenderJson({{"text", "a\xff"}}, true), "{\"text\":\"a\ufffd\"}\n");
}

TEST(Yaml, SaysTheSame) {
  View view = In(Format::kYaml);
  view.fields = {"sid", "dev", "state"};
  EXPECT_EQ(List(view),
            "apiVersion: \"flagos/v1\"\n"
            "kind: \"SessionList\"\n"
            "items:\n"
            "  - id: \"s1\"\n"
            "    devices:\n"
            "      - 0\n"
            "      - 1\n"
            "    state: \"RUNNING\"\n"
            "  - id: \"s12\"\n"
            "    devices: []\n"
            "    state: \"FAULTED\"\n");
}

TEST(Item, IsShownInLines) {
  View view;
  view.fields = {"sid", "mem/quota", "age"};
  const Json row = SessionRow(testing::RunningSession(), kNow);
  EXPECT_EQ(*RenderItem(SessionSchema(), row, view),
            "id            s1\n"
            "memory used   1.5GiB\n"
            "memory quota  8GiB\n"
            "age           2h05m\n");
  EXPECT_NE(RenderItem(SessionSchema(), row, {})->find("last operator      aten::add.Tensor\n"), std::string::npos);
}

TEST(Item, IsAnObjectInJson) {
  View view = In(Format::kJson);
  view.one_line = true;
  const Json row = {{"lease", "l1"}, {"token", "00ff"}};
  EXPECT_EQ(*RenderItem(LeaseSchema(), row, view),
            "{\"apiVersion\":\"flagos/v1\",\"kind\":\"Lease\",\"lease\":\"l1\",\"token\":\"00ff\"}\n");
}

}  // namespace
}  // namespace flagos::ctl
