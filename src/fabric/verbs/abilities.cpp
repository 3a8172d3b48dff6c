// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/abilities.hpp"

#include <fmt/format.h>

#include "rma/error.hpp"

namespace rma::verbs {
namespace {

struct code_of {
  char code;
  bool abilities::*has;
};
constexpr code_of codes[] = {
    {'a', &abilities::atomics},
    {'p', &abilities::placed},
    {'e', &abilities::ethernet},
};

std::string_view link_of(const abilities& a) noexcept { return a.ethernet ? "Ethernet" : "InfiniBand"; }

}  // namespace

std::string abilities::text() const {
  std::string word = "+";
  for (const auto& [code, has] : codes) {
    if (this->*has) word += code;
  }
  return word;
}

abilities abilities::parse(std::string_view word) {
  abilities found{false, false, false};
  std::size_t known = 1;
  for (const auto& [code, has] : codes) {
    found.*has = word.find(code) != std::string_view::npos;
    known += found.*has ? 1 : 0;
  }
  if (!word.starts_with('+') || word.size() != known)
    throw Error(status::bad_boot,
                fmt::format("a rank says of its RDMA device \"{}\", which this version of the library "
                            "does not know: start all ranks with the same one",
                            word));
  return found;
}

void abilities::meet(const abilities& other) noexcept {
  for (const auto& [code, has] : codes) this->*has = this->*has && other.*has;
}

std::string obstacle_between(const abilities& one, const abilities& other) {
  if (one.ethernet == other.ethernet) return {};
  return fmt::format("its port is {}, others' {}", link_of(one), link_of(other));
}

}  // namespace rma::verbs
