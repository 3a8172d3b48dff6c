// SPDX-License-Identifier: Apache-2.0
/// \file
/// Frames of one connection are understood here: the handshake, then requests that go to the rank's round.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "boot/server_connection.hpp"

namespace rma::boot {

void server::on_frame(connection& from, const frame& received) {
  switch (from.now) {
    case connection::phase::expects_hello: return on_hello(from, received);
    case connection::phase::expects_proof: return on_proof(from, received);
    case connection::phase::member: return on_member_frame(from, received);
    case connection::phase::parting: return;
  }
}

void server::on_hello(connection& from, const frame& received) {
  body_reader body(received.body);
  const bool speaks_this = body.text() == hello_magic;
  from.seen.rank = body.u32();
  from.seen.size = body.u32();
  const std::string_view nonce = body.raw(digest_bytes);
  if (received.type != message::hello || !speaks_this || !body.complete()) {
    from.doomed = true;
    return;
  }
  std::memcpy(from.seen.client_nonce.data(), nonce.data(), digest_bytes);
  from.seen.server_nonce = random_digest();
  from.out += frame_writer(message::challenge).raw(bytes_of(from.seen.server_nonce)).finish();
  from.now = connection::phase::expects_proof;
}

void server::on_proof(connection& from, const frame& received) {
  if (received.type != message::proof || received.body.size() != digest_bytes) {
    from.doomed = true;
    return;
  }
  if (!equal(prove(key_, prover::client, from.seen), received.body)) {
    return reject(from, "the job key is wrong; RMA_KEY must be the one that this job was started with");
  }
  const auto size = static_cast<std::uint32_t>(size_);
  if (from.seen.size != size) {
    return reject(from, "RMA_SIZE=" + std::to_string(from.seen.size) + ", but this job has " + std::to_string(size_) +
                            " ranks; give every rank the same RMA_SIZE");
  }
  if (from.seen.rank >= size) return reject(from, "RMA_RANK is not below RMA_SIZE");
  admit(from);
}

void server::reject(connection& whom, const std::string& why) {
  whom.out += frame_writer(message::rejected).text(why).finish();
  whom.now = connection::phase::parting;
}

void server::admit(connection& newcomer) {
  const auto rank = static_cast<int>(newcomer.seen.rank);
  const std::size_t number = next_round_[newcomer.seen.rank];
  seated_round& seated = round_at(number);
  switch (seated.logic.state(rank)) {
    case rank_state::absent: break;
    case rank_state::dead: return reject(newcomer, "this rank is known to be dead; a rank cannot be replaced");
    case rank_state::joined:
    case rank_state::left:
      return reject(
          newcomer,
          "rank " + std::to_string(rank) +
              " has joined already: this process, by a Runtime that still lives (one at a time for each rank), "
              "or another process (give every process its own RMA_RANK)");
  }
  newcomer.rank = rank;
  newcomer.round_number = number;
  newcomer.now = connection::phase::member;
  newcomer.in.set_frame_bytes_max(member_frame_bytes_max);
  newcomer.out += frame_writer(message::accepted).raw(bytes_of(prove(key_, prover::server, newcomer.seen))).finish();
  seated.members[newcomer.seen.rank] = &newcomer;
  seated.logic.join(rank);
}

void server::unseat(connection& leaver) {
  round_at(leaver.round_number).members[static_cast<std::size_t>(leaver.rank)] = nullptr;
  leaver.now = connection::phase::parting;
  leaver.deadline = boot_clock::now() + handshake_timeout_;
}

void server::on_member_frame(connection& from, const frame& received) {
  if (received.type == message::abort) return on_abort(from, received);
  if (received.type == message::report_death) {
    body_reader body(received.body);
    const std::uint32_t rank = body.u32();
    if (!body.complete() || rank >= static_cast<std::uint32_t>(size_)) {
      from.doomed = true;
      return;
    }
    return death_of(static_cast<int>(rank));
  }
  if (!round_at(from.round_number).logic.handle(from.rank, received)) {
    from.doomed = true;
    return;
  }
  if (received.type == message::finalize) {
    ++next_round_[static_cast<std::size_t>(from.rank)];
    unseat(from);
  }
}

void server::on_abort(const connection& from, const frame& received) {
  body_reader body(received.body);
  const std::uint32_t code = body.u32();
  const std::string text = one_line(body.text());
  if (aborted_) return;
  aborted_ = abort_news{.rank = from.rank, .code = static_cast<int>(code), .message = text};
  const std::string news =
      frame_writer(message::aborted).u32(static_cast<std::uint32_t>(from.rank)).u32(code).text(text).finish();
  for (const auto& [number, seated] : rounds_) seated->logic.broadcast(news);
  const std::uint64_t one = 1;
  (void)!::write(abort_event_.get(), &one, sizeof one);
}

server::seated_round& server::round_at(std::size_t number) {
  auto& slot = rounds_[number];
  if (slot == nullptr) {
    slot = std::make_unique<seated_round>(size_);
    for (int rank = 0; rank < size_; ++rank) {
      if (ended_[static_cast<std::size_t>(rank)]) slot->logic.die(rank);
    }
  }
  return *slot;
}

void server::forget_old_rounds() {
  std::erase_if(rounds_, [](const auto& entry) {
    const auto& members = entry.second->members;
    return entry.second->logic.over() &&
           std::all_of(members.begin(), members.end(), [](const connection* at) { return at == nullptr; });
  });
}

/// A rank that has left all its rounds has not died; but it will not come back either.
void server::death_of(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (ended_[at]) return;
  ended_[at] = true;
  bool died = next_round_[at] == 0;
  for (const auto& [number, seated] : rounds_) {
    died = died || seated->logic.state(rank) == rank_state::joined;
    seated->logic.die(rank);
    if (seated->members[at] != nullptr) seated->members[at]->doomed = true;
  }
  if (died) deaths_.push_back(rank);
}

void server::mark_dead(int rank) {
  {
    const std::lock_guard lock(mutex_);
    death_of(rank);
  }
  wake_loop();
}

rank_state server::state(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(rank);
  for (const auto& [number, seated] : rounds_) {
    if (seated->logic.state(rank) == rank_state::joined) return rank_state::joined;
  }
  if (std::find(deaths_.begin(), deaths_.end(), rank) != deaths_.end()) return rank_state::dead;
  return next_round_[at] > 0 ? rank_state::left : rank_state::absent;
}

std::string server::where(int rank) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, seated] : rounds_) {
    if (seated->logic.state(rank) == rank_state::joined) return seated->logic.where(rank);
  }
  return next_round_[static_cast<std::size_t>(rank)] > 0 ? "has left the job" : "has not joined the job";
}

std::vector<int> server::deaths() const {
  const std::lock_guard lock(mutex_);
  return deaths_;
}

std::optional<abort_news> server::aborted() const {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

}  // namespace rma::boot
