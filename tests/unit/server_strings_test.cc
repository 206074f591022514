// SPDX-License-Identifier: Apache-2.0
#include "server/common/strings.h"

#include <gtest/gtest.h>

namespace flagos {
namespace {

TEST(Printable, KeepsText) {
  EXPECT_EQ(Printable("train.py --lr 0.1"), "train.py --lr 0.1");
  EXPECT_EQ(Printable("caf\u00e9 \u4f60\u597d \U0001f600"), "caf\u00e9 \u4f60\u597d \U0001f600");
}

TEST(Printable, TakesOutWhatSteersATerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(Printable("a\nb\rc\td\x7f"), "a?b?c?d?");
  EXPECT_EQ(Printable("\u009b2J"), "?2J") << "CSI as a C1 control";
}

TEST(Printable, TakesOutWhatIsNoUtf8) {
  EXPECT_EQ(Printable("\xff\xfe"), "??");
  EXPECT_EQ(Printable("a\xc3"), "a?") << "cut within a character";
  EXPECT_EQ(Printable("\xc0\xaf"), "??") << "overlong";
  EXPECT_EQ(Printable("\xe4\xbd"), "??");
}

TEST(ValidUtf8, KeepsLinesAndTakesOutTheRest) {
  EXPECT_EQ(ValidUtf8("a\nb\t\u4f60"), "a\nb\t\u4f60");
  EXPECT_EQ(ValidUtf8("a\xffz\xe4\xbd"), "a?z??");
}

TEST(Shorten, KeepsWhatFailedAndWhy) {
  EXPECT_EQ(Shorten("short", 32), "short");
  const std::string text = "what" + std::string(1000, '-') + "why";
  const std::string cut = Shorten(text, 100);
  EXPECT_EQ(cut.size(), 100u);
  EXPECT_TRUE(cut.starts_with("what---") && cut.ends_with("---why")) << cut;
}

TEST(Shorten, CutsBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\u4f60";
  for (size_t limit = 32; limit < 40; ++limit) {
    const std::string cut = Shorten(text, limit);
    EXPECT_LE(cut.size(), limit);
    EXPECT_EQ(ValidUtf8(cut), cut);
  }
}

}  // namespace
}  // namespace flagos
