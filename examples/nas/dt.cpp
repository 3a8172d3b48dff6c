// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS DT: streams of values through three graphs, a black hole (all flow together), a white hole (one is handed on to
/// all) and a shuffle. Nodes of a graph are dealt out to the ranks; each receives what its predecessors send, merges
/// it, and sends the result on.
///
/// \code
/// rmarun -n 5 nas_dt --class W
/// \endcode

#include "kernel.hpp"
#include "verification.hpp"

namespace nas {
namespace {

struct Problem {
  int samples, deviation, sources;
};
constexpr Problem problem_of(char size) { return size == 'S' ? Problem{1728, 128, 4} : Problem{1728 * 8, 256, 8}; }

constexpr std::size_t fields = 4;  // fields of a sample
constexpr std::size_t in_degree_max = 4;

using Values = std::vector<double>;

/// Nodes in an order in which predecessors come first.
struct Graph {
  struct Node {
    std::vector<std::size_t> from, to;
  };
  std::vector<Node> nodes;
  void connect(std::size_t a, std::size_t b) {
    nodes[a].to.push_back(b);
    nodes[b].from.push_back(a);
  }
};

/// Layer after layer, up to four nodes join in one of the next.
Graph black_hole(std::size_t sources) {
  Graph graph;
  graph.nodes.resize(sources);
  std::size_t first = 0, width = sources;
  while (width > 0) {
    const bool last = width <= in_degree_max;
    const std::size_t next = last ? 1 : (width + in_degree_max - 1) / in_degree_max, end = graph.nodes.size();
    graph.nodes.resize(end + next);
    for (std::size_t i = 0; i < width; ++i) graph.connect(first + i, end + i / in_degree_max);
    first = end;
    width = last ? 0 : next;
  }
  return graph;
}
/// The same the other way round.
Graph white_hole(std::size_t sinks) {
  const Graph mirrored = black_hole(sinks);
  const std::size_t n = mirrored.nodes.size();
  Graph graph;
  graph.nodes.resize(n);
  for (std::size_t b = 0; b < n; ++b) {
    for (const std::size_t a : mirrored.nodes[b].from) graph.connect(n - 1 - b, n - 1 - a);
  }
  return graph;
}
/// Butterflies: in layer j a node takes from the two that differ in bit j.
Graph shuffle(std::size_t sources) {
  Graph graph;
  graph.nodes.resize(sources);
  for (std::size_t bit = 1, first = 0; bit < sources; bit *= 2, first += sources) {
    graph.nodes.resize(first + 2 * sources);
    for (std::size_t i = 0; i < sources; ++i) {
      graph.connect(first + (i & ~bit), first + sources + i);
      graph.connect(first + (i | bit), first + sources + i);
    }
  }
  return graph;
}

/// a^n mod m by squaring. Products keep 32 bits and their sign, which the published values depend on.
int power_mod(int a, int n, int m) {
  const auto product = [m](int x, int y) {
    return static_cast<int>(static_cast<unsigned>(x) * static_cast<unsigned>(y)) % m;
  };
  int rest = 1;
  if (n == 0) return 1;
  while (n > 1) {
    if (n % 2 == 0) {
      a = product(a, a);
      n /= 2;
    } else {
      rest = product(rest, a);
      --n;
    }
  }
  return product(rest, a);
}

/// The message of source `id` has as many samples as the benchmark says, plus or minus the deviation.
Values source(const Problem& p, int id) {
  const std::uint64_t product = static_cast<std::uint64_t>(2 * id + 1) * 314159265;
  const int seed = static_cast<int>(1 / (static_cast<double>(product) * 0x1p-46)) * 'S';
  const int count = p.samples - p.deviation + std::abs(power_mod(seed, 2 * id + 1, 2 * p.deviation));
  const int length = count * static_cast<int>(fields), steps = length * (id + 1) % 3141592;
  constexpr int base[fields] = {2, 2, 2, 5}, modulus[fields] = {421, 419, 1427, 3527};
  int state[fields];
  for (std::size_t f = 0; f < fields; ++f) state[f] = power_mod(base[f], steps, modulus[f]);
  Values values;
  for (int i = 0; i < count; ++i) {
    for (std::size_t f = 0; f < fields; ++f) values.push_back(state[f] = state[f] * base[f] % modulus[f]);
  }
  return values;
}

/// The same values spread over `length` places.
Values stretched(const Values& from, std::size_t length) {
  Values to(length, 0.);
  const auto ratio = static_cast<double>(length / from.size());
  for (std::size_t i = 1; i + 1 < from.size(); ++i) {
    const auto low = static_cast<std::size_t>(.5 * static_cast<double>(2 * i - 1) * ratio);
    const auto high = static_cast<std::size_t>(.5 * static_cast<double>(2 * i + 1) * ratio);
    for (std::size_t j = low; j <= high; ++j) to[j] += from[i] / static_cast<double>(high - low + 1);
  }
  to.front() = from.front();
  to.back() = from.back();
  return to;
}

/// Each sample of `into` becomes the weighted one of `from`, of the same place or beside it, where the two streams
/// differ least.
void merge(Values& into, Values from, int id) {
  if (into.size() < from.size()) into = stretched(into, from.size());
  if (from.size() < into.size()) from = stretched(from, into.size());
  const double weight = static_cast<double>(id + 1) / (id + 2);
  const auto difference = [&](std::size_t at) {
    double sum = 0;
    for (std::size_t f = 0; f < fields; ++f) sum += (into[at + f] - from[at + f]) * (into[at + f] - from[at + f]);
    return sum;
  };
  for (std::size_t i = fields; i + fields < into.size(); i += fields) {
    const double here = difference(i), after = difference(i + fields), before = difference(i - fields);
    std::size_t best = after < here ? i + fields : i;
    if (before < std::min(here, after)) best = i - fields;
    for (std::size_t f = 0; f < fields; ++f) into[i + f] = weight * from[best + f];
  }
}

class Traffic {
 public:
  Traffic(Run& run, const Problem& p) : run_(run), p_(p) {}

