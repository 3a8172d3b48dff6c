// SPDX-License-Identifier: Apache-2.0
// Goal: every kernel of every instruction set does what a plain loop over one element at a time does, to those elements
// only; atomic kernels lose nothing under contention.
// Method: all (operator, type) pairs, counts around vector widths, misaligned bases, guard bytes; a reference written
// with the user's types; threads that add to the same words.
#include "xfer/kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "datatype/string_copy.hpp"
#include "rma/detail/atomic_op.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

using bytes = std::vector<unsigned char>;
constexpr std::size_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 1000};
constexpr std::size_t shifts[] = {0, 1, 4, 8, 24};
constexpr std::size_t guard = 64;

/// The operator in the user's types, with the arithmetic of a wider type where there is one.
template <class T>
T reference(operation op, T a, T b) {
  if (op == operation::replace) return b;
  if (op == operation::no_op) return a;
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (op) {
      case operation::sum: return static_cast<T>(x + y);
      case operation::prod: return static_cast<T>(x * y);
      case operation::land: return static_cast<T>(a && b ? 1 : 0);
      case operation::lor: return static_cast<T>(a || b ? 1 : 0);
      case operation::lxor: return static_cast<T>((a != 0) != (b != 0) ? 1 : 0);
      case operation::band: return static_cast<T>(x & y);
      case operation::bor: return static_cast<T>(x | y);
      case operation::bxor: return static_cast<T>(x ^ y);
      default: break;
    }
  } else if constexpr (is_value_index<T>) {
    const bool wins = op == operation::minloc ? b.value < a.value : b.value > a.value;
    return wins || (b.value == a.value && b.index < a.index) ? b : a;
  } else {
    if (op == operation::sum) return a + b;
    if (op == operation::prod) return a * b;
  }
  if constexpr (std::is_arithmetic_v<T>) return op == operation::min ? (b < a ? b : a) : (b > a ? b : a);
  return a;
}

template <class T>
T random_value(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>) {
    const auto bits = random();
    if (bits % 8 == 0) return T{0};  // logical operators see both truth values
    if (bits % 8 == 1) return std::numeric_limits<T>::max();
    if (bits % 8 == 2) return std::numeric_limits<T>::min();
    return static_cast<T>(bits >> 8);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<int>(random() % 2000) - 1000) / T{8};  // exact in every order of evaluation
  } else if constexpr (is_value_index<T>) {
    // Few values, so that many are equal.
    return {static_cast<decltype(T::value)>(static_cast<int>(random() % 5) - 2),
            static_cast<decltype(T::index)>(static_cast<int>(random() % 9) - 4)};
  } else {
    using Real = typename T::value_type;
    return {random_value<Real>(random), random_value<Real>(random)};
  }
}

template <class T>
void store_at(bytes& memory, std::size_t base, std::size_t i, T value) {
  std::memcpy(memory.data() + base + i * sizeof(T), &value, sizeof(T));
}

/// Operands, and what must come of them.
template <class T>
struct experiment {
  experiment(operation op, std::size_t n, std::size_t shift, std::mt19937_64& random)
      : base(guard + shift), dst(2 * guard + shift + n * sizeof(T), 0xa5), src(dst), old(dst) {
    after = dst;
    before = dst;
    for (std::size_t i = 0; i < n; ++i) {
      const T a = random_value<T>(random), b = random_value<T>(random);
      store_at(dst, base, i, a);
      store_at(src, base, i, b);
      store_at(before, base, i, a);
      store_at(after, base, i, reference(op, a, b));
    }
  }
  std::size_t base;
  bytes dst, src, old, after, before;
};

/// Elements must be equal as values; all else as bytes. (Catch2 assertions are too slow for the inner loop.)
template <class T>
bool same(const bytes& a, const bytes& b, std::size_t base, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    T x, y;
    std::memcpy(&x, a.data() + base + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b.data() + base + i * sizeof(T), sizeof(T));
    if (!(x == y)) return false;
  }
  const std::size_t end = base + n * sizeof(T);
  return std::memcmp(a.data(), b.data(), base) == 0 && std::memcmp(a.data() + end, b.data() + end, a.size() - end) == 0;
}

template <class T>
bool plain_kernel_holds(apply_kernel kernel, operation op, std::size_t n, std::size_t shift, std::mt19937_64& random) {
  experiment<T> e(op, n, shift, random);
  const bytes src = e.src;
  kernel(e.dst.data() + e.base, e.src.data() + e.base, n);
  return same<T>(e.dst, e.after, e.base, n) && e.src == src;
}

