// SPDX-License-Identifier: Apache-2.0
// Collectives by schedules: every call against a sequential oracle, whatever the algorithm that the settings force.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cases.hpp"

namespace conformance {
namespace {

using std::span;
using Counts = std::vector<std::size_t>;

/// Element i of member r's input, the same wherever it is asked for.
template <class T>
T value_of(int r, std::size_t i) {
  const std::size_t number = static_cast<std::size_t>(r) * 7919 + i * 31 + 5;
  if constexpr (rma::is_pair(rma::element_of<T>)) {
    return {static_cast<decltype(T::value)>(number % 3),
            static_cast<decltype(T::index)>(number % 97)};  // some are equal
  } else {
    return static_cast<T>(number % 97 + 1);
  }
}
template <class T>
std::vector<T> vector_of(int r, std::size_t count, std::size_t from = 0) {
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = value_of<T>(r, from + i);
  return all;
}

/// Number of elements: nothing, one, an odd few, more than an eager message, more than a turn of local work.
constexpr std::array<std::size_t, 5> element_counts{0, 1, 7, 1025, 20000};

/// Each case runs its call in each form; the forms end alike.
enum class form : std::uint8_t { blocking, request, persistent };
constexpr std::array forms{form::blocking, form::request, form::persistent};

/// The combinations of a case, one index of each factor in a row: the whole product, or with an effort below 10 percent
/// rows that have each pair of indices of two factors once at least. The same on all ranks.
template <std::size_t N>
std::vector<std::array<std::size_t, N>> combinations(context& ctx, const std::array<std::size_t, N>& factors) {
  using row = std::array<std::size_t, N>;
  std::vector<row> all{row{}};
  for (std::size_t f = 0; f < N; ++f) {
    std::vector<row> longer;
    for (row each : all) {
      for (each[f] = 0; each[f] < factors[f]; ++each[f]) longer.push_back(each);
    }
    all = std::move(longer);
  }
  if (ctx.thorough()) return all;
  std::shuffle(all.begin(), all.end(), ctx.common_random());
  std::set<std::array<std::size_t, 4>> covered;
  const auto new_pairs = [&](const row& each, bool take) {
    std::size_t count = 0;
    for (std::size_t a = 0; a < N; ++a) {
      for (std::size_t b = a + 1; b < N; ++b) {
        const std::array<std::size_t, 4> pair{a, each[a], b, each[b]};
        count += covered.contains(pair) ? 0U : 1U;
        if (take) covered.insert(pair);
      }
    }
    return count;
  };
  std::vector<row> chosen;
  for (std::size_t least = N * (N - 1) / 2; least > 0; --least) {  // those with many new pairs first
    for (const row& each : all) {
      if (new_pairs(each, false) < least) continue;
      new_pairs(each, true);
      chosen.push_back(each);
    }
  }
  return chosen;
}

template <class Blocking, class Start, class Init>
void call(form how, Blocking&& blocking, Start&& start, Init&& init) {
  if (how == form::blocking) blocking();
  if (how == form::request) start().wait();
  if (how == form::persistent) {
    rma::Collective kept = init();
    kept.start().wait();
    kept.start().wait();
  }
}

/// Integers wrap round.
template <class T>
T product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class T>
T combined_numbers(rma::operation op, T a, T b) {
  switch (op) {
    case rma::operation::sum: return static_cast<T>(a + b);
    case rma::operation::prod: return product(a, b);
    case rma::operation::min: return std::min(a, b);
    case rma::operation::max: return std::max(a, b);
    case rma::operation::replace: return b;
    case rma::operation::no_op: return a;
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case rma::operation::land: return static_cast<T>(a != 0 && b != 0);
      case rma::operation::lor: return static_cast<T>(a != 0 || b != 0);
      case rma::operation::lxor: return static_cast<T>((a != 0) != (b != 0));
      case rma::operation::band: return static_cast<T>(a & b);
      case rma::operation::bor: return static_cast<T>(a | b);
      case rma::operation::bxor: return static_cast<T>(a ^ b);
      default: break;
    }
  }
  return a;
}

template <class T>
T combined(rma::operation op, T a, T b) {
  if constexpr (rma::is_pair(rma::element_of<T>)) {
    if (a.value == b.value) return a.index <= b.index ? a : b;
    return (a.value < b.value) == (op == rma::operation::minloc) ? a : b;
  } else {
    return combined_numbers(op, a, b);
  }
}
/// Members [first, last) combined, in rank order.
template <class T>
std::vector<T> folded(rma::operation op, int first, int last, std::size_t count, std::size_t from = 0) {
  std::vector<T> all = vector_of<T>(first, count, from);
  for (int r = first + 1; r < last; ++r) {
    for (std::size_t i = 0; i < count; ++i) all[i] = combined(op, all[i], value_of<T>(r, from + i));
  }
  return all;
}

void broadcasts(context& ctx) {
  rma::Team& team = ctx.world();
  const std::array roots{0, ctx.size() - 1, ctx.size() / 2};
  for (const auto& [size, at, how] : combinations<3>(ctx, {element_counts.size(), roots.size(), forms.size()})) {
    const std::size_t count = element_counts[size];
    const int root = roots[at];
    std::vector<std::int32_t> data(count);
    if (ctx.rank() == root) data = vector_of<std::int32_t>(root, count);
    call(
        forms[how], [&] { team.broadcast(span(data), root); }, [&] { return team.ibroadcast(span(data), root); },
        [&] { return team.broadcast_init(span(data), root); });
    ctx.check(data == vector_of<std::int32_t>(root, count), "broadcast of " + std::to_string(count));
  }
}

template <class T>
void reductions_of(context& ctx, rma::operation op, std::size_t count, form how) {
  rma::Team& team = ctx.world();
  const std::string what = std::string(rma::name_of(op)) + " of " + std::to_string(count) + " " +
                           std::string(rma::name_of(rma::element_of<T>));
  const int root = ctx.size() / 2;
  const std::vector<T> mine = vector_of<T>(ctx.rank(), count);
  const std::vector<T> all = folded<T>(op, 0, ctx.size(), count);

  std::vector<T> result(count);
  call(
      how, [&] { team.reduce(span(mine), span(result), op, root); },
      [&] { return team.ireduce(span(mine), span(result), op, root); },
      [&] { return team.reduce_init(span(mine), span(result), op, root); });
  if (ctx.rank() == root) ctx.check(result == all, "reduce: " + what);

  std::vector<T> everyone(count);
  call(
      how, [&] { team.allreduce(span(mine), span(everyone), op); },
      [&] { return team.iallreduce(span(mine), span(everyone), op); },
      [&] { return team.allreduce_init(span(mine), span(everyone), op); });
  ctx.check(everyone == all, "allreduce: " + what);
  if (how != form::persistent) {  // in place, started again, it would begin with the result
    std::vector<T> in_place = mine;
    call(
        how, [&] { team.allreduce(span(in_place), op); }, [&] { return team.iallreduce(span(in_place), op); },
        [&] { return team.allreduce_init(span(in_place), op); });
    ctx.check(in_place == all, "allreduce in place: " + what);
  }

  std::vector<T> prefix(count);
  call(
      how, [&] { team.scan(span(mine), span(prefix), op); }, [&] { return team.iscan(span(mine), span(prefix), op); },
      [&] { return team.scan_init(span(mine), span(prefix), op); });
  ctx.check(prefix == folded<T>(op, 0, ctx.rank() + 1, count), "scan: " + what);
  const T untouched = value_of<T>(ctx.size(), 77);
  std::vector<T> before(count, untouched);
  call(
      how, [&] { team.exscan(span(mine), span(before), op); },
      [&] { return team.iexscan(span(mine), span(before), op); },
      [&] { return team.exscan_init(span(mine), span(before), op); });
  ctx.check(before == (ctx.rank() == 0 ? std::vector<T>(count, untouched) : folded<T>(op, 0, ctx.rank(), count)),
            "exscan: " + what);
}

// Goal: every operator and type, in every form, gives what combining one by one gives. Values are small integers, so
// that sums of floats are exact in any order; products are of integers, modulo.
void reductions(context& ctx) {
  constexpr std::array floating{rma::operation::sum, rma::operation::min, rma::operation::max, rma::operation::replace,
                                rma::operation::no_op};
  constexpr std::array of_floats{reductions_of<double>, reductions_of<float>};
  constexpr std::array of_pairs{reductions_of<rma::ValueIndex<double>>, reductions_of<rma::ValueIndex<short>>};
  constexpr std::size_t operators_of_integers = 1 + static_cast<std::size_t>(rma::operation::no_op);
  constexpr std::array of_integers{reductions_of<std::int32_t>, reductions_of<std::uint64_t>,
                                   reductions_of<std::int8_t>};
  for (const auto& [type, op, size, how] :
       combinations<4>(ctx, {of_floats.size(), floating.size(), element_counts.size(), forms.size()}))
    of_floats[type](ctx, floating[op], element_counts[size], forms[how]);
  for (const auto& [type, op, size, how] :
       combinations<4>(ctx, {of_integers.size(), operators_of_integers, element_counts.size(), forms.size()}))
    of_integers[type](ctx, static_cast<rma::operation>(op), element_counts[size], forms[how]);
  for (const auto op : {rma::operation::minloc, rma::operation::maxloc})
    for (const auto& [type, size, how] : combinations<3>(ctx, {of_pairs.size(), element_counts.size(), forms.size()}))
      of_pairs[type](ctx, op, element_counts[size], forms[how]);
}

// Goal: each member gets the combination of its part, equal ones or not, in place or not.
void reduce_scatters(context& ctx) {
  rma::Team& team = ctx.world();
  const auto n = static_cast<std::size_t>(ctx.size());
  const auto me = static_cast<std::size_t>(ctx.rank());
  for (const std::size_t count : element_counts) {
    for (const form how : forms) {
      std::vector<std::int64_t> mine = vector_of<std::int64_t>(ctx.rank(), count * n);
      std::vector<std::int64_t> result(count);
      call(
          how, [&] { team.reduce_scatter_block(span(mine), span(result), rma::sum); },
          [&] { return team.ireduce_scatter_block(span(mine), span(result), rma::sum); },
          [&] { return team.reduce_scatter_block_init(span(mine), span(result), rma::sum); });
      ctx.check(result == folded<std::int64_t>(rma::operation::sum, 0, ctx.size(), count, count * me),
                "reduce_scatter_block");

      Counts parts(n);
      for (std::size_t r = 0; r < n; ++r) parts[r] = count / (1 + r % 3);
      const std::size_t total = std::accumulate(parts.begin(), parts.end(), std::size_t{0});
      const std::size_t before = std::accumulate(parts.begin(), parts.begin() + ctx.rank(), std::size_t{0});
      mine = vector_of<std::int64_t>(ctx.rank(), total);
      result.assign(parts[me], 0);
      call(
          how, [&] { team.reduce_scatter(span(mine), span(result), span<const std::size_t>(parts), rma::max); },
          [&] { return team.ireduce_scatter(span(mine), span(result), span<const std::size_t>(parts), rma::max); },
          [&] { return team.reduce_scatter_init(span(mine), span(result), span<const std::size_t>(parts), rma::max); });
      const auto wanted = folded<std::int64_t>(rma::operation::max, 0, ctx.size(), parts[me], before);
      ctx.check(result == wanted, "reduce_scatter");
      team.reduce_scatter(span(mine), span(mine).first(parts[me]), span<const std::size_t>(parts), rma::max);
      ctx.check(std::equal(wanted.begin(), wanted.end(), mine.begin()), "reduce_scatter in place");
    }
  }
}

struct affine {
  std::uint32_t a, b;
  bool operator==(const affine&) const = default;
};

// Goal: an operator of the user's own is combined in rank order if it does not commute. Method: x -> a x + b modulo
// 2^32, one after the other.
void user_operators(context& ctx) {
  rma::Team& team = ctx.world();
  const auto then = [](const affine& f, const affine& g) { return affine{g.a * f.a, g.a * f.b + g.b}; };
  const auto op = rma::UserOperation::of<affine>(then);
  const auto of = [](int r, std::size_t i) {
    return affine{value_of<std::uint32_t>(r, i) | 1, value_of<std::uint32_t>(r, i + 1)};
  };
  for (const std::size_t count : {std::size_t{1}, std::size_t{9}, std::size_t{9000}}) {
    std::vector<affine> mine(count);
    for (std::size_t i = 0; i < count; ++i) mine[i] = of(ctx.rank(), i);
    const auto until = [&](int last) {
      std::vector<affine> all(count);
      for (std::size_t i = 0; i < count; ++i) {
        all[i] = of(0, i);
        for (int r = 1; r < last; ++r) all[i] = then(all[i], of(r, i));
      }
      return all;
    };
    std::vector<affine> result(count);
    team.allreduce(span(mine), span(result), op);
    ctx.check(result == until(ctx.size()), "allreduce by an operator of one's own");
    team.scan(span(mine), span(result), op);
    ctx.check(result == until(ctx.rank() + 1), "scan by an operator of one's own");
    const int root = ctx.size() - 1;
    team.ireduce(span(mine), span(result), op, root).wait();
    ctx.check(ctx.rank() != root || result == until(ctx.size()), "reduce by an operator of one's own");
    std::vector<affine> many;
    for (int r = 0; r < ctx.size(); ++r) many.insert(many.end(), mine.begin(), mine.end());
    team.reduce_scatter_block(span(many), span(result), op);
    ctx.check(result == until(ctx.size()), "reduce_scatter_block by an operator of one's own");
  }
  int a = 0;
  const auto product = [](double x, double y) { return x * y; };
  ctx.expect(team.try_allreduce(span(&a, 1), rma::UserOperation::of<double>(product)), rma::status::bad_type,
             "an operator for other elements");
}

/// Member r's part has so many elements.
std::size_t length_of(int r, std::size_t count) { return count / (1 + static_cast<std::size_t>(r) % 3); }

// Goal: gather, scatter and allgather, with equal and with different parts, at each kind of root, in place.
void gathers(context& ctx) {
  rma::Team& team = ctx.world();
  const auto n = static_cast<std::size_t>(ctx.size());
  const std::array roots{0, ctx.size() - 1, ctx.size() / 2};
  const auto rows = combinations<3>(ctx, {element_counts.size(), roots.size(), forms.size()});
  for (const std::size_t count : element_counts) {
    std::vector<std::int32_t> all, uneven;
    Counts sizes, offsets;
    for (int r = 0; r < ctx.size(); ++r) {
      const auto part = vector_of<std::int32_t>(r, count);
      all.insert(all.end(), part.begin(), part.end());
      sizes.push_back(length_of(r, count));
      offsets.push_back(uneven.size() + 1);
      uneven.push_back(-1);  // a gap in front of each
      uneven.insert(uneven.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(sizes.back()));
    }
    const auto mine = vector_of<std::int32_t>(ctx.rank(), count);
    const auto few = span(mine).first(length_of(ctx.rank(), count));
    const span<const std::size_t> s(sizes), o(offsets);
    for (const auto& [size, at, form_at] : rows) {
      if (element_counts[size] != count) continue;
      const int root = roots[at];
      const form how = forms[form_at];
      const bool here = ctx.rank() == root;
      std::vector<std::int32_t> got(here ? count * n : 0);
      call(
          how, [&] { team.gather(span(mine), span(got), root); },
          [&] { return team.igather(span(mine), span(got), root); },
          [&] { return team.gather_init(span(mine), span(got), root); });
      ctx.check(!here || got == all, "gather");
      std::vector<std::int32_t> part(count);
      call(
          how, [&] { team.scatter(span(all), span(part), root); },
          [&] { return team.iscatter(span(all), span(part), root); },
          [&] { return team.scatter_init(span(all), span(part), root); });
      ctx.check(part == mine, "scatter");
      got.assign(uneven.size(), -1);
      call(
          how, [&] { team.gatherv(few, span(got), s, o, root); },
          [&] { return team.igatherv(few, span(got), s, o, root); },
          [&] { return team.gatherv_init(few, span(got), s, o, root); });
      ctx.check(!here || got == uneven, "gatherv");
      part.assign(few.size(), 0);
      call(
          how, [&] { team.scatterv(span(uneven), s, o, span(part), root); },
          [&] { return team.iscatterv(span(uneven), s, o, span(part), root); },
          [&] { return team.scatterv_init(span(uneven), s, o, span(part), root); });
      ctx.check(std::equal(few.begin(), few.end(), part.begin(), part.end()), "scatterv");
      if (root != 0) continue;
      got.assign(count * n, 0);
      call(
          how, [&] { team.allgather(span(mine), span(got)); }, [&] { return team.iallgather(span(mine), span(got)); },
          [&] { return team.allgather_init(span(mine), span(got)); });
      ctx.check(got == all, "allgather");
      got.assign(count * n, 0);
      const auto own = span(got).subspan(static_cast<std::size_t>(ctx.rank()) * count, count);
      std::copy(mine.begin(), mine.end(), own.begin());
      team.allgather(own, span(got));
      ctx.check(got == all, "allgather in place");
      got.assign(uneven.size(), -1);
      call(
          how, [&] { team.allgatherv(few, span(got), s, o); }, [&] { return team.iallgatherv(few, span(got), s, o); },
          [&] { return team.allgatherv_init(few, span(got), s, o); });
      ctx.check(got == uneven, "allgatherv");
    }
  }
}

/// Element i that member `from` sends to member `to`.
std::int32_t exchanged(int from, int to, std::size_t i) { return value_of<std::int32_t>(from * 64 + to, i); }

void exchanges(context& ctx) {
  rma::Team& team = ctx.world();
  const auto n = static_cast<std::size_t>(ctx.size());
  const int me = ctx.rank();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1500}}) {
    std::vector<std::int32_t> mine, wanted;
    for (int r = 0; r < ctx.size(); ++r) {
      for (std::size_t i = 0; i < count; ++i) {
        mine.push_back(exchanged(me, r, i));
        wanted.push_back(exchanged(r, me, i));
      }
    }
    const auto length = [&](int a, int b) { return count * (static_cast<std::size_t>(a + b) % 3); };
    std::vector<std::int32_t> out, in;
    Counts sizes, offsets;
    for (int r = 0; r < ctx.size(); ++r) {
      offsets.push_back(out.size());
      sizes.push_back(length(me, r));
      for (std::size_t i = 0; i < sizes.back(); ++i) {
        out.push_back(exchanged(me, r, i));
        in.push_back(exchanged(r, me, i));
      }
    }
    const span<const std::size_t> s(sizes), o(offsets);
    for (const form how : forms) {
      std::vector<std::int32_t> got(count * n);
      call(
          how, [&] { team.alltoall(span(mine), span(got)); }, [&] { return team.ialltoall(span(mine), span(got)); },
          [&] { return team.alltoall_init(span(mine), span(got)); });
      ctx.check(got == wanted, "alltoall");
      got = mine;
      team.alltoall(span(got), span(got));
      ctx.check(got == wanted, "alltoall in place");
      got.assign(in.size(), 0);
      call(
          how, [&] { team.alltoallv(span(out), s, o, span(got), s, o); },
          [&] { return team.ialltoallv(span(out), s, o, span(got), s, o); },
          [&] { return team.alltoallv_init(span(out), s, o, span(got), s, o); });
      ctx.check(got == in, "alltoallv");
    }
  }
}

