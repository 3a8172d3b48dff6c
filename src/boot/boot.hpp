// SPDX-License-Identifier: Apache-2.0
/// \file
/// A boot client reaches the other ranks before any fabric is up: rank, size, a key-value exchange,
/// a fence, an abort, and the news of deaths. Small strings only; never on a data path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rma/error.hpp"

namespace rma::boot {

inline constexpr std::string_view alone_address = "alone";
inline constexpr std::string_view pmix_address = "pmix";
inline constexpr std::string_view pmi2_address = "pmi2";
inline constexpr std::string_view introduced_address = "introduced";

/// The launcher's parameters of a rank (environment RMA_BOOT, RMA_RANK, RMA_SIZE, RMA_KEY, RMA_NODE, or a Config).
struct options {
  /// "" or "alone" (a job of one), "local://NAME" (abstract Unix socket of rmarun), "rmarun://HOST:PORT" (of rmarun on
  /// another host; only in RMA_BOOT), "tcp://HOST:PORT" (of rank 0's host), "pmix" or "pmi2" (the launcher says rank
  /// and size, and how the ranks meet), "introduced" (`from_rank_0`)
  std::string address;
  int rank = 0;
  int size = 1;
  std::string key;         ///< job key, hex; both sides prove their knowledge of it without sending it
  std::string node;        ///< virtual node name; "" means the machine itself
  int timeout_ms = 60000;  ///< the longest wait for the others, or for the job's server
  std::string interface;   ///< pmix, pmi2: where rank 0 listens, if the job has several nodes; see address_of_interface
  int peer_timeout_ms = 10000;  ///< tcp: a host that is silent for that time is presumed dead
  std::function<std::string(const std::string&)> from_rank_0{};  ///< introduced: gives all ranks what rank 0 gives
  bool one_machine = false;                                      ///< introduced: of all ranks
  bool served_by_launcher = false;                               ///< `address` is that of rmarun, on any host
  bool served_by_rank_0 = false;  ///< the job's server has been started already, in rank 0's process
};

/// One rank's connection to its job. All calls are for one thread at a time.
class client {
 public:
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  virtual ~client() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// The job's key; empty where there is none (a job of one, simulated ranks).
  [[nodiscard]] virtual std::string_view key() const noexcept { return {}; }
  /// The address by which the job's other hosts reach this one, in numbers; empty if there are none, or if it is not
  /// known.
  [[nodiscard]] virtual std::string host() const { return {}; }
  /// True if the job's server is in rank 0's process, and ends with it.
  [[nodiscard]] virtual bool rank_0_serves() const noexcept { return false; }

  /// Names of the process sets that the launcher has defined; none where it defines none. Any thread may ask. Throws
  /// Error(bad_boot) if the launcher does not answer.
  [[nodiscard]] virtual std::vector<std::string> process_sets() const { return {}; }
  /// Ranks of the members, ascending; none if the launcher knows no such set. Any thread may ask. Throws
  /// Error(not_supported) if processes of other jobs are members, Error(bad_boot) as above.
  [[nodiscard]] virtual std::vector<int> members_of(const std::string& /*set*/) const { return {}; }

  /// Publishes `value`; visible to every rank that asks for `key`, at the latest after the next fence. A second put of
  /// a key replaces the value. `bad_size` beyond key_bytes_max (4096) or value_bytes_max (1 MiB). This, get and fence:
  /// `bad_boot` after `options::timeout_ms`; then `raise_job_ended` names the missing ranks, if the job is starting.
  virtual status put(std::string_view key, std::string_view value) = 0;
  /// Waits until some rank has put `key`; asked again, a server that owes an answer since then is not waited for.
  /// `peer_failed` if it is missing and a rank died of which poll_events has not
  /// told yet (afterwards survivors can go on among themselves) or all others are gone; `bad_argument` if every rank
  /// waits, so that none can put it; `job_aborted` on abort.
  virtual status get(std::string_view key, std::string& value) = 0;
  /// Waits for all ranks. `peer_failed` if one of them is dead or has left.
  virtual status fence() = 0;
  /// Publishes this rank's next step of the start, for reports if the start hangs. `waits`: it waits for other ranks.
  virtual void begin_step(std::string_view /*what*/, bool /*waits*/ = false) noexcept {}
  /// The ranks for which the start waits, with their last steps. The last call after a failed start.
  [[nodiscard]] virtual std::string late_ranks() { return {}; }
  /// Ends the job: the launcher prints `message`, kills the rest and exits with `code` (where there is no rmarun, this
  /// prints and the others get `job_aborted`). Returns when the news is out or cannot be sent, at most 2 s later: the
  /// caller then ends its process.
  virtual void abort(int code, std::string_view message) noexcept = 0;
  /// Leaves in good order; after it the end of this process is no failure. Idempotent. Waits for the server's word
  /// (at most 5 s), never for other ranks. In tcp mode the server ends with rank 0's client: the others then work
  /// on without news of deaths. A rank that has left may join again: it takes part in the job's next round.
  virtual void finalize() noexcept = 0;
  /// Reports the death of `rank`, which this rank has seen (by its liveness word), to all ranks of the job.
  virtual void report_death(int rank) noexcept = 0;

  /// Readable when `poll_events` has news, also such as came in during another call; -1 if there never is any (a job
  /// of one). Stays the same descriptor (an epoll set, so it may be put into another) and falls silent after a loss.
  [[nodiscard]] virtual int event_fd() const noexcept = 0;
  /// Takes the news without waiting: appends ranks that died since the last call. `job_aborted` after an abort,
  /// `fabric_lost` if the connection to the job is gone (then every other rank must be presumed dead).
  virtual status poll_events(std::vector<int>& died) = 0;
  /// Appends ranks of which poll_events has heard, since the last call, that they have left in good order. None where
  /// ranks see that of each other.
  virtual void take_departures(std::vector<int>& /*left*/) {}

 protected:
  client() = default;
};

/// Joins the job and waits until all ranks have joined. Throws rma::Error with one clear line: `bad_boot` if the
/// parameters are invalid, the key is wrong, or a rank is still missing after the time-out; `peer_failed` if a
/// rank ended without joining; `job_aborted`.
std::unique_ptr<client> join(const options& how);
/// The same if `how.address` is that of a server, which is running or about to.
std::unique_ptr<client> join_served(const options& how);

/// Throws rma::Error: a call has failed by `why` while the job started, and that is all there will be of the job. Names
/// who or what has ended it, or holds it up.
[[noreturn]] void raise_job_ended(client& me, status why);

/// Parses an address of RMA_BOOT, which also names the server: "rmarun://" becomes "tcp://" and `served_by_launcher`.
void take_address(options& how);

/// Reads the launcher's parameters from the environment. Throws rma::Error(bad_boot) if they are invalid.
options options_from_environment();

}  // namespace rma::boot
