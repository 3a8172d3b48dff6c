// SPDX-License-Identifier: Apache-2.0
#include "core/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/names.hpp"

extern char** environ;  // NOLINT: POSIX

namespace rma::detail {
namespace {

enum class form : std::uint8_t { words, number, bytes, text, lock };

struct definition {
  std::string_view name;
  std::string_view initial;
  form kind;
  std::string_view choices;  ///< words: separated by '|'
  std::string_view summary;
  std::uint64_t least = 0;  ///< number, bytes: the smallest usable value
  std::uint64_t most = UINT64_MAX;
  bool internal = false;  ///< set by launchers or tests, see Setting::internal
};

constexpr std::uint64_t int_most = INT_MAX;
constexpr std::uint64_t spin_us_most = 1'000'000'000'000;  // 100 times as many nanoseconds are a number as well
constexpr std::uint64_t address_space_most = std::uint64_t{1} << 47;  // limit of a process's addresses

constexpr definition table[] = {
    {"RMA_BOOT", "", form::text, "local://NAME, tcp://HOST:PORT, rmarun://HOST:PORT, pmix, pmi2, alone",
     "where the ranks of the job meet; empty: by PMIx if its launcher started this process, else a job of one rank"},
    {"RMA_RANK", "0", form::number, "0 ... RMA_SIZE-1", "number of this rank", 0, int_most},
    {"RMA_SIZE", "1", form::number, "1 ...", "number of ranks", 1, int_most},
    {"RMA_KEY", "", form::text, "at least 16 characters", "job key that all ranks share, and nobody else"},
    {"RMA_NODE", "", form::text, "any text", "virtual node; ranks of different ones do not share memory"},
    {"RMA_BOOT_TIMEOUT_MS", "60000", form::number, "milliseconds",
     "the longest wait in the start for other ranks, and at any time for the job's server", 1, int_most},
    {"RMA_BOOT_INTERFACE", "", form::text, "name or address; empty: what the host's name stands for",
     "where rank 0 listens for the others, if a PMIx launcher started a job on several nodes"},
    {"RMA_PEER_TIMEOUT_MS", "10000", form::number, "milliseconds, 1000 ...",
     "between nodes: the ranks of a host that is silent for so long are taken for dead", 1000, int_most},
    {"RMA_LOCAL_RANKS", "0", form::number, "0: ask the node", "ranks on this machine at least, set by the launcher", 0,
     int_most, true},
    {"RMA_CORE_GROUP", "0", form::number, "0: not bound, or not known; 1 ...",
     "cores of one cache or socket to which this rank is bound, set by rmarun --bind core: collectives in memory cross "
     "to others by one rank of each group",
     0, int_most, true},
    {"RMA_JOB", "", form::text, "any text", "name of the job, set by the launcher", 0, UINT64_MAX, true},
    {"RMA_PROCESS_SETS", "", form::text, "NAME=RANKS;NAME=RANKS, as in io=0-3,5;rest=4,6-63",
     "named sets of ranks, for Runtime::team_of; set by rmarun --pset"},
    {"RMA_SEGMENT_BYTES", "0", form::bytes, "bytes, K M G T; 0: as much as the machine has",
     "address space kept for one rank's library windows; memory is taken only when allocated", 0, address_space_most},
    {"RMA_HUGE_PAGES", "on", form::words, "on|off",
     "library windows of 1 MiB and more lie in huge pages, where the kernel has some (Linux 6.1)"},
    {"RMA_FABRIC", "auto", form::words, "auto|shm|verbs|ucx|tcp|sim",
     "what leads to ranks whose memory is not shared: auto takes RDMA verbs if every rank has a device, else UCX if it "
     "has a network besides TCP everywhere, else TCP; sim: a simulated job has its adapters also on one node"},
    {"RMA_DEVICE", "", form::text, "name[:port[:gid index]]; empty: the first that works",
     "RDMA device, see ibv_devices"},
    {"RMA_REGISTRATION_CACHE_BYTES", "1G", form::bytes, "bytes, K M G T; 0: none",
     "memory of the program that stays registered with the RDMA device for the next transfer"},
    {"RMA_THREADS", "serialized", form::words, "single|funneled|serialized|multiple",
     "which threads may call: the only one; the one that made the runtime; any, each window by one at a time; any at "
     "once"},
    {"RMA_PROGRESS_THREAD", "auto", form::words, "auto|0|1|yielding",
     "a thread that serves others while this rank computes; yielding: only while no call of the rank waits in the "
     "library or communicates; auto: such a thread where the fabric between nodes, its accumulates or its lock "
     "managers need the target's processor"},
    {"RMA_SPIN_US", "20", form::number, "microseconds",
     "how long a wait spins before it sleeps, when cores suffice; between nodes up to 100 times as long while its "
     "sleeps are short",
     0, spin_us_most},
    {"RMA_STALL_REPORT_S", "60", form::number, "seconds; 0: never",
     "a rank that waits for so long in one call prints where the ranks of its node are; again after twice the time", 0,
     1'000'000'000},
    {"RMA_LOG", "warn", form::words, "error|warn|info|debug",
     "what a rank prints beside errors: warn, what makes a program slow and is easily mended; info, what was chosen "
     "when the job started; debug, also each window"},
    {"RMA_COUNTERS", "0", form::words, "0|1",
     "a rank prints its counters that are not 0 when its Runtime ends; docs/guide/measuring.md says what each counts"},
    {"RMA_INTRANODE", "on", form::words, "on|off",
     "off: no plain memory between ranks, everything through the fabric's calls"},
    {"RMA_PROMOTE", "0", form::words, "0|1", "user memory of windows is copied into shared pages, where safe"},
    {"RMA_USER_MEMORY", "auto", form::words, "auto|handler|shared|staged|cma",
     "protocol for put and get to user memory of another process; shared and staged: of what fits no message, 4 KiB; "
     "auto: in messages up to 1 KiB, then by what has been the fastest at that size"},
    {"RMA_LAYOUT", "auto", form::words, "auto|generic|multi-w|write-gather|read-scatter|sgrs|host-assisted",
     "scheme of puts and gets with layouts between nodes, where the window's hints do not say: generic packs into "
     "messages, multi-w writes each piece by itself, write-gather and read-scatter move many pieces of the origin by "
     "one request where the target's memory is in one piece, sgrs sends lists of pieces into lists of pieces, "
     "host-assisted does so with the help of the target's progress thread; auto: whatever is expected to take less"},
    {"RMA_LAYOUT_CACHE", "256", form::number, "layouts; 0: none is kept",
     "layouts that a rank keeps of what others have described to it, so that they are named by a number after that", 0,
     1'000'000},
    {"RMA_SCHEDULE", "in-order", form::words, "in-order|interleave|gets-first|gets-first+interleave",
     "order in which operations of an epoch on memory that is not mapped are issued, where the window's hints do not "
     "say: in-order at once; the others hold them until a call that completes them, and issue puts and gets in turn, "
     "gets before the rest, or both"},
    {"RMA_AGGREGATE", "off", form::words, "off|BYTES",
     "operations of at most so many bytes on memory that is not mapped wait for the end of their epoch, and go there "
     "in as few messages as they fit in, with the end if that is a message (complete, fence def, unlock by a lock "
     "manager); larger ones go at once"},
    {"RMA_WAITING_OPERATIONS", "4000000", form::number, "1 ...",
     "so many operations of a rank wait at the origin while a network has no room for them, 192 bytes and a small "
     "value "
     "each; the next one waits in its call",
     1, UINT32_MAX},
    {"RMA_TUNING", "", form::text, "a file that rma-tune has written; empty: built-in figures",
     "what transfers between nodes, or messages in memory, cost on this machine, for the choice among schemes and "
     "among algorithms of collectives (between nodes by rank 0's figures)"},
    {"RMA_ACCUMULATE", "auto", form::words, "auto|element|striped|striped:unbiased|handler|direct|lock-get-modify-put",
     "what makes atomic operations atomic, where the window's hints do not say: locked instructions, a lock for each "
     "stripe (unbiased: also for single elements before anybody has updated in bulk), the target's handler, the "
     "network device (direct), or their origin under a lock of the target's part by "
     "the network's atomics"},
    {"RMA_FENCE", "auto", form::words, "auto|placed|def|imm-naive|imm-opt|imm-ri|imm-ri:barrier",
     "design of fences, where the window's hints do not say; imm-ri leaves the barrier of the paper's design out where "
     "the completion of a write says that it is in memory, imm-ri:barrier does not"},
    {"RMA_BARRIER", "auto", form::words, "auto|messages|words",
     "how ranks of different nodes tell each other in barriers and plain fences: words are written into memory that "
     "the other looks at, where the fabric can (verbs); auto: where it seldom sleeps meanwhile, else messages"},
    {"RMA_EAGER", "auto", form::words, "auto|send-recv|rdma-ring|rdma-ring:immediate",
     "how short messages (send, recv, collectives) go between nodes: rdma-ring writes them into a ring at the "
     "receiver, "
     "for as many senders as RMA_RING_PEERS says; the receiver looks at the ring, or with immediate, and where the "
     "fabric does not promise that the last byte is placed last, each write carries an immediate; auto: send-recv"},
    {"RMA_EAGER_BYTES", "4096", form::bytes, "bytes, K M G T; at most what fits one message of the fabric",
     "longest message (send, recv) that goes before its receive is known; longer ones are announced, and wait for it; "
     "unless it is set, 32K where the fabric moves all data by messages (tcp)",
     0, UINT32_MAX},
    {"RMA_EAGER_MEMORY", "256K", form::bytes, "bytes, K M G T",
     "memory that a rank holds for messages of one other rank that no receive has asked for yet; what finds no room "
     "there stays with its sender",
     16384, 2097088},
    {"RMA_RING_PEERS", "16", form::number, "0 ...", "senders that a rank looks at a ring of, see RMA_RING_SET", 0,
     4096},
    {"RMA_RING_SLOTS", "32", form::number, "2 ...", "messages that one ring holds, of 2 KiB at most", 2, 1024},
    {"RMA_RING_SET", "first", form::words, "first|traffic|hint",
     "which senders have a ring: the first from which messages come; those from which most come, where a new one takes "
     "another one's place when it has sent twice as much; those that a persistent receive (recv_init) has named"},
    {"RMA_RING_ORDER", "circular", form::words, "circular|sequential|priority",
     "in which order a rank looks at its rings: each is first in turn; always the same; the busiest first"},
    {"RMA_SEND_COPY_BYTES", "0", form::bytes, "bytes, K M G T",
     "announced messages (send) of at most this size leave from a copy, so that the call does not wait for a receive; "
     "64 "
     "at a time, others wait",
     0, UINT32_MAX},
    {"RMA_RENDEZVOUS", "auto", form::words, "auto|stream|rput|getcqe|get|putnr|put|sgrs",
     "how the data of announced messages come: rput, the sender writes; getcqe, the receiver reads; get, and sees the "
     "end by the last byte; putnr and put, the receiver asks first and sees the end of the write so; stream, in "
     "messages; sgrs, by sends of lists of pieces into receives of lists of pieces, as data with layouts go where that "
     "is expected to cost less than copies. Where a fabric cannot do what reads, it is getcqe, and rput for what "
     "writes: "
     "rank 0 prints a line that says why. What no fabric reaches comes by stream"},
    {"RMA_POLLED_END", "auto", form::words, "auto|assume",
     "assume: the last byte of a transfer comes last, also where the network (verbs) does not promise it"},
    {"RMA_COLL_BARRIER", "auto", form::words,
     "auto|dissemination|linear|binomial|recursive-doubling|hierarchical|one-sided",
     "algorithm of barriers; auto: flags in memory, or dissemination, for blocking ones, else the least that is "
     "expected from the network's costs; one-sided, here and below: its messages are puts with a signal into memory "
     "that the receiver keeps for them, without matching, where the fabric writes without the target's processor"},
    {"RMA_COLL_BROADCAST", "auto", form::words,
     "auto|release-gather|tree|binomial|linear|scatter-allgather|chain|hierarchical|one-sided",
     "algorithm of broadcasts; auto: the least that is expected from the network's costs"},
    {"RMA_COLL_REDUCE", "auto", form::words,
     "auto|release-gather|tree|binomial|linear|rabenseifner|hierarchical|one-sided",
     "algorithm of reductions to a root; auto: the least that is expected from the network's costs"},
    {"RMA_COLL_ALLREDUCE", "auto", form::words,
     "auto|flat|direct|tree|recursive-doubling|linear|binomial|ring|rabenseifner|circulant|hierarchical|one-sided",
     "algorithm of reductions for all; auto: the least that is expected from the network's costs"},
    {"RMA_COLL_REDUCE_SCATTER", "auto", form::words, "auto|pairwise|linear|ring|recursive-halving|circulant|one-sided",
     "algorithm of reductions of which each rank gets a block; auto: the least that is expected from the network's "
     "costs"},
    {"RMA_COLL_SCAN", "auto", form::words, "auto|recursive-doubling|linear|one-sided",
     "algorithm of prefix reductions; auto: the least that is expected from the network's costs"},
    {"RMA_COLL_EXSCAN", "auto", form::words, "auto|recursive-doubling|linear|one-sided",
     "algorithm of prefix reductions without the rank's own part; auto: the least that is expected from the network's "
     "costs"},
    {"RMA_COLL_GATHER", "auto", form::words, "auto|release-gather|linear|binomial|one-sided",
     "algorithm of gathers to a root; auto: the least that is expected from the network's costs"},
    {"RMA_COLL_SCATTER", "auto", form::words, "auto|release-gather|linear|binomial|one-sided",
     "algorithm of scatters from a root; auto: the least that is expected from the network's costs"},
    {"RMA_COLL_ALLGATHER", "auto", form::words, "auto|flat|ring|linear|bruck|recursive-doubling|circulant|one-sided",
     "algorithm of gathers for all, and from neighbors (linear, one-sided); auto: the least that is expected from the "
     "network's costs"},
    {"RMA_COLL_ALLTOALL", "auto", form::words, "auto|flat|pairwise|linear|bruck|one-sided",
     "algorithm of exchanges of all with all, and of neighbors (linear, one-sided); auto: the least that is expected "
     "from "
     "the network's costs"},
    {"RMA_COLL_REPRODUCIBLE", "0", form::words, "0|1",
     "reductions combine by one tree over the team's ranks: the same bits whatever the algorithm and the nodes; what "
     "teams begin with (Team::set_reproducible)"},
    {"RMA_NBC_PROGRESS", "none", form::words, "none|test-on-init|wait-on-send|start-all|thread",
     "what the start of a non-blocking collective does beside: looks once for what has come; waits a little for each "
     "of "
     "its sends, or once for all of them; thread: nothing, a progress thread moves it on"},
    {"RMA_LOCK", "auto", form::lock,
     "auto|auto:deferred|two-sided|two-sided:deferred|network|network:agent|network:fompi|cpu|hybrid|hybrid:naive|"
     "hybrid:threshold:K|hybrid:adaptive|hybrid:pattern|hybrid:priority|hybrid:native|hybrid:home=network, and hybrid "
     "with several options",
     "protocol of window locks, where the window's hints do not say: auto takes cpu where memory is shared, else for "
     "each epoch what has cost least; deferred: a lock may be taken after lock() has returned, as late as by unlock; "
     "network has a word for each target; with agent shared locks are counted by the target's lock manager; with fompi "
     "lock_all is one atomic of a global word, an exclusive lock four; a hybrid lock migrates at every request of the "
     "other side (naive), at K in a row, when that pays (adaptive, the default), at six of the last eight (pattern), "
     "at "
     "exclusive ones (priority), or as adaptive where the adapter does the atomics, else never (native); it begins in "
     "the memory of the "
     "target's node or in the network (home)"},
    {"RMA_LOCK_BYPASSES", "64", form::number, "1 ...; 0: at once, in no order",
     "lock cpu: so often others may take it past a rank that sleeps for it, before it is handed over to that rank", 0,
     UINT32_MAX, true},
    {"RMA_LOCK_RECOVERY", "on", form::words, "on|off",
     "a dead rank's lock: on frees it after its waiters got peer_failed, off keeps failing"},
    {"RMA_CHECK", RMA_CHECK_BY_DEFAULT, form::words, "0|1",
     "no operation is inlined, so that lock, start and post in a fence epoch that was used, and fence(no_precede) "
     "behind "
     "an operation, are also reported (wrong_epoch) on one node; a debug build of the library checks unless this says "
     "not "
     "to"},
    {"RMA_TRACE", "", form::text, "file name, %r is the rank; without %r the rank is appended",
     "one Chrome/Perfetto trace per rank: every call on a window, every operation to its end, the protocol chosen and "
     "why; slows everything down"},
    {"RMA_TRACE_BYTES", "256M", form::bytes, "bytes, K M G T", "the most that one rank's trace takes; then it ends",
     65536, UINT64_MAX},
    {"RMA_TRACE_CALLS", "", form::text, "names separated by commas, as in put,flush,barrier; empty: all",
     "which calls and operations the trace has; regions of the program are always in it, arrows of messages and of "
     "signals where message and signal are named"},
    {"RMA_MPI_EXPLAIN", "0", form::words, "0|1",
     "under rma-mpi: rank 0 prints which windows of an MPI program are taken over, and which are left to MPI and why"},
};
static_assert(std::size(table) == static_cast<std::size_t>(knob::count_));

/// The names of settings::source.
constexpr const char* origin_names[] = {"default", "environment", "config"};

[[noreturn]] void reject(const definition& d, std::string_view value, std::string_view origin) {
  std::string range;
  if (d.kind == form::number || d.kind == form::bytes) range = fmt::format(" ({} to {})", d.least, d.most);
  throw Error(status::bad_setting, fmt::format("{}={} ({}) is not a value of this setting; valid: {}{}", d.name,
                                               printable(value), origin, d.choices, range));
}

bool parse_number(std::string_view text, bool units, std::uint64_t& number);

/// A choice NAME:K takes a number, from 1 on; BYTES is one, perhaps with a unit.
bool is_choice(std::string_view choice, std::string_view value, std::uint64_t& number) {
  if (choice == value) return true;
  if (choice == "BYTES") return parse_number(value, true, number);
  if (!choice.ends_with(":K") || !value.starts_with(choice.substr(0, choice.size() - 1))) return false;
  value.remove_prefix(choice.size() - 1);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc{} && end == value.data() + value.size() && number != 0 && number <= UINT32_MAX;
}

bool one_of(std::string_view choices, std::string_view value, std::uint64_t& number) {
  while (!choices.empty()) {
    const auto cut = choices.find('|');
    if (is_choice(choices.substr(0, cut), value, number)) return true;
    if (cut == std::string_view::npos) break;
    choices.remove_prefix(cut + 1);
  }
  return false;
}

bool parse_number(std::string_view text, bool units, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.empty()) return true;
  if (!units || rest.size() != 1) return false;
  const auto power = std::string_view("KMGT").find(rest[0]);
  if (power == std::string_view::npos) return false;
  const unsigned shift = 10U * static_cast<unsigned>(power + 1);
  if (number > (UINT64_MAX >> shift)) return false;
  number <<= shift;
  return true;
}

std::size_t index_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(table); ++i) {
    if (table[i].name == name) return i;
  }
  return std::size(table);
}