// Goal: layouts on both sides. Method: columns of a matrix that has a row for each member; rows are what arrives.
void layouts(context& ctx) {
  rma::Team& team = ctx.world();
  const auto n = static_cast<std::size_t>(ctx.size());
  constexpr std::size_t rows = 40;
  const auto column =
      rma::Layout::resized(rma::Layout::vector<int>(rows, 1, static_cast<std::ptrdiff_t>(n)), 0, sizeof(int));
  const auto row = rma::Layout::contiguous<int>(rows);
  const auto at = [](int r, std::size_t i) { return value_of<int>(r, i); };
  std::vector<int> mine = vector_of<int>(ctx.rank(), rows);
  std::vector<int> matrix(rows * n);
  team.allgather(mine.data(), row, matrix.data(), column);
  bool right = true;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t r = 0; r < n; ++r) right = right && matrix[i * n + r] == at(static_cast<int>(r), i);
  }
  ctx.check(right, "allgather of rows into columns");

  std::vector<int> again(rows * n);
  team.ialltoall(matrix.data(), column, again.data(), row).wait();
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < rows; ++i) right = right && again[r * rows + i] == at(ctx.rank(), i);
  }
  ctx.check(right, "alltoall of columns into rows");

  std::vector<int> part(rows);
  team.scatter(matrix.data(), column, part.data(), row, 0);
  ctx.check(part == mine, "scatter of columns");
  std::vector<int> gathered(rows * n);
  team.igather(part.data(), row, gathered.data(), column, 0).wait();
  ctx.check(ctx.rank() != 0 || gathered == matrix, "gather into columns");

  std::vector<int> target(rows * n, -1);
  if (ctx.rank() == 0) target = matrix;
  team.broadcast(target.data(), column, 0);
  for (std::size_t i = 0; i < rows; ++i) right = right && target[i * n] == at(0, i);
  ctx.check(right && (ctx.rank() == 0 || n == 1 || target[1] == -1), "broadcast of a column");

  std::vector<int> sums = matrix;
  team.allreduce(sums.data(), column, rma::element::i32, rma::sum);
  for (std::size_t i = 0; i < rows; ++i) right = right && sums[i * n] == ctx.size() * at(0, i);
  ctx.check(right && (n == 1 || sums[1] == matrix[1]), "allreduce of a column");

  std::vector<rma::Layout> out(n, column), in(n, row);
  std::vector<std::ptrdiff_t> out_at, in_at;
  for (std::size_t r = 0; r < n; ++r) {
    out_at.push_back(static_cast<std::ptrdiff_t>(r * sizeof(int)));
    in_at.push_back(static_cast<std::ptrdiff_t>(r * rows * sizeof(int)));
  }
  again.assign(rows * n, 0);
  team.alltoallw(matrix.data(), out, out_at, again.data(), in, in_at);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < rows; ++i) right = right && again[r * rows + i] == at(ctx.rank(), i);
  }
  ctx.check(right, "alltoallw");
}

