// SPDX-License-Identifier: Apache-2.0
// What flagosctl top draws and what its keys ask for. tests/e2e/test_top.py looks at a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/ctl/top/model.h"
#include "tests/unit/ctl_sessions.h"

namespace flagos::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using What = TopRequest::What;

TopData LookAt(double seconds) {
  TopData data{.daemon = "flagosd 9.9.9 at /run/f.sock", .sessions = {}, .devices = {}, .at = {}};
  data.at = absl::UnixEpoch() + absl::Seconds(testing::kNow + seconds);
  data.devices = {testing::WatchedDevice(), testing::DeviceOf(1)};
  v1::Session session = testing::RunningSession();
  session.set_device_time(192 + seconds / 2);
  session.set_blocked("");
  data.sessions = {session, testing::FaultedSession()};
  return data;
}

class Top : public ::testing::Test {
 protected:
  Top() {
    model.update(LookAt(0));
    model.update(LookAt(2));
  }
  TopRequest type(const std::string& text) {
    TopRequest last;
    for (const char c : text) last = model.press(TopKey::kCharacter, c);
    return last;
  }
  std::string bottom() { return model.draw(200, 12).back().text; }
  std::string screen(size_t width = 200, size_t height = 12) {
    std::string text;
    for (const TopLine& line : model.draw(width, height)) text += line.text + "\n";
    return text;
  }
  // The first words of the rows of sessions.
  std::vector<std::string> sids() {
    std::vector<std::string> words;
    for (const TopLine& line : model.draw(200, 12)) {
      if (line.text.starts_with("s1")) words.push_back(line.text.substr(0, line.text.find(' ')));
    }
    return words;
  }

  TopModel model{false, Units::kIec};
};

TEST_F(Top, Golden) {
  EXPECT_EQ(screen(110, 11),
            "flagosd 9.9.9 at /run/f.sock  22:13:22 UTC\n"
            "DEV  MODEL  HEALTH   COMPUTE%  MEM-USED/TOTAL  UTIL  TEMP     POWER  SESS\n"
            "  0  CPU    HEALTHY       50%    1.5GiB/16GiB   42%   41C  65W/700W     1\n"
            "  1  CPU    HEALTHY        0%        0B/16GiB     -     -         -     0\n"
            "sessions: 2 of 2   sort: BUSY (descending)   device: all   filter: -\n"
            "SID  OWNER  DEV  STATE    BUSY    MEM/QUOTA  DEV-TIME  QDEPTH   IDLE    AGE  PROGRAM\n"
            "s1   alice  0,1  RUNNING   50%  1.5GiB/8GiB     3m13s   64KiB  250ms  2h05m  train.py, \"fast\"\n"
            "s12  bob    -    FAULTED    0%         0B/-        0s      0B     0s  30.0s  evil?[2J\n"
            "\n\n"
            "s sort  r reverse  f filter  d device  p pause  k kill  ? help  q quit\n");
}

TEST_F(Top, FitsAnyTerminal) {
  for (size_t width = 0; width < 120; width += 7) {
    for (size_t height = 0; height < 16; ++height) {
      const auto lines = model.draw(width, height);
      EXPECT_THAT(lines, SizeIs(height));
      for (const TopLine& line : lines) EXPECT_LE(DisplayWidth(line.text), width);
    }
  }
}

TEST_F(Top, TheChosenSessionStaysInSight) {
  TopData many = LookAt(4);
  many.sessions.clear();
  for (int i = 0; i < 100; ++i) {
    many.sessions.push_back(testing::RunningSession());
    many.sessions.back().set_id("s1" + std::to_string(100 + i));
  }
  model.update(many);
  for (int i = 0; i < 60; ++i) model.press(TopKey::kDown);
  const auto lines = model.draw(100, 12);
  EXPECT_EQ(lines[10].style, TopStyle::kSelected);
  EXPECT_THAT(lines[10].text, HasSubstr("s1160"));
}

TEST_F(Top, Sorts) {
  EXPECT_THAT(sids(), ElementsAre("s1", "s12"));
  type("r");
  EXPECT_THAT(sids(), ElementsAre("s12", "s1"));
  type("sssssss");  // MEM/QUOTA, ..., PROGRAM, SID
  EXPECT_THAT(screen(), HasSubstr("sort: SID   "));
  EXPECT_THAT(sids(), ElementsAre("s1", "s12"));
}

TEST_F(Top, Filters) {
  type("fBOB");
  EXPECT_EQ(bottom(), "filter: BOB_");
  model.press(TopKey::kEnter);
  EXPECT_THAT(sids(), ElementsAre("s12"));
  type("f");
  for (int i = 0; i < 5; ++i) model.press(TopKey::kBackspace);
  type("none");
  model.press(TopKey::kEscape);
  EXPECT_THAT(sids(), ElementsAre("s12")) << "as before";
  type("d");
  EXPECT_THAT(sids(), ElementsAre()) << "bob's has no device";
}

TEST_F(Top, Pauses) {
  type("p");
  TopData none = LookAt(4);
  none.sessions.clear();
  model.update(none);
  EXPECT_THAT(sids(), SizeIs(2));
  type("p");
  model.update(none);
  EXPECT_THAT(sids(), SizeIs(0));
}

TEST_F(Top, AKillIsOfTheSessionThatWasChosen) {
  model.press(TopKey::kDown);
  type("k");
  model.update(LookAt(3));
  type("r");  // a part of the reason
  const TopRequest request = (type("eason q"), model.press(TopKey::kEnter));
  EXPECT_EQ(request.what, What::kKill);
  EXPECT_EQ(request.session, "s12");
  EXPECT_EQ(request.reason, "reason q");
}

TEST_F(Top, AKillNeedsAReason) {
  type("k");
  EXPECT_EQ(model.press(TopKey::kEnter).what, What::kNothing);
  EXPECT_THAT(bottom(), HasSubstr("a reason is needed"));
  type("kx");
  EXPECT_EQ(model.press(TopKey::kEscape).what, What::kNothing);
  EXPECT_EQ(model.press(TopKey::kEnter).what, What::kNothing);
}

TEST_F(Top, ReadonlyKillsNothing) {
  TopModel readonly(true, Units::kIec);
  readonly.update(LookAt(0));
  readonly.press(TopKey::kCharacter, 'k');
  readonly.press(TopKey::kCharacter, 'x');
  EXPECT_EQ(readonly.press(TopKey::kEnter).what, What::kNothing);
}

TEST_F(Top, OnlyQQuits) {
  EXPECT_EQ(type("x").what, What::kNothing);
  EXPECT_EQ(type("?q").what, What::kNothing) << "leaves the help";
  EXPECT_EQ(type("q").what, What::kQuit);
}

}  // namespace
}  // namespace flagos::ctl