/// Single characters to insert, remove or replace until `a` is `b`.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// Settings of earlier versions.
constexpr std::pair<std::string_view, std::string_view> replaced[] = {
    {"RMA_ACCUMULATE_MODE", "RMA_ACCUMULATE, where device is called direct"},
    {"RMA_STRIPE_BIAS", "RMA_ACCUMULATE: say striped:unbiased where this was off"},
    {"RMA_LOCK_NETWORK", "RMA_LOCK: say network:agent or network:fompi there"},
    {"RMA_LOCK_HOME", "RMA_LOCK: say hybrid:home=cpu or hybrid:home=network there"},
    {"RMA_LOCK_POLICY", "RMA_LOCK: say hybrid:naive, hybrid:threshold:K or hybrid:adaptive there"},
};

/// Names the setting that `name` is nearly, if there is one; else all of them.
[[noreturn]] void refuse_unknown(std::string_view name, std::string_view origin) {
  for (const auto& [old, by] : replaced) {
    if (name == old) throw Error(status::bad_setting, fmt::format("{} ({}) was replaced by {}", name, origin, by));
  }
  constexpr std::size_t edits_max = 2;
  const definition* nearest = nullptr;
  std::size_t least = edits_max + 1;
  std::string known;
  for (const auto& d : table) {
    known += fmt::format("{}{}", known.empty() ? "" : " ", d.name);
    if (const std::size_t edits = edits_between(name, d.name); edits < least) least = edits, nearest = &d;
  }
  throw Error(status::bad_setting, fmt::format("{} ({}) is not a setting; {} (see rma-info)", printable(name), origin,
                                               nearest != nullptr ? fmt::format("did you mean {}?", nearest->name)
                                                                  : fmt::format("the settings are: {}", known)));
}

}  // namespace