// Goal: each neighbor gets blocks by a layout of its own; a call with the same layouts and other neighbors is another
// call. Method: to the right every second number, to the left a row; they arrive the other way round. Break: compare no
// neighbors of calls with layouts in plan::lists_differ (src/coll/plan.cpp).
void neighborhood_layouts(context& ctx) {
  rma::Team& team = ctx.world();
  constexpr std::size_t count = 300;
  constexpr auto int_bytes = static_cast<std::ptrdiff_t>(sizeof(int));
  const auto row = rma::Layout::contiguous<int>(count);
  const auto every_second = rma::Layout::vector<int>(count, 1, 2);
  const std::array<rma::Layout, 2> sent{every_second, row}, received{row, every_second};
  const std::array<std::ptrdiff_t, 2> sent_at{0, 2 * count * int_bytes};
  const std::array<std::ptrdiff_t, 2> received_at{2 * count * int_bytes, 0};
  const auto at_right = [](int rank, std::size_t i) { return rank * 10000 + static_cast<int>(i); };
  const auto at_left = [](int rank, std::size_t i) { return -rank * 10000 - static_cast<int>(i) - 1; };
  std::vector<int> mine(3 * count, 0), got;
  for (std::size_t i = 0; i < count; ++i) {
    mine[2 * i] = at_right(ctx.rank(), i);
    mine[2 * count + i] = at_left(ctx.rank(), i);
  }
  const auto is_right = [&](int left, int right) {
    bool all = true;
    for (std::size_t i = 0; i < count; ++i) {
      all = all && got[2 * count + i] == at_right(left, i) && got[2 * i] == at_left(right, i) && got[2 * i + 1] == -7;
    }
    return all;
  };
  for (const form how : forms) {
    for (const int distance : {1, ctx.size() - 1}) {
      const int right = (ctx.rank() + distance) % ctx.size();
      const int left = (ctx.rank() + ctx.size() - distance) % ctx.size();
      const std::array<int, 2> sources{left, right}, targets{right, left};
      const rma::Neighbors ring{sources, targets};
      got.assign(3 * count, -7);
      call(
          how, [&] { team.neighbor_alltoallw(mine.data(), sent, sent_at, got.data(), received, received_at, ring); },
          [&] { return team.ineighbor_alltoallw(mine.data(), sent, sent_at, got.data(), received, received_at, ring); },
          [&] {
            return team.neighbor_alltoallw_init(mine.data(), sent, sent_at, got.data(), received, received_at, ring);
          });
      ctx.check(is_right(left, right), "neighbor_alltoallw");
    }
  }
  const rma::Neighbors nobody{};
  rma::Request request;
  ctx.expect(team.try_neighbor_alltoallw(nullptr, {}, {}, nullptr, {}, {}, nobody), rma::status::done, "no neighbors");
  ctx.expect(team.try_ineighbor_alltoallw(nullptr, {}, {}, nullptr, {}, {}, nobody, request), rma::status::done,
             "no neighbors");
  request.wait();
  if (ctx.size() == 1) return;
  ctx.expect(team.try_neighbor_alltoallw(mine.data(), sent, sent_at, got.data(), received, received_at, nobody),
             rma::status::bad_size, "layouts of no neighbors");
}

