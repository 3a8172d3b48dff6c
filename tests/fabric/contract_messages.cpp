// SPDX-License-Identifier: Apache-2.0
// The contract of fabrics: messages, immediates and words, and what a handler may do.
#include <poll.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/contract_cases.hpp"

using namespace rma;
using namespace rma::test;
using fabric::local_slice;
using fabric::region_key;

namespace {

/// Numbered messages from rank 0, each longer than the one before until the longest.
class numbered_messages {
 public:
  explicit numbered_messages(fabric_job& all)
      : all_(all), payload_(std::min<std::size_t>(2999, all.caps().message_bytes_max - 8)) {
    for (std::size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<std::byte>(i);
  }
  status send(int target, std::uint64_t number) {
    return all_[0].fabric.send(target, message_kind, bytes_of(number), rest(number));
  }
  [[nodiscard]] bool are_those_of(const job_member& m) const {
    for (std::uint64_t i = 0; i < m.messages.size(); ++i) {
      const auto& [source, kind, bytes] = m.messages[i];
      const auto front = bytes_of(i);
      if (source != 0 || kind != message_kind || bytes.size() != 8 + rest(i).size() ||
          !std::equal(front.begin(), front.end(), bytes.begin()) ||
          !std::equal(rest(i).begin(), rest(i).end(), bytes.begin() + 8))
        return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::span<const std::byte> rest(std::uint64_t number) const {
    return std::span(payload_).first(number % (payload_.size() + 1));
  }
  fabric_job& all_;
  std::vector<std::byte> payload_;
};

}  // namespace

// Break: hand on a message twice, or the second of two first.
TEST_CASE("contract: messages arrive once and in order", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    numbered_messages text(all);
    constexpr std::uint64_t count = 2000;
    for (const int target : {1, 0}) {
      CAPTURE(target);
      for (std::uint64_t i = 0; i < count; ++i) REQUIRE(all.post([&] { return text.send(target, i); }) == status::done);
      REQUIRE(all.until([&] { return all[target].messages.size() >= count && all.are_quiet(); }));
      CHECK(all[target].messages.size() == count);
      CHECK(text.are_those_of(all[target]));
    }
    exchange(all, 0, 1);
  });
}

// Goal: messages that a poll may not hand on wait, in order, and the rank knows that something waits.
// Break: hand on what is over the limit; or say that nothing is pending.
TEST_CASE("contract: messages wait while a poll may hand on few", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    numbered_messages text(all);
    constexpr std::size_t limit = 3, count = 300;
    exchange(all, 0, 1);
    for (const int target : {1, 0}) {
      CAPTURE(target);
      job_member& m = all[target];
      m.messages.clear();
      std::uint64_t sent = 0;
      bool few = true, awake = true;
      REQUIRE(all.until([&] {
        while (sent < count && text.send(target, sent) == status::done) ++sent;
        return sent == count;
      }));
      CHECK(all.until([&] {
        for (std::size_t had = ~std::size_t{0}; had != m.messages.size();) {
          had = m.messages.size();
          few = m.fabric.poll(m, limit) <= limit && m.messages.size() <= had + limit && few;
        }
        return m.messages.size() == count;
      }));
      m.messages.clear();
      for (sent = 0; sent < limit + 1 && text.send(target, sent) == status::done;) ++sent;
      for (int polls = 0; polls < 1'000'000 && m.messages.size() < sent; ++polls) {
        const std::size_t had = m.messages.size();
        (void)m.fabric.poll(m, 1);
        few = few && m.messages.size() <= had + 1;
        if (m.messages.size() == had || m.messages.size() == sent) continue;
        fabric::liveness& live = m.fabric.as_liveness();
        pollfd news{live.event_fd(), POLLIN, 0};
        awake = awake && (live.pending() || ::poll(&news, 1, 1000) == 1);
      }
      CHECK(awake);
      CHECK(few);
      CHECK(text.are_those_of(m));
    }
  });
}

