// SPDX-License-Identifier: Apache-2.0
/// \file
/// Joining a job: checks, connecting, the handshake, and waiting for all the others.
#include <poll.h>

#include <algorithm>

#include "boot/boot.hpp"
#include "boot/client_single.hpp"
#include "boot/client_socket.hpp"
#include "boot/descriptors.hpp"
#include "boot/digest.hpp"
#include "boot/introduction.hpp"

namespace rma::boot {

namespace {

constexpr std::chrono::milliseconds retry_pause_min{5};
constexpr std::chrono::milliseconds retry_pause_max{250};

Error bad_boot(const std::string& what) { return {status::bad_boot, what}; }

void check(const options& how) {
  if (how.size < 1) throw bad_boot("RMA_SIZE=" + std::to_string(how.size) + ": a job has at least one rank");
  const bool alone = how.address.empty() || how.address == alone_address;
  if (alone && how.size > 1) {
    const char* const why = how.address.empty() ? " but RMA_BOOT is not set" : " but RMA_BOOT=alone is a job of one";
    throw bad_boot("RMA_SIZE=" + std::to_string(how.size) + why +
                   ": start the program with rmarun, or set RMA_BOOT=tcp://HOST:PORT");
  }
  if (how.rank < 0 || how.rank >= how.size) {
    throw bad_boot("RMA_RANK=" + std::to_string(how.rank) + " but RMA_SIZE=" + std::to_string(how.size) +
                   ": ranks count from 0 to size - 1");
  }
  if (alone) return;
  if (const boot_address where = parse_address(how.address); !where.local && std::stoi(where.port) == 0) {
    throw bad_boot("RMA_BOOT=" + how.address + ": the others could not know port 0; give one that is free");
  }
  if (how.key.size() < key_chars_min) {
    throw bad_boot("RMA_KEY is " + std::string(how.key.empty() ? "not set" : "too short") +
                   ": every rank needs the same random key of at least " + std::to_string(key_chars_min) +
                   " characters (rmarun makes one)");
  }
}

/// One line that names the rank and its failed action.
std::string who_and_where(const options& how) {
  return "rank " + std::to_string(how.rank) + " of " + std::to_string(how.size) + " cannot join " + how.address + ": ";
}

std::string after(const options& how) {
  if (how.timeout_ms % 1000 == 0) return " after " + std::to_string(how.timeout_ms / 1000) + " s";
  return " after " + std::to_string(how.timeout_ms) + " ms";
}

/// The process that the job's server is in, in words for errors.
std::string server_process(const options& how) { return rank_0_serves(how) ? "the process of rank 0" : "rmarun"; }

/// The advice in the error when no server can be reached.
std::string remedy(const boot_address& where) {
  return where.local ? "; is the rmarun that started this job still running?"
                     : "; rank 0 must run on that host, and the port must be open";
}

unique_fd connect_until(const options& how, const boot_address& where, boot_clock::time_point deadline) {
  auto pause = retry_pause_min;
  for (;;) {
    connect_outcome outcome = connect_to(where, deadline);
    if (outcome.fd) {
      if (where.local && !peer_is_same_user(outcome.fd.get())) {
        throw bad_boot(who_and_where(how) + "that socket belongs to another user");
      }
      if (!where.local) tune(outcome.fd.get(), how.peer_timeout_ms);
      return std::move(outcome.fd);
    }
    const bool in_time = boot_clock::now() + pause < deadline;
    if (!outcome.try_again || !in_time) {
      throw bad_boot(who_and_where(how) + "nobody listens there (" + outcome.why + ")" +
                     (outcome.try_again ? after(how) : "") + remedy(where));
    }
    (void)::poll(nullptr, 0, static_cast<int>(pause.count()));
    pause = std::min(pause * 2, retry_pause_max);
  }
}

/// The frame that the handshake wants next. False if the connection was cut, which may happen to a slow rank when
/// many come at once: it may try again.
bool expect(frame_link& at, message wanted, frame& got, const options& how, boot_clock::time_point deadline) {
  switch (at.next(got, deadline)) {
    case frame_link::result::ready: break;
    case frame_link::result::closed: return false;
    case frame_link::result::timed_out:
      throw bad_boot(who_and_where(how) + "it accepted the connection, but did not answer" + after(how) + "; is " +
                     server_process(how) + " stopped, or out of descriptors (ulimit -n)?");
    case frame_link::result::garbage:
      throw bad_boot(who_and_where(how) + "what listens there does not speak rma's protocol");
  }
  if (got.type == message::rejected) {
    throw bad_boot(who_and_where(how) + one_line(body_reader(got.body).text()));
  }
  if (got.type != wanted) throw bad_boot(who_and_where(how) + "what listens there does not follow rma's protocol");
  return true;
}

/// False if the connection was cut.
bool shake_hands(frame_link& at, const options& how, boot_clock::time_point deadline) {
  transcript seen{.rank = static_cast<std::uint32_t>(how.rank),
                  .size = static_cast<std::uint32_t>(how.size),
                  .client_nonce = random_digest(),
                  .server_nonce = {}};
  frame got;
  const std::string hello = frame_writer(message::hello)
                                .text(hello_magic)
                                .u32(seen.rank)
                                .u32(seen.size)
                                .raw(bytes_of(seen.client_nonce))
                                .finish();
  if (at.send(hello, deadline) == frame_link::result::closed) return false;
  if (!expect(at, message::challenge, got, how, deadline)) return false;
  if (got.body.size() != digest_bytes) throw bad_boot(who_and_where(how) + "the challenge has the wrong length");
  std::copy(got.body.begin(), got.body.end(), seen.server_nonce.begin());
  const digest proof = prove(how.key, prover::client, seen);
  if (at.send(frame_writer(message::proof).raw(bytes_of(proof)).finish(), deadline) == frame_link::result::closed) {
    return false;
  }
  if (!expect(at, message::accepted, got, how, deadline)) return false;
  if (!equal(prove(how.key, prover::server, seen), got.body)) {
    throw bad_boot(who_and_where(how) + "what listens there does not know the job key");
  }
  return true;
}

frame_link connect_and_greet(const options& how, const boot_address& where, boot_clock::time_point deadline) {
  for (;;) {
    frame_link made(connect_until(how, where, deadline), member_frame_bytes_max);
    if (shake_hands(made, how, deadline)) return made;
    if (boot_clock::now() >= deadline) throw bad_boot(who_and_where(how) + "it cut every connection" + after(how));
    (void)::poll(nullptr, 0, static_cast<int>(retry_pause_min.count()));
  }
}

/// The address of rank 0's own server: what the name in RMA_BOOT stands for here may be of no use elsewhere (Debian's
/// /etc/hosts).
std::string where_it_listens(const server* hosted) {
  if (hosted == nullptr) return {};
  const std::string bound = hosted->bound();
  const bool is_loopback = bound.starts_with("127.") || bound == "::1";
  return " Rank 0 listens at " + bound +
         (is_loopback ? ", a loopback address, which no other host reaches: give RMA_BOOT another one of this host"
                      : "");
}

[[noreturn]] void give_up_waiting(frame_link& at, const options& how, const server* hosted) {
  const auto deadline = boot_clock::now() + ask_patience;
  std::string who;
  frame got;
  if (at.send(bare_frame(message::ask_late), deadline) == frame_link::result::ready) {
    while (who.empty() && at.next(got, deadline) == frame_link::result::ready) {
      if (got.type == message::late) who = one_line(body_reader(got.body).text());
    }
  }
  if (who.empty()) {
    throw bad_boot("rank " + std::to_string(how.rank) + " joined " + how.address + ", but" + after(how) +
                   " the job's server does not answer; is " + server_process(how) + " stopped?");
  }
  throw bad_boot("rank " + std::to_string(how.rank) + " joined " + how.address + ", but" + after(how) +
                 " these ranks of " + std::to_string(how.size) + " have not: " + who +
                 (rank_0_serves(how) ? "; have they been started, with this RMA_BOOT?"
                                     : "; do they make a Runtime, or are those processes stopped?") +
                 where_it_listens(hosted));
}

/// False if the server was that of a job before this one, which ends.
bool wait_for_all(frame_link& at, const options& how, const server* hosted, boot_clock::time_point deadline) {
  frame got;
  switch (at.next(got, deadline)) {
    case frame_link::result::ready: break;
    case frame_link::result::timed_out: give_up_waiting(at, how, hosted);
    default: throw bad_boot(who_and_where(how) + "the job's server went away while waiting for the other ranks");
  }
  body_reader body(got.body);
  if (got.type == message::ready) return true;
  if (got.type == message::died) {
    const auto rank = static_cast<int>(body.u32());
    throw Error(status::peer_failed,
                who_and_where(how) + "rank " + std::to_string(rank) + " ended before all had joined", rank);
  }
  if (got.type == message::aborted) {
    const auto rank = static_cast<int>(body.u32());
    (void)body.u32();
    throw Error(status::job_aborted,
                who_and_where(how) + "rank " + std::to_string(rank) + " aborted the job: " + one_line(body.text()),
                rank);
  }
  if (got.type == message::closing && body.u32() != 0) return false;
  throw bad_boot(who_and_where(how) + "the job's server went away while waiting for the other ranks");
}

/// Connects to the job. If several jobs use one address in turn, a rank may come while rank 0 still ends the one
/// before: then its connection is closed, and it tries again.
frame_link enter(const options& how, const boot_address& where, const server* hosted, boot_clock::time_point deadline) {
  for (;;) {
    frame_link connected = connect_and_greet(how, where, deadline);
    if (wait_for_all(connected, how, hosted, deadline)) return connected;
    (void)::poll(nullptr, 0, static_cast<int>(retry_pause_min.count()));
  }
}

}  // namespace

void raise_job_ended(client& me, status why) {
  std::vector<int> died;
  (void)me.poll_events(died);
  const int who = died.empty() ? -1 : died.front();
  const std::string code = " (" + std::string(name_of(why)) + ")";
  if (why == status::peer_failed) {
    throw Error(why,
                (who < 0 ? "another rank" : "rank " + std::to_string(who)) + " ended while the job started" + code +
                    "; see what it has said",
                who);
  }
  if (why == status::bad_boot) {
    throw Error(why, "rank " + std::to_string(me.rank()) + " of " + std::to_string(me.size()) +
                         ": the job's start has not gone on for RMA_BOOT_TIMEOUT_MS; it waits for " + me.late_ranks() +
                         "; is that process stopped, or does it hang?");
  }
  if (why == status::fabric_lost) {
    throw Error(why, std::string("the job's server, in ") + (me.rank_0_serves() ? "the process of rank 0" : "rmarun") +
                         ", ended while the job started" + code + "; see what it has said");
  }
  throw Error(why, "the job ended while it started" + code);
}

std::unique_ptr<client> join(const options& how) {
  if (how.address == pmix_address) return join_introduced(introduce_by_pmix(), how);
  if (how.address == pmi2_address) return join_introduced(introduce_by_pmi2(), how);
  if (how.address == introduced_address) return join_introduced(introduce_by_program(how), how);
  check(how);
  if (how.address.empty() || how.address == alone_address) return std::make_unique<single_client>();
  return join_served(how);
}

std::unique_ptr<client> join_served(const options& how) {
  const auto deadline = boot_clock::now() + std::chrono::milliseconds(how.timeout_ms);
  boot_address where = parse_address(how.address);
  std::unique_ptr<server> hosted;
  if (!where.local && how.rank == 0 && !how.served_by_rank_0 && !how.served_by_launcher) {
    allow_connections(how.size);
    hosted = std::make_unique<server>(server_options{
        .size = how.size, .key = how.key, .address = how.address, .peer_timeout_ms = how.peer_timeout_ms});
    hosted->start();
  }
  frame_link connected = enter(how, where, hosted.get(), deadline);
  return std::make_unique<socket_client>(how, std::move(connected), std::move(hosted));
}

}  // namespace rma::boot