  /// The sum of what the sinks of the graph make of their streams.
  double through(const Graph& graph) {
    results_.assign(graph.nodes.size(), {});
    double sum = 0;
    for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
      if (rank_of(id) != run_.rank()) continue;
      const Graph::Node& node = graph.nodes[id];
      if (node.to.empty())
        sum += sink(node, id);
      else
        send(node, id);
    }
    run_.waiting([&] { rma::wait_all(sends_); });
    sends_.clear();
    run_.waiting([&] { sum = run_.world().allreduce(sum, rma::sum); });
    return sum;
  }

 private:
  [[nodiscard]] int rank_of(std::size_t id) const { return static_cast<int>(id) % run_.ranks(); }

  void send(const Graph::Node& node, std::size_t id) {
    Values& values = results_[id];
    const int number = static_cast<int>(id);
    if (node.from.empty()) {
      values = source(p_, number);
    } else {
      values.assign(static_cast<std::size_t>(p_.samples) * fields, 0.);
      for (const std::size_t from : node.from) merge(values, receive(from, id), number);
      for (double& value : values) value = static_cast<int>(value) / static_cast<int>(node.from.size());
    }
    run_.charge(20 * static_cast<double>(values.size()));
    for (const std::size_t to : node.to) {
      if (rank_of(to) == run_.rank()) continue;
      sends_.push_back(run_.world().isend(std::span(std::as_const(values)), rank_of(to), tag(id, to)));
    }
  }
  double sink(const Graph::Node& node, std::size_t id) {
    std::int64_t sum = 0;
    for (const std::size_t from : node.from) {
      const Values values = receive(from, id);
      double squares = 0;
      for (const double value : values) squares += value * value / static_cast<double>(values.size());
      sum += static_cast<int>(static_cast<double>(id + 1) * squares);
    }
    return static_cast<double>(id + 1) * static_cast<double>(sum / static_cast<std::int64_t>(node.from.size()));
  }
  /// The stream of node `from`, which tells its length.
  Values receive(std::size_t from, std::size_t id) {
    if (rank_of(from) == run_.rank()) return results_[from];
    Values values;
    run_.waiting([&] {
      const rma::Received what = run_.world().probe(rank_of(from), tag(from, id));
      values.resize(what.count<double>());
      run_.world().recv(std::span(values), rank_of(from), tag(from, id));
    });
    return values;
  }
  static int tag(std::size_t from, std::size_t to) { return static_cast<int>(from << 10 | to); }

  Run& run_;
  Problem p_;
  std::vector<Values> results_;
  std::vector<rma::MessageRequest> sends_;
};

std::vector<double> run(Run& run) {
  const Problem problem = problem_of(run.size());
  const auto sources = static_cast<std::size_t>(problem.sources);
  Traffic traffic(run, problem);
  run.start();
  std::vector<double> sums;
  for (const Graph& graph : {black_hole(sources), white_hole(sources), shuffle(sources)})
    sums.push_back(traffic.through(graph));
  run.stop();
  return sums;
}

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  const auto any = [](int) { return true; };
  const auto kernel = [](nas::Run& run) { return run.report(nas::run(run), nas::published::dt(run.size()), 1e-14); };
  return nas::run_kernel(argc, argv, "dt", false, kernel, any, "any");
}
