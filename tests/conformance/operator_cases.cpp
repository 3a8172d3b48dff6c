// SPDX-License-Identifier: Apache-2.0
// Every operator on every element type, through every call that takes them.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

template <class T>
inline constexpr bool is_pair_type = rma::is_pair(rma::element_of<T>);

/// The results of an operator, written down once more.
template <rma::operation Op, class T>
T apply_plain(T a, T b) {
  using rma::operation;
  if constexpr (Op == operation::sum) return static_cast<T>(a + b);
  if constexpr (Op == operation::prod) return static_cast<T>(a * b);
  if constexpr (Op == operation::min) return b < a ? b : a;
  if constexpr (Op == operation::max) return a < b ? b : a;
  if constexpr (Op == operation::land) return static_cast<T>(a != 0 && b != 0);
  if constexpr (Op == operation::lor) return static_cast<T>(a != 0 || b != 0);
  if constexpr (Op == operation::lxor) return static_cast<T>((a != 0) != (b != 0));
  if constexpr (Op == operation::band) return static_cast<T>(a & b);
  if constexpr (Op == operation::bor) return static_cast<T>(a | b);
  if constexpr (Op == operation::bxor) return static_cast<T>(a ^ b);
  if constexpr (Op == operation::replace) return b;
  if constexpr (Op == operation::no_op) return a;
  if constexpr (Op == operation::minloc || Op == operation::maxloc) {
    if (a.value == b.value) return T{a.value, std::min(a.index, b.index)};
    return (a.value < b.value) == (Op == operation::minloc) ? a : b;
  }
}

/// Small whole numbers, so that sums and products are exact in every type and order.
template <class T>
T operand(int rank, std::size_t i) {
  const auto x = static_cast<int>((static_cast<std::size_t>(rank) * 13 + i * 5) % 7);
  if constexpr (is_complex<T>) {
    using part = typename T::value_type;
    constexpr int re[] = {1, 0, -1, 0};
    return T(static_cast<part>(re[x % 4]), static_cast<part>(re[(x + 3) % 4]));  // powers of i
  } else if constexpr (is_pair_type<T>) {
    return T{static_cast<decltype(T::value)>(x / 2 - 2), static_cast<decltype(T::index)>(rank - x)};  // some are equal
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(x);
  } else {
    return static_cast<T>(x - 3);
  }
}

template <class T, class Visit, std::size_t... Index>
void visit_operators(Visit visit, std::index_sequence<Index...>) {
  const auto one = [&]<rma::operation Op>(rma::operation_tag<Op> tag) {
    if constexpr (rma::defined_for(Op, rma::element_of<T>)) visit(tag);
  };
  (one(rma::operation_tag<static_cast<rma::operation>(Index)>{}), ...);
}

/// Calls `visit(operation_tag<Op>{})` for each operator that is defined for T.
template <class T, class Visit>
void each_operator(Visit visit) {
  visit_operators<T>(visit, std::make_index_sequence<rma::operation_count>{});
}

template <class T, rma::operation Op>
std::string title(const char* call) {
  return std::string(call) + " " + std::string(rma::name_of(Op)) + " of " +
         std::string(rma::name_of(rma::element_of<T>));
}

constexpr std::size_t length = 33;

