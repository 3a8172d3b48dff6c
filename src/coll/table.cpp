// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "coll/algorithm.hpp"
#include "coll/algorithms/builders.hpp"
#include "core/assert.hpp"

namespace rma::detail::coll {
namespace {

constexpr std::string_view call_names[call_count] = {
    "barrier", "broadcast", "reduce",   "allreduce",          "reduce_scatter",    "scan",    "exscan", "gather",
    "scatter", "allgather", "alltoall", "neighbor_allgather", "neighbor_alltoall", "schedule"};

double ranks(const shape& s) noexcept { return s.size; }
double logs(const shape& s) noexcept { return log2_ceil(s.size); }
double vector_bytes(const shape& s) noexcept { return static_cast<double>(s.bytes); }
double sum_of(const blocks& b, int count) noexcept {
  if (b.sizes.empty()) return static_cast<double>(b.each) * count;
  double sum = 0;
  for (const std::size_t each : b.sizes) sum += static_cast<double>(each);
  return sum * static_cast<double>(b.unit);
}
/// Bytes of all blocks that a rank receives, or combines.
double received_bytes(const shape& s) noexcept { return sum_of(s.received, s.size); }
/// Bytes that a gather or scatter moves: the same on all members, whichever side they are on.
double moved_bytes(const shape& s) noexcept {
  const bool here = s.what == call::gather ? s.rank == s.root : s.rank != s.root;
  const blocks& known = here ? s.received : s.sent;
  return static_cast<double>(known.each) * s.size;
}
/// Number of ranks of the largest node, if nodes are known and their ranks are consecutive.
int ranks_of_node(const shape& s) noexcept {
  std::size_t most = 1;
  for (std::size_t first = 0; first < s.nodes.size();) {
    std::size_t next = first + 1;
    while (next < s.nodes.size() && s.nodes[next] == s.nodes[first]) ++next;
    most = std::max(most, next - first);
    first = next;
  }
  return static_cast<int>(most);
}
/// Number of ranks of a node that send to another one at the same time, if all do.
double at_once(const shape& s) noexcept { return ranks_of_node(s); }
/// Number of ranks of a node that share its link to the others, weighted by the part of their traffic that uses it.
double sharing(const shape& s) noexcept {
  const double most = ranks_of_node(s);
  return std::max(1.0, most * (1 - most / s.size));
}
/// Concurrent messages to one rank, from all others, contend in the network; rounds of pairs wait for the slowest pair.
double sync_factor(const shape& s) noexcept { return s.size > 4 ? 1.3 : 1; }
constexpr double pairs_apart = 1.2;
constexpr double pairs_late = 1.4;  ///< duration of a round of pairs relative to a message
/// The factor of a ring, each round of which waits for the slowest neighbors.
double around(const shape& s) noexcept { return s.size > 4 ? 1.3 : 1; }
/// The part of a vector that an exchange of all parts moves: all but the rank's own part.
double of_others(const shape& s) noexcept { return (ranks(s) - 1) / ranks(s); }
/// Numbers of rounds of a tree within nodes, and between them.
double rounds_within(const shape& s) noexcept { return log2_ceil(ranks_of_node(s)); }
double rounds_between(const shape& s) noexcept { return logs(s) - rounds_within(s); }
constexpr double within_factor = 0.05;  ///< approximate cost of a byte within a node relative to one between nodes
/// Bytes of a vector that is sent along a tree in which one rank of each node communicates with others.
double tree_bytes(const shape& s) noexcept {
  return vector_bytes(s) * (rounds_between(s) + within_factor * rounds_within(s));
}
/// Bytes of a vector that is halved with nearer and nearer partners, until each rank has a part: first between nodes,
/// by all ranks of each at once.
double halved_bytes(const shape& s) noexcept {
  const double left = std::exp2(-rounds_between(s));
  return vector_bytes(s) * (1 - left + within_factor * (left - 1 / ranks(s)));
}
/// Rounds, or messages, of ranks that stand aside while a power of two of them works.
double aside(const shape& s) noexcept { return s.power_of_two() ? 0 : 2; }
/// Those within nodes: ranks that stand aside have neighbors on their own node if it has several ranks.
double near_aside(const shape& s) noexcept { return ranks_of_node(s) > 1 ? aside(s) : 0; }
double aside_bytes(const shape& s) noexcept {
  return vector_bytes(s) * aside(s) * (ranks_of_node(s) > 1 ? within_factor : 1);
}

bool power_of_two(const shape& s) noexcept { return s.power_of_two(); }
bool any_order(const shape& s) noexcept { return s.any_order(); }
bool fixed_doubling(const shape& s) noexcept { return !s.reproducible || s.power_of_two(); }
bool halves(const shape& s) noexcept { return s.any_order() && s.power_of_two() && s.received.offsets.empty(); }
bool regular(const shape& s) noexcept { return !s.varied; }
bool puts(const shape& s) noexcept { return s.puts && s.size > 1; }
bool several_nodes(const shape& s) noexcept { return !s.nodes.empty(); }
bool nodes_any_order(const shape& s) noexcept { return several_nodes(s) && s.any_order(); }
/// A scan has the bits of a loop over the ranks; doubling combines by another tree than the chain.
bool scan_doubling(const shape& s) noexcept { return !s.inexact && !s.reproducible; }
bool collects_little(const shape& s) noexcept {
  constexpr double most = 64.0 * 1024 * 1024;
  return (s.what == call::reduce_scatter ? received_bytes(s) : vector_bytes(s) * ranks(s)) <= most;
}

using S = const shape&;
constexpr algorithm rows[] = {
    algorithm{"dissemination", call::barrier, dissemination::barrier,
              [](S s) noexcept -> effort { return {logs(s), logs(s), 0, 0}; }},
    algorithm{"linear", call::barrier, linear::barrier,
              [](S s) noexcept -> effort { return {2, 2 * (ranks(s) - 1), 0, 0}; }},
    algorithm{"binomial", call::barrier, binomial::barrier,
              [](S s) noexcept -> effort { return {2 * logs(s), 2 * logs(s), 0, 0}; }},
    algorithm{"recursive-doubling", call::barrier, recursive_doubling::barrier,
              [](S s) noexcept -> effort { return {logs(s) + aside(s), logs(s) + aside(s), 0, 0}; }},
    algorithm{"hierarchical", call::barrier, hierarchical::barrier,
              [](S s) noexcept -> effort { return {1.5 * logs(s), 1.5 * logs(s), 0, 0}; }, several_nodes},
    algorithm{"one-sided", call::barrier, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"binomial", call::broadcast, binomial::broadcast,
              [](S s) noexcept -> effort { return {logs(s), logs(s), tree_bytes(s), 0, 1, rounds_within(s)}; }},
    algorithm{"linear", call::broadcast, linear::broadcast,
              [](S s) noexcept -> effort {
                return {1, ranks(s) - 1, vector_bytes(s) * (ranks(s) - 1), 0, 1, 0, true};
              }},
    algorithm{"scatter-allgather", call::broadcast, scatter_allgather::broadcast,
              [](S s) noexcept -> effort {
                return {logs(s) + ranks(s) - 1, logs(s) + ranks(s) - 1, 2 * of_others(s) * vector_bytes(s), 0};
              }},
    algorithm{"chain", call::broadcast, chain::broadcast,
              [](S s) noexcept -> effort {
                const double segments = std::max(1.0, vector_bytes(s) / 65536);
                const double rounds = segments + ranks(s) - 2;
                return {rounds, rounds, vector_bytes(s) / segments * rounds, 0};
              }},
    algorithm{"hierarchical", call::broadcast, hierarchical::broadcast,
              [](S s) noexcept -> effort { return {logs(s), logs(s), tree_bytes(s), 0, 1, rounds_within(s)}; },
              several_nodes},
    algorithm{"one-sided", call::broadcast, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"binomial", call::reduce, binomial::reduce,
              [](S s) noexcept -> effort {
                const double rounds = logs(s) + (s.any_order() || s.root == 0 ? 0 : 1);
                return {rounds, rounds, tree_bytes(s), vector_bytes(s) * logs(s), 1, rounds_within(s)};
              }},
    algorithm{"linear", call::reduce, linear::reduce,
              [](S s) noexcept -> effort {
                const double others = ranks(s) - 1;
                return {1, others, vector_bytes(s) * others, vector_bytes(s) * others};
              },
              collects_little},
    algorithm{"rabenseifner", call::reduce, rabenseifner::reduce,
              [](S s) noexcept -> effort {
                const double rounds = 2 * logs(s) + aside(s);
                const double bytes = vector_bytes(s);
                const double moved = 2 * halved_bytes(s) + aside_bytes(s) / 2;
                const double combined = bytes * (1 + aside(s) / 2);
                return {rounds, rounds, moved, combined, at_once(s), 2 * rounds_within(s) + near_aside(s)};
              },
              any_order},
    algorithm{"hierarchical", call::reduce, hierarchical::reduce,
              [](S s) noexcept -> effort {
                return {logs(s), logs(s), tree_bytes(s), vector_bytes(s) * logs(s), 1, rounds_within(s)};
              },
              nodes_any_order},
    algorithm{"one-sided", call::reduce, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"recursive-doubling", call::allreduce, recursive_doubling::allreduce,
              [](S s) noexcept -> effort {
                const double rounds = logs(s) + aside(s);
                const double bytes =
                    vector_bytes(s) * (rounds_between(s) + within_factor * rounds_within(s)) + aside_bytes(s);
                const double near = rounds_within(s) + near_aside(s);
                return {rounds, rounds, bytes, vector_bytes(s) * rounds, at_once(s), near};
              },
              fixed_doubling},
    algorithm{"linear", call::allreduce, linear::allreduce,
              [](S s) noexcept -> effort {
                const double others = ranks(s) - 1;
                const double bytes = vector_bytes(s) * others;
                return {1, 2 * others, bytes, bytes, std::max(sync_factor(s), sharing(s)), 0, true};
              },
              collects_little},
    algorithm{"binomial", call::allreduce, binomial::allreduce,
              [](S s) noexcept -> effort {
                const double rounds = 2 * logs(s);
                return {rounds, rounds, 2 * tree_bytes(s), vector_bytes(s) * logs(s), 1, 2 * rounds_within(s)};
              }},
    algorithm{"ring", call::allreduce, ring::allreduce,
              [](S s) noexcept -> effort {
                const double rounds = 2 * (ranks(s) - 1);
                return {rounds, rounds, 2 * of_others(s) * vector_bytes(s), vector_bytes(s), around(s)};
              },
              any_order},
    algorithm{"rabenseifner", call::allreduce, rabenseifner::allreduce,
              [](S s) noexcept -> effort {
                const double rounds = 2 * logs(s) + aside(s);
                const double bytes = vector_bytes(s);
                const double moved = 2 * halved_bytes(s) + aside_bytes(s);
                const double combined = bytes * (1 + aside(s) / 2);
                return {rounds, rounds, moved, combined, at_once(s), 2 * rounds_within(s) + near_aside(s)};
              },
              any_order},
    algorithm{"circulant", call::allreduce, circulant::allreduce,
              [](S s) noexcept -> effort {
                return {2 * logs(s), 2 * logs(s), 2.2 * vector_bytes(s), 1.5 * vector_bytes(s), sharing(s)};
              },
              any_order},
    algorithm{"hierarchical", call::allreduce, hierarchical::allreduce,
              [](S s) noexcept -> effort {
                const double rounds = 2 * logs(s);
                return {rounds, rounds, 2 * tree_bytes(s), vector_bytes(s) * logs(s), 1, 2 * rounds_within(s)};
              },
              nodes_any_order},
    algorithm{"one-sided", call::allreduce, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"pairwise", call::reduce_scatter, pairwise::reduce_scatter,
              [](S s) noexcept -> effort {
                return {ranks(s) - 1, ranks(s) - 1, received_bytes(s), received_bytes(s), pairs_apart * sharing(s)};
              }},
    algorithm{"linear", call::reduce_scatter, linear::reduce_scatter,
              [](S s) noexcept -> effort {
                const double bytes = received_bytes(s);
                return {1, 2 * (ranks(s) - 1), bytes, bytes, sync_factor(s) * sharing(s), 0, true};
              },
              collects_little},
    algorithm{"ring", call::reduce_scatter, ring::reduce_scatter,
              [](S s) noexcept -> effort {
                return {ranks(s) - 1, ranks(s) - 1, received_bytes(s), received_bytes(s), around(s)};
              },
              any_order},
    algorithm{"recursive-halving", call::reduce_scatter, recursive_halving::reduce_scatter,
              [](S s) noexcept -> effort {
                return {logs(s), logs(s), received_bytes(s), 1.5 * received_bytes(s), sharing(s)};
              },
              halves},
    algorithm{"circulant", call::reduce_scatter, circulant::reduce_scatter,
              [](S s) noexcept -> effort {
                return {logs(s), logs(s), received_bytes(s), 1.5 * received_bytes(s), sharing(s)};
              },
              any_order},
    algorithm{"one-sided", call::reduce_scatter, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"recursive-doubling", call::scan, recursive_doubling::scan,
              [](S s) noexcept -> effort {
                return {logs(s), logs(s), vector_bytes(s) * logs(s), 2 * vector_bytes(s) * logs(s)};
              },
              scan_doubling},
    algorithm{"linear", call::scan, linear::scan,
              [](S s) noexcept -> effort {
                const double rounds = ranks(s) - 1;
                return {rounds, 2, vector_bytes(s) * rounds, vector_bytes(s) * rounds};
              }},
    algorithm{"one-sided", call::scan, one_sided::any, one_sided::estimate, puts, true},
    algorithm{"recursive-doubling", call::exscan, recursive_doubling::exscan,
              [](S s) noexcept -> effort {
                return {logs(s), logs(s), vector_bytes(s) * logs(s), 2 * vector_bytes(s) * logs(s)};
              },
              scan_doubling},
    algorithm{"linear", call::exscan, linear::exscan,
              [](S s) noexcept -> effort {
                const double rounds = ranks(s) - 1;
                return {rounds, 2, vector_bytes(s) * rounds, vector_bytes(s) * rounds};
              }},
    algorithm{"one-sided", call::exscan, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"linear", call::gather, linear::gather,
              [](S s) noexcept -> effort { return {1, ranks(s) - 1, moved_bytes(s), 0}; }},
    algorithm{"binomial", call::gather, binomial::gather,
              [](S s) noexcept -> effort { return {logs(s), logs(s), 2 * moved_bytes(s), 0}; }, regular},
    algorithm{"one-sided", call::gather, one_sided::any, one_sided::estimate, puts, true},
    algorithm{"linear", call::scatter, linear::scatter,
              [](S s) noexcept -> effort { return {1, ranks(s) - 1, moved_bytes(s), 0}; }},
    algorithm{"binomial", call::scatter, binomial::scatter,
              [](S s) noexcept -> effort { return {logs(s), logs(s), 2 * moved_bytes(s), 0}; }, regular},
    algorithm{"one-sided", call::scatter, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"ring", call::allgather, ring::allgather,
              [](S s) noexcept -> effort { return {ranks(s) - 1, ranks(s) - 1, received_bytes(s), 0, around(s)}; }},
    algorithm{"linear", call::allgather, linear::allgather,
              [](S s) noexcept -> effort {
                return {1, 2 * (ranks(s) - 1), received_bytes(s), 0, sync_factor(s) * sharing(s), 0, true};
              }},
    algorithm{"bruck", call::allgather, bruck::allgather,
              [](S s) noexcept -> effort {
                const double all = received_bytes(s);
                return {logs(s), logs(s), all, all, sharing(s)};
              }},
    algorithm{"recursive-doubling", call::allgather, recursive_doubling::allgather,
              [](S s) noexcept -> effort {
                return {logs(s), s.received.regular() ? logs(s) : ranks(s) - 1, received_bytes(s), 0, sharing(s)};
              },
              power_of_two},
    algorithm{"circulant", call::allgather, circulant::allgather,
              [](S s) noexcept -> effort {
                const double all = received_bytes(s);
                return {logs(s), logs(s), all, all, sharing(s)};
              }},
    algorithm{"one-sided", call::allgather, one_sided::any, one_sided::estimate, puts, true},

    algorithm{"pairwise", call::alltoall, pairwise::alltoall,
              [](S s) noexcept -> effort {
                const double share = sharing(s) > 1 ? pairs_apart * sharing(s) : 1;
                const double rounds = ranks(s) - 1;
                return {rounds * pairs_late, rounds, received_bytes(s), 0, share};
              }},
    algorithm{"linear", call::alltoall, linear::alltoall,
              [](S s) noexcept -> effort {
                const double share = std::max(sync_factor(s), sharing(s));
                return {1, 2 * (ranks(s) - 1), received_bytes(s), 0, share, 0, true};
              }},
    algorithm{"bruck", call::alltoall, bruck::alltoall,
              [](S s) noexcept -> effort {
                return {logs(s), logs(s), 0.5 * logs(s) * received_bytes(s), 1.5 * received_bytes(s), sharing(s)};
              },
              regular},
    algorithm{"one-sided", call::alltoall, one_sided::any, one_sided::estimate, puts, true},
    algorithm{"linear", call::neighbor_allgather, linear::neighbor_allgather,
              [](S) noexcept -> effort { return {1, 1, 0, 0}; }},
    algorithm{"one-sided", call::neighbor_allgather, linear::neighbor_allgather,
              [](S) noexcept -> effort { return {1, 1, 0, 0}; }, puts, true},
    algorithm{"linear", call::neighbor_alltoall, linear::neighbor_alltoall,
              [](S) noexcept -> effort { return {1, 1, 0, 0}; }},
    algorithm{"one-sided", call::neighbor_alltoall, linear::neighbor_alltoall,
              [](S) noexcept -> effort { return {1, 1, 0, 0}; }, puts, true},
};

}  // namespace

std::string_view name_of(call c) noexcept { return call_names[static_cast<std::size_t>(c)]; }

std::span<const algorithm> algorithms() noexcept { return rows; }

const algorithm* find_algorithm(call what, std::string_view name) noexcept {
  const auto found = std::find_if(std::begin(rows), std::end(rows),
                                  [&](const algorithm& a) { return a.what == what && a.name == name; });
  return found == std::end(rows) ? nullptr : &*found;
}

std::string names_of_algorithms(call what) {
  std::string names;
  for (const algorithm& a : rows) {
    if (a.what == what) names += (names.empty() ? "" : ", ") + std::string(a.name);
  }
  return names;
}

double estimated_ns(const effort& e, const machine_costs& m) noexcept {
  constexpr double near_latency = 0.3;  // within a node, relative to that between nodes
  const bool many_at_once = e.messages > 2 * e.rounds;
  const double each = e.bytes / std::max(1.0, many_at_once ? e.messages / 2 : e.rounds - e.near_rounds);
  const bool is_long = each > m.eager_bytes;
  const double latency_ns = (e.rounds - e.near_rounds) * (is_long ? m.rendezvous_ns : m.latency_ns) +
                            e.near_rounds * near_latency * m.latency_ns;
  // While one of many messages is in transit, the next ones are copied, or requested.
  const bool link_is_full = (many_at_once && !e.copies) || e.link_share >= 2;
  const double byte_ns = is_long ? m.long_byte_ns : link_is_full ? m.link_byte_ns : m.byte_ns;
  const double bytes_ns = e.bytes * e.link_share * byte_ns;
  const double transfer_ns = many_at_once ? std::max(latency_ns, bytes_ns) : latency_ns + bytes_ns;
  return transfer_ns + e.messages * m.message_ns + e.combined_bytes * m.combined_byte_ns;
}

/// True if members know sizes that others do not, so that their estimates differ: of messages, they may choose
/// algorithms that send the same ones, but puts only meet puts.
bool sizes_differ(const shape& s) noexcept {
  if (s.what == call::neighbor_allgather || s.what == call::neighbor_alltoall) return true;
  return s.varied && (s.what == call::gather || s.what == call::scatter || s.what == call::alltoall);
}

/// Puts have no other way for long messages, and copies at both ends. If many are in flight, the link hides these, up
/// to a few slots each; longer ones wait for slots.
machine_costs costs_of_puts(const machine_costs& m) noexcept {
  machine_costs puts = m;
  puts.latency_ns = m.put_latency_ns;
  puts.message_ns = m.put_ns;
  puts.byte_ns = puts.long_byte_ns = m.put_byte_ns;
  puts.rendezvous_ns = m.put_latency_ns;
  puts.eager_bytes = 10240;
  return puts;
}

choice choose(const shape& s, const machine_costs& m, const algorithm* forced) noexcept {
  choice c;
  if (forced != nullptr && forced->fits != nullptr && !forced->fits(s)) forced = nullptr;
  c.estimate_ns = c.second_ns = std::numeric_limits<double>::max();
  for (const algorithm& a : rows) {
    if (a.what != s.what || (a.fits != nullptr && !a.fits(s))) continue;
    if (a.by_puts && &a != forced && sizes_differ(s)) continue;
    const double ns = estimated_ns(a.estimate(s), a.by_puts ? costs_of_puts(m) : m);
    if (&a == forced || (forced == nullptr && ns < c.estimate_ns)) {
      if (c.chosen != nullptr && c.estimate_ns < c.second_ns) {
        c.second = c.chosen;
        c.second_ns = c.estimate_ns;
      }
      c.chosen = &a;
      c.estimate_ns = ns;
    } else if (ns < c.second_ns) {
      c.second = &a;
      c.second_ns = ns;
    }
  }
  RMA_ASSERT(c.chosen != nullptr && c.chosen->what == s.what);
  RMA_ASSERT(forced == nullptr || c.chosen == forced);
  return c;
}

std::string reason_of(const choice& c, std::string_view set) {
  std::string text;
  if (!set.empty() && set != c.chosen->name) {
    const bool in_memory = find_algorithm(c.chosen->what, set) == nullptr;
    text = fmt::format("the name set does not fit: {}{}; ", set, in_memory ? ", for blocking calls in memory" : "");
  }
  text += fmt::format("{}: {:.1f} us", c.chosen->name, c.estimate_ns / 1e3);
  if (c.second != nullptr) text += fmt::format("; next {}, {:.1f} us", c.second->name, c.second_ns / 1e3);
  return text;
}

}  // namespace rma::detail::coll