// Goal: neighborhoods: a ring, with this rank twice as its own neighbor where the ring is short.
void neighborhoods(context& ctx) {
  rma::Team& team = ctx.world();
  const std::array<int, 2> near{ctx.left(), ctx.right()};
  const std::array<int, 2> far{ctx.right(), ctx.left()};
  const rma::Neighbors ring{near, far};
  for (const std::size_t count : element_counts) {
    const auto mine = vector_of<int>(ctx.rank(), count);
    std::vector<int> got(2 * count);
    team.neighbor_allgather(span(mine), span(got), ring);
    auto wanted = vector_of<int>(ctx.left(), count);
    const auto other = vector_of<int>(ctx.right(), count);
    wanted.insert(wanted.end(), other.begin(), other.end());
    ctx.check(got == wanted, "neighbor_allgather");
    std::vector<int> out = vector_of<int>(ctx.rank() * 2, count);
    const auto left_part = vector_of<int>(ctx.rank() * 2 + 1, count);
    out.insert(out.end(), left_part.begin(), left_part.end());
    team.ineighbor_alltoall(span(out), span(got), ring).wait();
    wanted = vector_of<int>(ctx.left() * 2, count);
    const auto from_right = vector_of<int>(ctx.right() * 2 + 1, count);
    wanted.insert(wanted.end(), from_right.begin(), from_right.end());
    ctx.check(got == wanted, "neighbor_alltoall");
    const Counts sizes{count, count}, places{count, 0};
    std::fill(got.begin(), got.end(), 0);
    team.neighbor_alltoallv(span(out), sizes, {}, span(got), sizes, places, ring);
    std::rotate(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(count), wanted.end());
    ctx.check(got == wanted, "neighbor_alltoallv");
  }
}