/// One call of each form by one origin on the right neighbor: old values and results against apply_plain.
template <class T, rma::operation Op>
void single_origin(context& ctx, test_window<T>& win) {
  const int to = ctx.right();
  std::vector<T> add(length);
  for (std::size_t i = 0; i < length; ++i) {
    win.local()[i] = operand<T>(ctx.rank(), i + 1);
    add[i] = operand<T>(ctx.rank(), i);
  }
  win->fence();
  std::vector<T> old(length, T{});
  win->get_accumulate(std::span<const T>(add), std::span(old), to, win.at(to, 0), Op);
  win->fence();
  bool right_old = true;
  bool right_new = true;
  for (std::size_t i = 0; i < length; ++i) {
    right_old = right_old && old[i] == operand<T>(to, i + 1);
    right_new =
        right_new && win.local()[i] == apply_plain<Op>(operand<T>(ctx.rank(), i + 1), operand<T>(ctx.left(), i));
  }
  ctx.check(right_old, "old values of " + title<T, Op>("get_accumulate"));
  ctx.check(right_new, "result of " + title<T, Op>("get_accumulate"));
  win->fence();

  const T before = operand<T>(ctx.rank(), 4);
  win.local()[0] = before;
  win.local()[1] = before;
  win.local()[2] = before;
  win->fence();
  const T found = win->fetch_and_op(operand<T>(ctx.rank(), 2), to, win.at(to, 0), rma::operation_tag<Op>{});
  win->accumulate(operand<T>(ctx.rank(), 2), to, win.at(to, 1), rma::operation_tag<Op>{});
  const T one = operand<T>(ctx.rank(), 2);
  T found_as{};
  ctx.check(rma::ok(win->fetch_and_op_as(rma::element_of<T>, Op, &one, &found_as, to, win.at(to, 2))),
            "fetch_and_op_as");
  win->fence();
  ctx.check(found == operand<T>(to, 4) && found_as == found, "old value of " + title<T, Op>("fetch_and_op"));
  const T wanted = apply_plain<Op>(before, operand<T>(ctx.left(), 2));
  ctx.check(win.local()[0] == wanted, "result of " + title<T, Op>("fetch_and_op"));
  ctx.check(win.local()[1] == wanted, "result of " + title<T, Op>("accumulate"));
  ctx.check(win.local()[2] == wanted, "result of " + title<T, Op>("fetch_and_op_as"));
  win->fence();
}

/// All ranks accumulate into all ranks at once; commutative operators leave one possible result.
template <class T, rma::operation Op>
void all_origins(context& ctx, test_window<T>& win) {
  if constexpr (Op != rma::operation::replace) {
    std::vector<T> wanted(length);
    std::vector<T> add(length);
    for (std::size_t i = 0; i < length; ++i) {
      win.local()[i] = operand<T>(9, i);
      wanted[i] = operand<T>(9, i);
      add[i] = operand<T>(ctx.rank(), i);
      for (int r = 0; r < ctx.size(); ++r) wanted[i] = apply_plain<Op>(wanted[i], operand<T>(r, i));
    }
    win->fence();
    for (int step = 0; step < ctx.size(); ++step) {
      const int to = (ctx.rank() + step) % ctx.size();
      win->accumulate(std::span<const T>(add), to, win.at(to, 0), Op);
    }
    win->fence();
    ctx.check(std::ranges::equal(win.local().first(length), wanted), "all-to-all " + title<T, Op>("accumulate"));
    win->fence();
  }
}

/// The same in a window of bytes, whose elements have a type at run time only: one by each call.
template <class T, rma::operation Op>
void in_bytes(context& ctx, rma::Window<std::byte>& win) {
  const int to = ctx.right();
  if (sizeof(T) > sizeof(std::uint64_t) && win.atomicity() == rma::accumulate_mode::direct) return;  // no adapter does
  const T before = operand<T>(ctx.rank(), 4);
  const T add = operand<T>(ctx.rank(), 2);
  for (const std::size_t at : {std::size_t{0}, sizeof(T)}) std::memcpy(&win.local()[at], &before, sizeof(T));
  win.fence();
  T found{};
  ctx.check(rma::ok(win.fetch_and_op_as(rma::element_of<T>, Op, &add, &found, to, 0)), "fetch_and_op_as in bytes");
  ctx.check(rma::ok(win.accumulate_as(rma::element_of<T>, Op, std::as_bytes(std::span(&add, 1)), to, sizeof(T))),
            "accumulate_as in bytes");
  win.fence();
  ctx.check(found == operand<T>(to, 4), "old value in bytes of " + title<T, Op>("fetch_and_op_as"));
  const T wanted = apply_plain<Op>(before, operand<T>(ctx.left(), 2));
  for (const std::size_t at : {std::size_t{0}, sizeof(T)}) {
    std::memcpy(&found, &win.local()[at], sizeof(T));
    ctx.check(found == wanted, "result in bytes of " + title<T, Op>(at == 0 ? "fetch_and_op_as" : "accumulate_as"));
  }
  win.fence();
}