settings::settings(const Config& config) : from_rank_0_(config.from_rank_0), one_machine_(config.one_machine) {
  for (std::size_t i = 0; i < std::size(table); ++i) set(i, std::string(table[i].initial), source::initial);
  if (config.environment) {
    for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
      const std::string_view pair(*e);
      if (!pair.starts_with("RMA_")) continue;
      const auto cut = pair.find('=');
      const auto index = index_of(pair.substr(0, cut));
      if (index == std::size(table)) refuse_unknown(pair.substr(0, cut), "environment");
      set(index, std::string(pair.substr(cut + 1)), source::environment);
    }
  }
  for (const auto& [name, value] : config.settings) {
    const auto index = index_of(name);
    if (index == std::size(table)) refuse_unknown(name, "config");
    set(index, value, source::config);
  }
  const auto at = [](knob k) { return static_cast<std::size_t>(k); };
  if (!config.boot.empty()) set(at(knob::boot), config.boot, source::config);
  if (!config.key.empty()) set(at(knob::key), config.key, source::config);
  if (!config.node.empty()) set(at(knob::node), config.node, source::config);
  if (config.threads) set(at(knob::threads), std::string(name_of(*config.threads)), source::config);
  if (config.rank != -1) set(at(knob::rank), std::to_string(config.rank), source::config);
  if (config.size != -1) set(at(knob::size), std::to_string(config.size), source::config);
  if (from_rank_0_ && config.boot.empty()) {
    set(at(knob::boot), "introduced", source::config);
  } else if (config.environment) {
    take_launcher();
  }
}