// Break: let a message pass a write.
TEST_CASE("contract: a message comes after the writes before it", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (!all.caps().messages_after_writes) {
      all.cannot = "its messages may pass writes";
      return;
    }
    std::vector<std::uint64_t> memory(fitting(all, 4096)), from(memory.size());
    const region_key key = region_of(all[1], memory);
    (void)region_of(all[0], from);
    bool there = true;
    all[1].at_message = [&](const job_member::message&) { there = there && memory == from; };
    for (std::uint64_t round = 1; round <= 50; ++round) {
      std::ranges::fill(from, round);
      REQUIRE(write_words(all, 0, 1, words_at(from.data(), from.size()), key, words_in(key, 0, from.size()), round));
      REQUIRE(send_word(all, 0, 1, round));
      REQUIRE(all.until([&] { return all[1].messages.size() == round && all[0].over.size() == round; }));
    }
    CHECK(there);
    all[1].at_message = nullptr;
  });
}

// Goal: who sees what a write has brought finds all messages that were sent before it.
// Break: in the simulator, place a write while a message before it waits for room in the receive queue.
TEST_CASE("contract: a write comes after the messages before it", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (!all.caps().messages_after_writes) {
      all.cannot = "its messages may pass writes";
      return;
    }
    std::vector<std::uint64_t> memory(1), from(1);
    const region_key key = region_of(all[1], memory);
    (void)region_of(all[0], from);
    job_member& target = all[1];
    constexpr std::uint64_t messages = 6;
    bool there = true;
    for (std::uint64_t round = 1; round <= 30; ++round) {
      from[0] = round;
      for (std::uint64_t i = 0; i < messages; ++i) REQUIRE(send_word(all, 0, 1, i));
      REQUIRE(write_words(all, 0, 1, words_at(from.data(), 1), key, words_in(key, 0, 1), round));
      REQUIRE(all.until([&] {
        if (std::atomic_ref(memory[0]).load(std::memory_order_acquire) != round) return false;
        while (target.fabric.poll(target, 64) != 0) continue;
        there = there && target.messages.size() == round * messages;
        return target.messages.size() == round * messages;
      }));
      REQUIRE(all.until([&] { return all[0].over.size() == round; }));
    }
    CHECK(there);
  });
}

// Goal: when an immediate comes its data are there, of every size; it comes once, and to oneself, too. (The origin's
// memory is registered: else a fabric may refuse.)
// Break: send the immediate before the data.
TEST_CASE("contract: an immediate comes behind its data", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (!all.caps().write_with_immediate) {
      all.cannot = "it has no immediates";
      return;
    }
    std::uint32_t round = 0;
    for (const int target : {1, 0}) {
      all[0].over.clear();
      all[target].immediates.clear();
      for (const std::size_t wanted : {std::size_t{1}, std::size_t{1000}, std::size_t{3000}, std::size_t{100'000}}) {
        const std::size_t count = fitting(all, wanted);
        CAPTURE(target, count);
        std::vector<std::uint64_t> memory(count);
        const region_key key = region_of(all[target], memory);
        for (int i = 0; i < 10; ++i) {
          auto from = numbers(count, ++round);
          const region_key mine = region_of(all[0], from);
          const local_slice here = words_at(from.data(), count);
          bool there = false;
          all[target].at_immediate = [&] { there = memory == from; };
          const std::size_t had = all[target].immediates.size();
          REQUIRE(all.start(0, round, [&] {
            const fabric::remote_slice into = words_in(key, 0, count);
            return all[0].fabric.write(target, {&here, 1}, key, {&into, 1}, round, fabric::with_immediate(round));
          }));
          REQUIRE(all.until([&] { return all[target].immediates.size() > had && all[0].over.contains(round); }));
          CHECK(there);
          CHECK(all[target].immediates.size() == had + 1);
          CHECK(all[target].immediates.back() == std::pair(0, round));
          all[0].fabric.deregister_region(mine);
        }
        all[target].fabric.deregister_region(key);
      }
      CHECK(all_over_as(all[0], status::done));
      all[target].at_immediate = nullptr;
    }
  });
}

// Break: let a message pass a word; or report words.
TEST_CASE("contract: a word is there before what is sent after it, and nobody is told of it", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (!all.caps().words) {
      all.cannot = "it does not write words";
      return;
    }
    std::vector<std::uint64_t> memory(2);
    const region_key key = region_of(all[1], memory);
    bool there = true;
    all[1].at_message = [&](const job_member::message&) { there = there && memory[1] == all[1].messages.size(); };
    for (std::uint64_t round = 1; round <= 50; ++round) {
      std::uint64_t word = round;
      const local_slice here = words_at(&word, 1);
      const fabric::remote_slice into = words_in(key, 1, 1);
      REQUIRE(all.post([&] {
        return all[0].fabric.write(1, {&here, 1}, key, {&into, 1}, 0, fabric::silent_write);
      }) == status::done);
      word = 0;  // it has been read
      REQUIRE(send_word(all, 0, 1, round));
      REQUIRE(all.until([&] { return all[1].messages.size() == round; }));
    }
    CHECK(there);
    CHECK(all.until([&] { return all.are_quiet(); }));
    CHECK(all[0].completions == 0);
    CHECK(memory[0] == 0);
  });
}

