// SPDX-License-Identifier: Apache-2.0
// Falling asleep and being woken, thousands of times, with nothing but a few instructions between the two: in this
// program nobody spins. A lost wake-up would cost a round 50 ms, the interval of the liveness checks, or the consumer's
// whole timeout.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "proto/shm/futex.h"
#include "proto/shm/replies.h"
#include "proto/shm/ring.h"
#include "tests/unit/proto_session.h"

namespace flagos {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kRounds = 5000;
constexpr uint64_t kLost = 45 * kMillisecond;

const int kNoSpinning = ::setenv("FLAGOS_SPIN_US", "0", 1);

// Waits for up to two microseconds, a little longer each time. Both sides do, with periods of their own, so that they
// meet at every instruction.
void Dither(uint64_t round, uint64_t period) {
  const uint64_t until = MonotonicNanoseconds() + round % period * 20;
  while (MonotonicNanoseconds() < until) {
  }
}

// Meets the other side without sleeping, and without keeping its core from it.
void Await(const std::atomic<uint64_t>& word, uint64_t value) {
  for (int turn = 0; word.load() < value; ++turn) {
    if (turn > 1000) std::this_thread::yield();
  }
}

// The scheduler likes to put a woken thread on the waker's core, where the two never run at once.
void RunOn(int number) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  if (CPU_COUNT(&allowed) < 2) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || number-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
    return;
  }
}

// How long this thread has been able to run, and some other thread had the core: 0 where the kernel does not tell.
uint64_t NanosecondsHeldUp() {
  std::ifstream file("/proc/thread-self/schedstat");
  uint64_t running = 0, waiting = 0;
  file >> running >> waiting;
  return waiting;
}

class Sleeping : public ::testing::Test {
 protected:
  // Starts the waking side, on a core that the sleeping side leaves.
  template <class Body>
  std::thread start(Body body) {
    std::thread thread([body] {
      RunOn(1);
      body();
    });
    RunOn(0);
    return thread;
  }
  // The waking side: its work in the round before is done; waits for the start of round `i`. False: there is none.
  bool meet(uint64_t i) {
    finished_at = MonotonicNanoseconds();
    ready = i;
    Await(round, i);
    Dither(i, 97);
    return !ended;
  }
  void end(std::thread& waking_side) {
    ended = true;
    round = kRounds;
    waking_side.join();
  }
  // The sleeping side: starts a round, and counts those in which it slept on though the other side had done its work:
  // as long as a lost wake-up makes it. Time in which a busy machine held either side up does not count.
  // False where it took so long.
  template <class Wait>
  bool time_round(Wait wait) {
    const uint64_t i = round.load() + 1;
    Await(ready, i);  // else the other side would still be within its last call
    const uint64_t held_up = NanosecondsHeldUp();
    round = i;
    Dither(i, 61);
    const uint64_t start = MonotonicNanoseconds();
    wait();
    const uint64_t end = MonotonicNanoseconds();
    if (end - start < kLost) return true;
    if (ready.load() == i) return false;
    const uint64_t done = std::max(start, finished_at.load());
    slow += end > done + kLost + (NanosecondsHeldUp() - held_up);
    return false;
  }
  // On a busy machine a round may take milliseconds: then fewer of them have to do.
  bool more(uint64_t i) const {
    return i <= kRounds && !lost() && (i < 200 || MonotonicNanoseconds() - began < 20'000 * kMillisecond);
  }
  // What no measure shows may hold a thread up now and then.
  bool lost() const { return slow > 20; }

  testing::Regions regions;
  testing::View view = regions.map();
  RingConsumer consumer{view.client(), view.ring(), view.executor()};
  RingProducer producer{view.client(), view.ring(), view.executor(), testing::kAlive};
  std::atomic<uint64_t> ready = 0, round = 0;
  std::atomic<uint64_t> finished_at = 0;
  std::atomic<bool> ended = false;
  uint64_t slow = 0;
  const uint64_t began = MonotonicNanoseconds();
};

TEST_F(Sleeping, NobodySpins) { EXPECT_EQ(SpinNanoseconds(), 0u); }

TEST_F(Sleeping, WakeIsNeverLost) {
  bool in_time = true;
  uint64_t work = 0;  // plain: wake() orders it before what follows wait()
  std::thread waker = start([&] {
    for (uint64_t i = 1; i <= kRounds; ++i) {
      if (!meet(i)) return;
      work = i;
      consumer.wake();
    }
  });
  for (uint64_t i = 1; more(i); ++i) {
    // The wake that a wait gave up on ends a later one.
    in_time = time_round([&] { consumer.wait(60 * kMillisecond); }) && in_time;
    if (in_time) {
      ASSERT_EQ(work, i);
    }
  }
  end(waker);
  EXPECT_FALSE(lost());
}

TEST_F(Sleeping, ARecordIsNeverSleptThrough) {
  std::thread client = start([&] {
    for (uint64_t i = 1; i <= kRounds; ++i) {
      if (!meet(i)) return;
      ErrorCode error = ErrorCode::kOk;
      if (producer.reserve(0, error) == nullptr) return;
      producer.commit(testing::Header(RecordKind::kFree), 0);
    }
  });
  Record record;
  for (uint64_t i = 1; more(i); ++i) {
    time_round([&] {
      while (consumer.try_read(record) == RingConsumer::Status::kEmpty) consumer.wait(60 * kMillisecond);
    });
    ASSERT_EQ(record.sequence, i);
  }
  end(client);
  EXPECT_FALSE(lost());
}

TEST_F(Sleeping, AnAnswerIsNeverSleptThrough) {
  ReplyReader reader(view.client(), view.replies(), testing::kAlive);
  ReplyWriter writer(view.client(), view.replies());
  std::thread executor = start([&] {
    for (uint64_t i = 1; i <= kRounds; ++i) {
      if (!meet(i)) return;
      if (i % 2 != 0) {
        writer.complete(0, i);
      } else {
        writer.reply(3, i, {});
      }
    }
  });
  std::vector<std::byte> bytes;
  for (uint64_t i = 1; more(i); ++i) {
    time_round([&] { ASSERT_TRUE(i % 2 != 0 ? reader.wait_complete(0, i) : reader.wait(3, i, bytes)); });
  }
  end(executor);
  EXPECT_FALSE(lost());
}

TEST_F(Sleeping, CreditsAreNeverSleptThrough) {
  const size_t half = producer.max_payload();
  ErrorCode error = ErrorCode::kOk;
  const auto push = [&] {
    ASSERT_NE(producer.reserve(half, error), nullptr);
    producer.commit(testing::Header(RecordKind::kFree), half);
  };
  push();
  push();
  std::thread executor = start([&] {
    Record record;
    for (uint64_t i = 1; i <= kRounds; ++i) {
      if (!meet(i)) return;
      if (consumer.try_read(record) != RingConsumer::Status::kRecord) return;
    }
  });
  for (uint64_t i = 1; more(i); ++i) {
    time_round(push);
    if (HasFatalFailure()) break;
  }
  end(executor);
  EXPECT_FALSE(lost());
  EXPECT_GT(view.client()->blocked_count.load(), 0u);
}

}  // namespace
}  // namespace flagos
