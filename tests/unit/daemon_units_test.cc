// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/common/strings.h"
#include "server/daemon/config/units.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;

TEST(UnitsTest, ReadsSizes) {
  EXPECT_EQ(*ParseBytes("64MiB"), 64u << 20);
  EXPECT_EQ(*ParseBytes("1.5GiB"), 3ull << 29);
  EXPECT_EQ(*ParseBytes("2 kB"), 2000u);
  EXPECT_EQ(*ParseBytes("0B"), 0u);
}

TEST(UnitsTest, RefusesSizesThatSayTooLittleOrTooMuch) {
  for (const char* text :
       {"64", "", "MiB", "-1MiB", "64mib", "64M", "1e3MiB", "1.2.3MiB", "9999999TiB", "64MiB ", "0x10B"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
  EXPECT_EQ(MessageOf(ParseBytes("64").status()),
            "\"64\" is no size; write a number with a unit: B, KiB, MiB, GiB or TiB, as in \"64MiB\"");
}

TEST(UnitsTest, ReadsDurations) {
  EXPECT_EQ(*ParseDuration("5s"), 5s);
  EXPECT_EQ(*ParseDuration("250ms"), 250ms);
  EXPECT_EQ(*ParseDuration("1.5h"), 90min);
  EXPECT_EQ(*ParseDuration("0s"), 0s);
  for (const char* text : {"5", "", "s", "5sec", "-5s", "9000h", "nan", "infs"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
}

TEST(UnitsTest, WritesWhatItReads) {
  for (const uint64_t bytes : {0ull, 1ull, 1000ull, 1024ull, 4ull << 20, 3ull << 29, 1ull << 40}) {
    EXPECT_EQ(*ParseBytes(FormatBytes(bytes)), bytes);
  }
  EXPECT_EQ(FormatBytes(64u << 20), "64MiB");
  EXPECT_EQ(FormatDuration(1500ms), "1500ms");
  EXPECT_EQ(FormatDuration(5min), "300s");
}

}  // namespace
}  // namespace flagos::daemon
