// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/ctl/text.h"

namespace flagos::ctl {
namespace {

TEST(DisplayWidth, CountsCharacters) {
  EXPECT_EQ(DisplayWidth(""), 0u);
  EXPECT_EQ(DisplayWidth("caf\u00e9"), 4u);
}

TEST(FormatBytes, PicksAUnit) {
  EXPECT_EQ(FormatBytes(0, Units::kIec), "0B");
  EXPECT_EQ(FormatBytes(1023, Units::kIec), "1023B");
  EXPECT_EQ(FormatBytes(1024, Units::kIec), "1KiB");
  EXPECT_EQ(FormatBytes(1536u << 20, Units::kIec), "1.5GiB");
  EXPECT_EQ(FormatBytes(300ull << 30, Units::kIec), "300GiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX, Units::kIec), "16EiB");
  EXPECT_EQ(FormatBytes(1'610'612'736, Units::kSi), "1.6GB");
  EXPECT_EQ(FormatBytes(1'610'612'736, Units::kRaw), "1610612736");
}

TEST(FormatSeconds, PicksAForm) {
  EXPECT_EQ(FormatSeconds(0, Units::kIec), "0s");
  EXPECT_EQ(FormatSeconds(0.25, Units::kIec), "250ms");
  EXPECT_EQ(FormatSeconds(12.5, Units::kIec), "12.5s");
  EXPECT_EQ(FormatSeconds(59.97, Units::kIec), "1m00s");
  EXPECT_EQ(FormatSeconds(192, Units::kIec), "3m12s");
  EXPECT_EQ(FormatSeconds(7500, Units::kIec), "2h05m");
  EXPECT_EQ(FormatSeconds(3 * 86400 + 4 * 3600, Units::kIec), "3d04h");
  EXPECT_EQ(FormatSeconds(-1, Units::kIec), "0s") << "a clock that was set back";
  EXPECT_EQ(FormatSeconds(72.5, Units::kRaw), "72.500");
}

TEST(FormatTime, IsRfc3339InUtc) {
  EXPECT_EQ(FormatTime(0), "");
  EXPECT_EQ(FormatTime(1'700'000'000.25), "2023-11-14T22:13:20.250Z");
}

TEST(FormatRatio, IsPerCent) {
  EXPECT_EQ(FormatRatio(0.424, Units::kIec), "42%");
  EXPECT_EQ(FormatRatio(0.424, Units::kRaw), "0.4240");
}

}  // namespace
}  // namespace flagos::ctl
