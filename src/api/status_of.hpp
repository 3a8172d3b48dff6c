// SPDX-License-Identifier: Apache-2.0
/// \file
/// The status of a call that throws: for `try_` forms, which discard the text of the Error.
#pragma once

#include <new>

#include "rma/error.hpp"

namespace rma::detail {

/// For `try_` forms of calls that are made once, and throw inside: runs it, and says how it ended.
template <class Call>
status status_of(Call&& call) noexcept {
  try {
    call();
    return status::done;
  } catch (const Error& e) {
    return e.code();
  } catch (const std::bad_alloc&) {
    return status::out_of_memory;
  }
}

}  // namespace rma::detail
