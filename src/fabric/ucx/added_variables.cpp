// SPDX-License-Identifier: Apache-2.0
#include "fabric/ucx/added_variables.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace rma::ucx {
namespace {

bool is_set(char** environment, std::string_view name) noexcept {
  for (char** each = environment; !name.empty() && each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry(*each);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') return true;
  }
  return false;
}

/// Copies the list to memory that leak checkers ignore.
char** lasting_copy(std::span<char* const> list) {
  void* const pages = ::mmap(nullptr, list.size_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  auto** const copy = static_cast<char**>(pages);
  std::ranges::copy(list, copy);
  return copy;
}

}  // namespace

added_variables::added_variables(std::span<const variable> wanted) {
  while (!extend(wanted)) names_.clear();
}

// Returns false if another thread has replaced the list meanwhile.
bool added_variables::extend(std::span<const variable> wanted) {
  before_ = std::atomic_ref(environ).load();
  std::vector<char*> list;
  for (const variable& each : wanted) {
    if (std::ranges::any_of(each.names, [&](std::string_view name) { return is_set(before_, name); })) continue;
    list.push_back(const_cast<char*>(each.assignment));
    names_.emplace_back(each.names.front());
  }
  if (names_.empty()) return true;
  for (char** each = before_; each != nullptr && *each != nullptr; ++each) list.push_back(*each);
  list.push_back(nullptr);
  longer_ = lasting_copy(list);
  char** expected = before_;
  return std::atomic_ref(environ).compare_exchange_strong(expected, longer_);
}

// If the program has called setenv in between, the C library has copied the longer list: the variables are removed
// there.
added_variables::~added_variables() {
  if (names_.empty()) return;
  char** expected = longer_;
  if (std::atomic_ref(environ).compare_exchange_strong(expected, before_)) return;
  for (const std::string& name : names_) ::unsetenv(name.c_str());
}

}  // namespace rma::ucx