template <class T>
void operators_of(context& ctx) {
  test_window<T> win(ctx, length);
  auto bytes = rma::Window<std::byte>::allocate(ctx.world(), 2 * sizeof(T));
  each_operator<T>([&]<rma::operation Op>(rma::operation_tag<Op>) {
    if (!ctx.sampled()) return;
    single_origin<T, Op>(ctx, win);
    all_origins<T, Op>(ctx, win);
    if (ctx.kind() == window_kind::allocated) in_bytes<T, Op>(ctx, bytes);
  });
  bytes.free();
  win.free();
}

// Goal: the operators of MPI on the integers, through accumulate, get_accumulate and fetch_and_op, typed and by
// run-time element type. Break: swap min and max in the slow path.
void small_integers(context& ctx) {
  operators_of<std::int8_t>(ctx);
  operators_of<std::uint8_t>(ctx);
  operators_of<std::int16_t>(ctx);
  operators_of<std::uint16_t>(ctx);
}

void large_integers(context& ctx) {
  operators_of<std::int32_t>(ctx);
  operators_of<std::uint32_t>(ctx);
  operators_of<std::int64_t>(ctx);
  operators_of<std::uint64_t>(ctx);
}

void floating_point(context& ctx) {
  operators_of<float>(ctx);
  operators_of<double>(ctx);
}

void complex_numbers(context& ctx) {
  operators_of<std::complex<float>>(ctx);
  operators_of<std::complex<double>>(ctx);
}

// Goal: elements of more than eight bytes, which no processor updates atomically. Break: take has_atomics for granted
// in fast_update.
void wide_numbers(context& ctx) {
  operators_of<long double>(ctx);
  operators_of<std::complex<long double>>(ctx);
}

// Goal: minloc and maxloc, of equal values the smallest index. Break: forget the index in apply_pair.
void pairs(context& ctx) {
  operators_of<rma::ValueIndex<short>>(ctx);
  operators_of<rma::ValueIndex<int>>(ctx);
  operators_of<rma::ValueIndex<std::int64_t>>(ctx);
  operators_of<rma::ValueIndex<float>>(ctx);
  operators_of<rma::ValueIndex<double>>(ctx);
  operators_of<rma::ValueIndex<long double>>(ctx);
  operators_of<rma::ValueIndex<std::int64_t, std::int64_t>>(ctx);
  operators_of<rma::ValueIndex<double, std::int64_t>>(ctx);
  operators_of<rma::ValueIndex<float, float>>(ctx);
  operators_of<rma::ValueIndex<double, double>>(ctx);
}

// Goal: a pair of eight bytes need only be aligned as its parts are, and a wide one is updated as a whole at once by
// all ranks, within a stripe and across two. Method: each rank replaces by a pair whose parts tell of each other.
// Break: let alignment_of be the size.
void pairs_at_once(context& ctx) {
  constexpr std::size_t count = 40;
  auto win = rma::Window<std::byte>::allocate(ctx.world(), 8 * count + 4, {.accumulate_granularity = 64});
  const bool by_adapter = win.atomicity() == rma::accumulate_mode::direct;
  const rma::ValueIndex<int> mine{ctx.rank(), -ctx.rank()};
  std::vector<rma::ValueIndex<int>> all(count, mine);
  win.fence();
  for (std::size_t i = 0; i < ctx.rounds(20, 2); ++i) {
    const rma::status s = win.accumulate_as(rma::element::i32_i32, rma::replace, std::as_bytes(std::span(all)), 0, 4);
    ctx.expect(s, by_adapter ? rma::status::misaligned : rma::ok(s) ? s : rma::status::done, "pairs at four bytes");
  }
  win.fence();
  if (ctx.rank() == 0 && !by_adapter) {
    for (std::size_t i = 0; i < count; ++i) {
      rma::ValueIndex<int> seen{};
      std::memcpy(&seen, &win.local()[4 + 8 * i], sizeof seen);
      ctx.equal(seen.index, -seen.value, "the index of a pair that several ranks replaced");
    }
  }
  win.fence(rma::no_succeed);
  win.free();
}

