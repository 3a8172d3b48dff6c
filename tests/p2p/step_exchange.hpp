// SPDX-License-Identifier: Apache-2.0
/// \file
/// An exchange of messages between all ranks, in which one of them dies at a step of a protocol: short and long
/// messages, with the receive first, and with the send first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rma/rma.hpp"

namespace p2p_steps {

inline constexpr std::array<std::size_t, 4> sizes{8, 20'001, 300, 8};
inline constexpr int rounds = 2;  ///< for each order, so that rings are opened, used and their slots freed

inline std::byte byte_of(int source, int tag, std::size_t i) {
  return static_cast<std::byte>(source * 31 + tag * 7 + static_cast<int>(i % 251));
}

/// One message to or from another rank.
struct message {
  int peer, tag;
  std::vector<std::byte> data;
  rma::MessageRequest request{};
  bool failed = false;  ///< its peer has died
};

/// The messages of one rank. They stay until the end of the test: nothing may be written to those that have failed.
class exchange {
 public:
  explicit exchange(rma::Runtime& rt) : rt_(rt), world_(rt.world()), me_(rt.rank()) {}

  void run() {
    for (int round = 0; round < 2 * rounds; ++round) {
      const bool receives_first = (round + me_) % 2 == 0;
      const std::size_t before = received_.size();
      if (receives_first) post_receives(round);
      post_sends(round);
      rt_.progress();
      if (!receives_first) post_receives(round);
      for (std::size_t i = before; i < received_.size(); ++i) end_receive(received_[i]);
      for (std::size_t i = before; i < sent_.size(); ++i) end(sent_[i]);
    }
  }
  /// The first error; empty if there is none. `pause` passes time, in which the library is called.
  std::string check(const std::function<void()>& pause) {
    std::vector<std::vector<std::byte>> before;
    for (const message& m : received_) before.push_back(m.data);
    pause();
    for (std::size_t i = 0; i < received_.size(); ++i) {
      if (received_[i].data != before[i]) wrong_ += " a buffer has changed after the end of its receive;";
    }
    return wrong_;
  }
  [[nodiscard]] int failures() const noexcept { return failures_; }

 private:
  int tag_of(int round, std::size_t i) const { return round * static_cast<int>(sizes.size()) + static_cast<int>(i); }

  template <class Each>
  void for_each_message(int round, Each&& each) {
    for (int peer = 0; peer < world_.size(); ++peer) {
      for (std::size_t i = 0; i < sizes.size() && peer != me_; ++i) each(peer, tag_of(round, i), sizes[i]);
    }
  }
  void post_receives(int round) {
    for_each_message(round, [&](int peer, int tag, std::size_t bytes) {
      message& m = received_.emplace_back(message{peer, tag, std::vector<std::byte>(bytes, std::byte{0xee})});
      note(world_.try_irecv(std::span(m.data), peer, tag, m.request), m);
    });
  }
  void post_sends(int round) {
    for_each_message(round, [&](int peer, int tag, std::size_t bytes) {
      message& m = sent_.emplace_back(message{peer, tag, std::vector<std::byte>(bytes)});
      for (std::size_t i = 0; i < bytes; ++i) m.data[i] = byte_of(me_, tag, i);
      note(world_.try_isend(std::span<const std::byte>(m.data), peer, tag, m.request), m);
    });
  }
  void end(message& m) {
    if (m.request.pending()) note(m.request.wait_nothrow(), m);
  }
  void end_receive(message& m) {
    end(m);
    for (std::size_t i = 0; i < m.data.size() && !m.failed; ++i) {
      if (m.data[i] != byte_of(m.peer, m.tag, i)) return complain(m, "wrong contents");
    }
  }
  void note(rma::status s, message& m) {
    m.failed = m.failed || s == rma::status::peer_failed;
    failures_ += s == rma::status::peer_failed ? 1 : 0;
    if (s != rma::status::peer_failed && s != rma::status::done && s != rma::status::posted)
      complain(m, std::string(rma::name_of(s)));
  }
  void complain(const message& m, const std::string& what) {
    wrong_ += " message " + std::to_string(m.tag) + " with rank " + std::to_string(m.peer) + ": " + what + ";";
  }

  rma::Runtime& rt_;
  rma::Team world_;
  int me_;
  std::vector<message> received_, sent_;
  std::string wrong_;
  int failures_ = 0;
};

}  // namespace p2p_steps