template <class T>
bool fetch_kernel_holds(fetch_kernel kernel, operation op, std::size_t n, std::size_t shift, std::mt19937_64& random) {
  experiment<T> apart(op, n, shift, random);
  kernel(apart.dst.data() + apart.base, apart.src.data() + apart.base, apart.old.data() + apart.base, n);
  experiment<T> place(op, n, shift, random);
  kernel(place.dst.data() + place.base, place.src.data() + place.base, place.src.data() + place.base, n);
  return same<T>(apart.dst, apart.after, apart.base, n) && same<T>(apart.old, apart.before, apart.base, n) &&
         same<T>(place.dst, place.after, place.base, n) && same<T>(place.src, place.before, place.base, n);
}

template <class T>
void check_type(const kernel_table& table, element type, std::mt19937_64& random) {
  for (std::size_t i = 0; i < operation_count; ++i) {
    const auto op = static_cast<operation>(i);
    const auto plain = table.bulk[i][index_of(type)];
    const auto fetch = table.fetch_bulk[i][index_of(type)];
    const auto atomic = table.atomic[i][index_of(type)];
    const auto fetch_atomic = table.fetch_atomic[i][index_of(type)];
    CAPTURE(table.name, name_of(op), name_of(type));
    const bool defined = defined_for(op, type);
    REQUIRE((plain != nullptr) == defined);
    REQUIRE((fetch != nullptr) == defined);
    REQUIRE((atomic != nullptr) == (defined && has_atomics<T>));
    REQUIRE((fetch_atomic != nullptr) == (defined && has_atomics<T>));
    if (!defined) continue;
    for (const std::size_t n : counts) {
      CAPTURE(n);
      for (const std::size_t shift : shifts) {
        CAPTURE(shift);
        REQUIRE(plain_kernel_holds<T>(plain, op, n, shift, random));
        REQUIRE(fetch_kernel_holds<T>(fetch, op, n, shift, random));
        if (atomic == nullptr || shift % 8 != 0) continue;
        REQUIRE(plain_kernel_holds<T>(atomic, op, n, shift, random));
        REQUIRE(fetch_kernel_holds<T>(fetch_atomic, op, n, shift, random));
      }
    }
  }
}

}  // namespace

TEST_CASE("kernels of every instruction set agree with the plain loop", "[xfer][kernels]") {
  std::mt19937_64 random(Catch::rngSeed());
  REQUIRE(kernels_for(kernel_isa::baseline) != nullptr);
  for (std::size_t isa = 0; isa < kernel_isa_count; ++isa) {
    const kernel_table* const table = kernels_for(static_cast<kernel_isa>(isa));
    if (table == nullptr) continue;
    check_type<std::int8_t>(*table, element::i8, random);
    check_type<std::int16_t>(*table, element::i16, random);
    check_type<std::int32_t>(*table, element::i32, random);
    check_type<std::int64_t>(*table, element::i64, random);
    check_type<std::uint8_t>(*table, element::u8, random);
    check_type<std::uint16_t>(*table, element::u16, random);
    check_type<std::uint32_t>(*table, element::u32, random);
    check_type<std::uint64_t>(*table, element::u64, random);
    check_type<float>(*table, element::f32, random);
    check_type<double>(*table, element::f64, random);
    check_type<std::complex<float>>(*table, element::c32, random);
    check_type<std::complex<double>>(*table, element::c64, random);
    check_type<long double>(*table, element::f128, random);
    check_type<std::complex<long double>>(*table, element::c128, random);
    check_type<ValueIndex<short>>(*table, element::i16_i32, random);
    check_type<ValueIndex<int>>(*table, element::i32_i32, random);
    check_type<ValueIndex<std::int64_t>>(*table, element::i64_i32, random);
    check_type<ValueIndex<float>>(*table, element::f32_i32, random);
    check_type<ValueIndex<double>>(*table, element::f64_i32, random);
    check_type<ValueIndex<long double>>(*table, element::f128_i32, random);
    check_type<ValueIndex<std::int64_t, std::int64_t>>(*table, element::i64_i64, random);
    check_type<ValueIndex<double, std::int64_t>>(*table, element::f64_i64, random);
    check_type<ValueIndex<float, float>>(*table, element::f32_f32, random);
    check_type<ValueIndex<double, double>>(*table, element::f64_f64, random);
  }
}

TEST_CASE("the chosen kernels are the best that this processor has", "[xfer][kernels]") {
  const kernel_table* best = nullptr;
  for (std::size_t isa = 0; isa < kernel_isa_count; ++isa) {
    const auto of = static_cast<kernel_isa>(isa);
    const kernel_table* const table = kernels_for(of);
    if (table != nullptr && (of != kernel_isa::avx512 || moves_64_at_once())) best = table;  // not a Zen 4
  }
  CHECK(&kernels_for_this_cpu() == best);
}