// Goal: reductions take pairs and long double as well. Break: a table of kernels without them.
void in_reductions(context& ctx) {
  const int last = ctx.size() - 1;
  const auto most = ctx.world().allreduce(rma::ValueIndex<double>{ctx.rank() / 2 + 0.5, ctx.rank()}, rma::maxloc);
  ctx.check(most == rma::ValueIndex<double>{last / 2 + 0.5, last / 2 * 2}, "allreduce with maxloc");
  const long double sum = ctx.world().allreduce(1.0L + ctx.rank(), rma::sum);
  ctx.equal(sum, static_cast<long double>((last + 1) * (last + 2) / 2), "sum of long doubles");
}

// Goal: get_accumulate with no_op takes nothing from the origin, whatever is given there: no element, fewer, memory
// that nobody may read. Method: also with a layout of nothing. Break: give get_accumulate_args `from` itself (operand,
// window_ops.hpp).
void read_without_operand(context& ctx) {
  constexpr std::size_t count = 3000;
  test_window<std::uint64_t> win(ctx, count);
  fill_tagged(win.local(), ctx.rank());
  const pages unreadable(count * sizeof(std::uint64_t));
  ctx.equal(::mprotect(unreadable.data(), count * sizeof(std::uint64_t), PROT_NONE), 0, "mprotect");
  const auto* const nothing = static_cast<const std::uint64_t*>(unreadable.data());
  const auto all = rma::Layout::contiguous<std::uint64_t>(count);
  const int to = ctx.right();
  for (const std::size_t given : {std::size_t{0}, std::size_t{1}, count}) {
    std::vector<std::uint64_t> seen(count);
    win->fence();
    win->get_accumulate(std::span(nothing, given), std::span(seen), to, win.at(to, 0), rma::no_op);
    win->fence();
    ctx.equal(first_untagged(std::span<const std::uint64_t>(seen), to), count, "read with no_op");
    std::ranges::fill(seen, 0);
    const rma::Layout from = rma::Layout::contiguous<std::uint64_t>(given);
    ctx.check(rma::ok(win->get_accumulate_as(rma::element::u64, rma::no_op, nothing, from, seen.data(), all, to,
                                             win.at(to, 0), all)),
              "get_accumulate_as with no_op");
    win->fence();
    ctx.equal(first_untagged(std::span<const std::uint64_t>(seen), to), count, "read with no_op and layouts");
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: replace by many origins leaves, element by element, what one of them wrote; no_op reads without writing.
void replace_and_read(context& ctx) {
  constexpr std::size_t count = 3000;
  test_window<std::uint64_t> win(ctx, count);
  std::vector<std::uint64_t> mine(count);
  fill_tagged(std::span(mine), ctx.rank());
  win->fence();
  win->accumulate(std::span<const std::uint64_t>(mine), 0, win.at(0, 0), rma::replace);
  win->fence();
  std::vector<std::uint64_t> seen(count);
  win->get_accumulate({}, std::span(seen), 0, win.at(0, 0), rma::no_op);
  win->fence();
  for (std::size_t i = 0; i < count; ++i) {
    bool known = false;
    for (int r = 0; r < ctx.size(); ++r) known = known || seen[i] == tagged<std::uint64_t>(r, i);
    if (!known) ctx.fail("element " + std::to_string(i) + " is what nobody wrote");
  }
  if (ctx.rank() == 0) ctx.check(std::ranges::equal(win.local(), seen), "no_op changed the window");
  win->fence(rma::no_succeed);
  win.free();
}

constexpr test_case operator_table[] = {
    {"operators.small_integers", small_integers, each_kind},
    {"operators.large_integers", large_integers, each_kind},
    {"operators.floating_point", floating_point, each_kind},
    {"operators.complex_numbers", complex_numbers, each_kind},
    {"operators.wide_numbers", wide_numbers, each_kind},
    {"operators.pairs", pairs, each_kind},
    {"operators.pairs_at_once", pairs_at_once},
    {"operators.in_reductions", in_reductions},
    {"operators.replace_and_read", replace_and_read, each_kind},
    {"operators.read_without_operand", read_without_operand, each_kind},
};

}  // namespace

std::span<const test_case> operator_cases() noexcept { return operator_table; }

}  // namespace conformance