// A launcher's rank, unless somebody else has said what it is. PMI-2 has to be asked for: MPI may be using it.
void settings::take_launcher() {
  const auto is_set = [&](knob k) { return sources_[static_cast<std::size_t>(k)] != source::initial; };
  const bool by_pmix = std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr;
  if (by_pmix && !is_set(knob::boot) && !is_set(knob::rank) && !is_set(knob::size))
    set(static_cast<std::size_t>(knob::boot), "pmix", source::environment);
  const char* const name = is(knob::boot, "pmix") ? "PMIX_RANK" : "PMI_RANK";
  const char* const rank = std::getenv(name);
  if (rank != nullptr && !is_set(knob::rank) && (is(knob::boot, "pmix") || is(knob::boot, "pmi2")))
    set(static_cast<std::size_t>(knob::rank), rank, source::environment);
}

void settings::set(std::size_t index, std::string value, source from) {
  const definition& d = table[index];
  std::uint64_t& number = numbers_[index];
  bool fits = true;
  LockChoice parsed;
  if (d.kind == form::lock) fits = parse_lock(value, parsed);
  if (d.kind == form::words) fits = one_of(d.choices, value, number);
  if (d.kind == form::number || d.kind == form::bytes) {
    fits = parse_number(value, d.kind == form::bytes, number) && number >= d.least && number <= d.most;
  }
  if (!fits) reject(d, value, origin_names[static_cast<std::size_t>(from)]);
  std::erase_if(changed_, [index](const changed& c) { return c.index == index; });
  if (value != d.initial) changed_.push_back({index, std::move(value)});
  sources_[index] = from;
}

LockChoice settings::lock() const noexcept {
  LockChoice parsed;
  const bool fits = parse_lock(view(static_cast<std::size_t>(knob::lock)), parsed);
  RMA_ASSERT(fits);
  static_cast<void>(fits);
  return parsed;
}

std::string_view settings::view(std::size_t index) const noexcept {
  const auto found =
      std::find_if(changed_.begin(), changed_.end(), [index](const changed& c) { return c.index == index; });
  return found == changed_.end() ? table[index].initial : std::string_view(found->value);
}

std::vector<Setting> settings::list() const {
  std::vector<Setting> all;
  for (std::size_t i = 0; i < std::size(table); ++i) {
    const bool secret = table[i].name == "RMA_KEY" && !view(i).empty();
    all.push_back({std::string(table[i].name), secret ? "(set)" : std::string(view(i)),
                   origin_names[static_cast<std::size_t>(sources_[i])], std::string(table[i].choices),
                   std::string(table[i].summary), table[i].internal});
  }
  return all;
}

}  // namespace rma::detail
