// SPDX-License-Identifier: Apache-2.0
#include "armci/reductions.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rma::armci {
namespace {

struct reduction {
  rma::operation how;
  bool absolute = false;  ///< absolute values are compared
};

// Names that begin with "&" or "|" precede the single characters.
reduction reduction_of(const char* call, std::string_view op) {
  struct named {
    std::string_view name;
    reduction is;
  };
  constexpr named names[] = {{"+", {operation::sum}},
                             {"*", {operation::prod}},
                             {"max", {operation::max}},
                             {"min", {operation::min}},
                             {"absmax", {operation::max, true}},
                             {"absmin", {operation::min, true}},
                             {"land", {operation::land}},
                             {"&&", {operation::land}},
                             {"lor", {operation::lor}},
                             {"||", {operation::lor}},
                             {"band", {operation::band}},
                             {"&", {operation::band}},
                             {"bor", {operation::bor}},
                             {"|", {operation::bor}},
                             {"or", {operation::bor}}};
  for (const named& each : names) {
    if (op.starts_with(each.name)) return each.is;
  }
  fail(call, "there is no operator '" + std::string(op) + "'");
}

template <class T>
void reduce_elements(const char* call, Team& team, T* x, int n, const reduction& how) {
  const std::span<T> all(x, static_cast<std::size_t>(std::max(n, 0)));
  if (how.absolute) {
    for (T& each : all) each = each < T{} ? static_cast<T>(-each) : each;
  }
  check(call, team.try_allreduce(all, how.how));
}

template <class T>
bool is_less(const std::byte* a, const std::byte* b) noexcept {
  T first;
  T second;
  std::memcpy(&first, a, sizeof(T));
  std::memcpy(&second, b, sizeof(T));
  return first < second;
}

bool is_less(const char* call, int type, const std::byte* a, const std::byte* b) {
  switch (type) {
    case ARMCI_INT: return is_less<int>(a, b);
    case ARMCI_LONG: return is_less<long>(a, b);
    case ARMCI_LONG_LONG: return is_less<long long>(a, b);
    case ARMCI_FLOAT: return is_less<float>(a, b);
    case ARMCI_DOUBLE: return is_less<double>(a, b);
    default: fail(call, "there is no type " + std::to_string(type));
  }
}

}  // namespace

bool is_alone_in(const char* call, int scope) {
  if (scope == SCOPE_ALL || scope == SCOPE_MASTERS) return false;
  if (scope != SCOPE_NODE) fail(call, "there is no scope " + std::to_string(scope));
  return true;
}

void reduce(const char* call, Team team, int scope, void* x, int n, const char* op, int type) {
  const reduction how = reduction_of(call, op);
  if (is_alone_in(call, scope) || n <= 0) return;
  switch (type) {
    case ARMCI_INT: return reduce_elements(call, team, static_cast<int*>(x), n, how);
    case ARMCI_LONG: return reduce_elements(call, team, static_cast<long*>(x), n, how);
    case ARMCI_LONG_LONG: return reduce_elements(call, team, static_cast<long long*>(x), n, how);
    case ARMCI_FLOAT: return reduce_elements(call, team, static_cast<float*>(x), n, how);
    case ARMCI_DOUBLE: return reduce_elements(call, team, static_cast<double*>(x), n, how);
    default: fail(call, "there is no type " + std::to_string(type));
  }
}

void select(const char* call, Team team, int scope, void* x, int bytes, const char* op, int type, bool contribute) {
  const reduction how = reduction_of(call, op);
  if (how.how != operation::min && how.how != operation::max) fail(call, "records are selected by min or max");
  if (is_alone_in(call, scope) || bytes <= 0) return;
  const auto* const mine = static_cast<const std::byte*>(x);
  const std::size_t length = contribute ? static_cast<std::size_t>(bytes) : 0;
  std::vector<std::vector<std::byte>> all;
  check(call, team.try_allgatherv(std::span<const std::byte>(mine, length), all));
  const std::vector<std::byte>* best = nullptr;
  for (const auto& each : all) {
    if (each.empty()) continue;
    const bool better = best == nullptr || (how.how == operation::min ? is_less(call, type, each.data(), best->data())
                                                                      : is_less(call, type, best->data(), each.data()));
    if (better) best = &each;
  }
  if (best != nullptr) std::memcpy(x, best->data(), std::min(best->size(), static_cast<std::size_t>(bytes)));
}

void broadcast(const char* call, Team team, int scope, void* buffer, int bytes, int root) {
  if (is_alone_in(call, scope) || bytes <= 0) return;
  if (root < 0) fail(call, "the root is no member of the group");
  const std::span<std::byte> data(static_cast<std::byte*>(buffer), static_cast<std::size_t>(bytes));
  check(call, team.try_broadcast(data, root));
}

}  // namespace rma::armci
