// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sanitizers of this program: g++ names them by macros, clang++ by features.
#pragma once

#if !defined(__has_feature)
#define __has_feature(what) 0
#endif

namespace rma::test {

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

}  // namespace rma::test
