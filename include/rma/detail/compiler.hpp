// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reports a compiler that is too old in one line.
#pragma once

#if defined(__clang__) && __clang_major__ < 16
#pragma clang diagnostic fatal "-W#warnings"
#warning "rma needs clang 16 or newer (or g++ 12): older ones lack std::source_location"
#elif !defined(__clang__) && defined(__GNUC__) && __GNUC__ < 12
#error "rma needs g++ 12 or newer (or clang 16)"
#elif __cplusplus < 202002L
#error "rma needs C++20: compile with -std=c++20"
#endif