namespace {

/// Rank 1 answers each number that rank 0 sends by a write into rank 0's memory, whose completion sends a message: all
/// from within the poll that hands on the number, or the completion. A call that finds no room there is made again
/// later.
class answering_rank {
 public:
  answering_rank(fabric_job& all, const region_key& into, std::uint64_t count)
      : me_(all[1]), into_(into), values_(numbers(count, 1000)) {
    me_.at_message = [this](const job_member::message& m) {
      std::uint64_t number = 0;
      std::copy(m.bytes.begin(), m.bytes.end(), reinterpret_cast<std::byte*>(&number));
      written_by_handler += post_or_keep([this, number] { return write(number); }) ? 1 : 0;
    };
    me_.at_completion = [this](std::uint64_t token, status result) {
      failed += result == status::done ? 0 : 1;
      sent_by_completion += post_or_keep([this, token] { return say(token - 1); }) ? 1 : 0;
    };
  }
  answering_rank(const answering_rank&) = delete;
  answering_rank& operator=(const answering_rank&) = delete;
  ~answering_rank() { me_.at_message = nullptr, me_.at_completion = nullptr; }

  /// Makes the calls again that found no room.
  void go_on() {
    while (!kept_.empty() && kept_.front()() != status::retry_queue_full) kept_.pop_front();
  }
  unsigned written_by_handler = 0, sent_by_completion = 0, failed = 0;

 private:
  bool post_or_keep(std::function<status()> call) {
    if (call() != status::retry_queue_full) return true;
    kept_.push_back(std::move(call));
    return false;
  }
  status write(std::uint64_t number) {
    const local_slice here = words_at(&values_[number], 1);
    const auto there = words_in(into_, number, 1);
    const status s = me_.fabric.write(0, {&here, 1}, into_, {&there, 1}, number + 1);
    if (s == status::done) me_.on_completion(number + 1, s, 0);
    return s;
  }
  status say(std::uint64_t number) { return me_.fabric.send(0, message_kind, bytes_of(number), {}); }

  job_member& me_;
  region_key into_;
  std::vector<std::uint64_t> values_;
  std::deque<std::function<status()>> kept_;
};

}  // namespace

// Goal: a handler never waits: it posts a write, and the completion of that sends a message; both from within `poll`.
// Break: lose what is posted while poll hands something on.
TEST_CASE("contract: a handler answers by a write whose completion sends a message", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    constexpr std::uint64_t count = 500;
    std::vector<std::uint64_t> memory(count);
    const region_key key = region_of(all[0], memory);
    std::uint64_t first = 0;  // the first use of a peer, or of a region, may need an answer
    REQUIRE(write_words(all, 1, 0, words_at(&first, 1), key, words_in(key, 0, 1), 1));
    REQUIRE(all.is_over(1, 1));
    const std::size_t before = all[0].messages.size();
    answering_rank answers(all, key, count);
    std::vector<unsigned> told(count);
    bool there = true;
    all[0].at_message = [&](const job_member::message& m) {
      std::uint64_t number = count;
      std::copy(m.bytes.begin(), m.bytes.end(), reinterpret_cast<std::byte*>(&number));
      if (number < count) ++told[number];
      there = there && number < count && memory[number] == 1000 + number;
    };
    std::uint64_t asked = 0;
    CHECK(all.until([&] {
      while (asked < count && all[0].fabric.send(1, message_kind, bytes_of(asked), {}) == status::done) ++asked;
      answers.go_on();
      return all[0].messages.size() - before >= count && all.are_quiet();
    }));
    all[0].at_message = nullptr;
    CHECK(std::ranges::all_of(told, [](unsigned times) { return times == 1; }));
    CHECK(answers.written_by_handler > 0);
    CHECK(answers.sent_by_completion > 0);
    CHECK(answers.failed == 0);
    if (all.caps().write_means == fabric::write_completion::placed || all.caps().messages_after_writes) CHECK(there);
  });
}