TEST_CASE("min and max keep what is there when nothing compares", "[xfer][kernels]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double place = 1;
  CHECK(fetch_apply_atomic<operation::min>(&place, nan) == 1);
  CHECK(place == 1);
  CHECK(apply<operation::max>(2.0, nan) == 2);
  place = nan;
  apply_atomic<operation::max>(&place, 3.0);
  CHECK(place != place);
  for (std::size_t isa = 0; isa < kernel_isa_count; ++isa) {
    const kernel_table* const table = kernels_for(static_cast<kernel_isa>(isa));
    if (table == nullptr) continue;
    std::vector<double> dst(9, 1.0), src(9, nan);
    dst[4] = nan;
    src[4] = 0.0;
    for (const auto op : {operation::min, operation::max}) {
      table->bulk[index_of(op)][index_of(element::f64)](dst.data(), src.data(), dst.size());
    }
    CHECK(dst[0] == 1.0);
    CHECK(dst[8] == 1.0);
    CHECK(dst[4] != dst[4]);
  }
}

TEST_CASE("compare_swap_atomic replaces what it expects only", "[xfer][kernels][atomic]") {
  std::int32_t word = 5;
  CHECK(compare_swap_atomic(&word, 4, 9) == 5);
  CHECK(word == 5);
  CHECK(compare_swap_atomic(&word, 5, 9) == 5);
  CHECK(word == 9);
  alignas(8) std::complex<float> pair{1, 2};
  CHECK(compare_swap_atomic(&pair, {1, 3}, {7, 7}) == std::complex<float>(1, 2));
  CHECK(compare_swap_atomic(&pair, {1, 2}, {7, 8}) == std::complex<float>(1, 2));
  CHECK(pair == std::complex<float>(7, 8));
}

TEST_CASE("atomic kernels lose nothing", "[xfer][kernels][atomic]") {
  constexpr int rounds = 300;
  constexpr std::size_t n = 100;
  constexpr int threads = 4;
  const kernel_table& table = kernels_for_this_cpu();
  std::vector<std::int16_t> small(n, 0);
  std::vector<std::int64_t> wide(n, 0);
  std::vector<double> real(n, 0);
  alignas(8) std::complex<float> complex[n] = {};
  std::vector<std::uint32_t> toggled(n, 0);
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&] {
      const std::vector<std::int16_t> one_small(n, 1);
      const std::vector<std::int64_t> one_wide(n, 1);
      const std::vector<double> one_real(n, 1);
      const std::vector<std::complex<float>> one_complex(n, {1, -1});
      const std::vector<std::uint32_t> mask(n, 1);
      std::vector<std::int64_t> seen(n);
      const std::size_t add = index_of(operation::sum);
      for (int round = 0; round < rounds; ++round) {
        table.atomic[add][index_of(element::i16)](small.data(), one_small.data(), n);
        table.fetch_atomic[add][index_of(element::i64)](wide.data(), one_wide.data(), seen.data(), n);
        table.atomic[add][index_of(element::f64)](real.data(), one_real.data(), n);
        table.atomic[add][index_of(element::c32)](complex, one_complex.data(), n);
        table.atomic[index_of(operation::bxor)][index_of(element::u32)](toggled.data(), mask.data(), n);
      }
    });
  }
  for (std::thread& member : crew) member.join();
  constexpr int total = rounds * threads;
  CHECK(small == std::vector<std::int16_t>(n, total));
  CHECK(wide == std::vector<std::int64_t>(n, total));
  CHECK(real == std::vector<double>(n, total));
  CHECK(toggled == std::vector<std::uint32_t>(n, 0));
  CHECK(std::all_of(std::begin(complex), std::end(complex),
                    [](std::complex<float> c) { return c == std::complex<float>(total, -total); }));
}

TEST_CASE("old values of concurrent fetch_apply are all different", "[xfer][kernels][atomic]") {
  constexpr int rounds = 5000;
  std::uint64_t counter = 0;
  std::int8_t maximum = -128;
  std::vector<std::vector<std::uint64_t>> seen(3);
  std::vector<std::thread> crew;
  for (auto& mine : seen) {
    crew.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        mine.push_back(fetch_apply_atomic<operation::sum>(&counter, std::uint64_t{1}));
        apply_atomic<operation::max>(&maximum, static_cast<std::int8_t>(i % 120));
      }
    });
  }
  for (std::thread& member : crew) member.join();
  std::vector<bool> taken(3 * rounds, false);
  bool distinct = true;
  for (const auto& mine : seen) {
    for (const std::uint64_t value : mine) {
      distinct = distinct && value < taken.size() && !taken[value];
      if (value < taken.size()) taken[value] = true;
    }
  }
  CHECK(distinct);
  CHECK(counter == 3 * rounds);
  CHECK(maximum == 119);
}