// Goal: single values and vectors, of bool, too.
void short_forms(context& ctx) {
  rma::Team& team = ctx.world();
  const std::vector<bool> even = team.allgather(ctx.rank() % 2 == 0);
  for (int r = 0; r < ctx.size(); ++r) ctx.equal(even[static_cast<std::size_t>(r)], r % 2 == 0, "allgather of bool");
  const auto flags = std::make_unique<bool[]>(static_cast<std::size_t>(ctx.size()));
  flags[static_cast<std::size_t>(ctx.right())] = true;
  const std::vector<bool> got = team.alltoall(span(flags.get(), static_cast<std::size_t>(ctx.size())));
  for (int r = 0; r < ctx.size(); ++r) ctx.equal(got[static_cast<std::size_t>(r)], r == ctx.left(), "alltoall of bool");
  ctx.equal(team.exscan(1, rma::sum), ctx.rank(), "exscan of a value");
  ctx.equal(team.scan(1, rma::sum), ctx.rank() + 1, "scan of a value");
}

constexpr test_case collective_table[] = {
    {"collective.broadcast", broadcasts},
    {"collective.reductions", reductions},
    {"collective.reduce_scatter", reduce_scatters},
    {"collective.user_operators", user_operators},
    {"collective.gathers", gathers},
    {"collective.exchanges", exchanges},
    {"collective.layouts", layouts},
    {"collective.neighborhoods", neighborhoods},
    {"collective.neighborhood_layouts", neighborhood_layouts},
    {"collective.short_forms", short_forms},
};

}  // namespace

std::span<const test_case> collective_cases() noexcept { return collective_table; }

}  // namespace conformance
