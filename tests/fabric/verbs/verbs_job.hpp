// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several ranks' verbs fabrics in one thread, each with its own adapter.
#pragma once

#include <memory>
#include <string>

#include "fabric/contract_cases.hpp"
#include "fabric/verbs/open.hpp"
#include "fabric/verbs/verbs_fabric.hpp"
#include "rma/error.hpp"
#include "skip.hpp"

namespace rma::test {

inline constexpr const char* job_key = "00112233445566778899aabbccddeeff";

using verbs_member = joined_rank<verbs::verbs_fabric>;

class verbs_job final : public joined_ranks<verbs::verbs_fabric> {
 public:
  explicit verbs_job(int size, std::uint32_t completions = verbs::member{}.completions, verbs::abilities common = {}) {
    for (int r = 0; r < size; ++r) {
      const verbs::member who{.rank = r, .size = size, .key = job_key, .completions = completions, .common = common};
      add(std::make_unique<verbs::verbs_fabric>(std::make_unique<verbs::adapter>(""), who), verbs::address_key(r));
    }
  }
  /// Inline, one packet, a buffer of memory that is not registered.
  [[nodiscard]] std::vector<std::size_t> sizes_of_interest() const override { return {256, 4096, 65536, 300'000}; }
};

/// Whether this machine has a device that the fabric can use; else says why not.
inline bool have_verbs(std::string& why_not) {
  try {
    (void)verbs::open("");
    return true;
  } catch (const Error& e) {
    why_not = e.what();
    return false;
  }
}

/// True if there is none; the test has been skipped then.
inline bool no_device() {
  std::string why;
  if (have_verbs(why)) return false;
  skip(why);
  return true;
}

}  // namespace rma::test
